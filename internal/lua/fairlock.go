package lua

// Scripts of the fair lock. What concerns its holder alone is as for the plain
// lock.
var (
	FairLockForce   = load("fairlock.force")
	FairLockHeard   = load("fairlock.heard")
	FairLockRelease = load("fairlock.release")
	FairLockTake    = load("fairlock.take")
)
