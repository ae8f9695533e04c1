package lua

// Scripts of the plain lock, some of which serve other types, too.
var (
	LockForce    = load("lock.force")
	LockInfo     = load("lock.info")
	LockKeep     = load("lock.keep")
	LockRelease  = load("lock.release")
	LockRenew    = load("lock.renew")
	LockTake     = load("lock.take")
	LockTransfer = load("lock.transfer")
	LockTTLs     = load("lock.ttls")
	LockYield    = load("lock.yield")
)
