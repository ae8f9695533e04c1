package lua

// Scripts of the semaphore.
var (
	SemaphoreAdd      = load("semaphore.add")
	SemaphoreDelete   = load("semaphore.delete")
	SemaphoreDrain    = load("semaphore.drain")
	SemaphoreExchange = load("semaphore.exchange")
	SemaphoreInfo     = load("semaphore.info")
	SemaphoreRead     = load("semaphore.read")
	SemaphoreSet      = load("semaphore.set")
)
