package lua

// Scripts of the semaphore whose permits have leases.
var (
	ExpirableAdd      = load("expirable.add")
	ExpirableCount    = load("expirable.count")
	ExpirableDelete   = load("expirable.delete")
	ExpirableGiveBack = load("expirable.give_back")
	ExpirableLeft     = load("expirable.left")
	ExpirableRelease  = load("expirable.release")
	ExpirableRenew    = load("expirable.renew")
	ExpirableSet      = load("expirable.set")
	ExpirableTake     = load("expirable.take")
	ExpirableTrySet   = load("expirable.try_set")
)
