package lua

// Scripts of the group lock.
var (
	GroupLockForce   = load("grouplock.force")
	GroupLockRelease = load("grouplock.release")
	GroupLockRenew   = load("grouplock.renew")
	GroupLockTake    = load("grouplock.take")
)
