package redlatch

// A Kind says what has a name: a lock, several locks as one, or a synchronizer.
type Kind string

// The kinds of lock. Spin locks, non-reentrant locks and the stripes of a StripedLock are
// of KindLock: what Redis has of them is the same.
const (
	KindLock      Kind = "lock"
	KindFenced    Kind = "fenced lock"
	KindFair      Kind = "fair lock"
	KindReadWrite Kind = "read-write lock"
	KindGroup     Kind = "group lock"
)

// The kinds of several locks as one, as events say them. Redis has only their members.
const (
	KindMultiLock Kind = "multi lock"
	KindRedLock   Kind = "red lock"
)

// The kinds of synchronizer.
const (
	KindSemaphore   Kind = "semaphore"
	KindExpirable   Kind = "expirable semaphore"
	KindLatch       Kind = "latch"
	KindRateLimiter Kind = "rate limiter"
	KindBarrier     Kind = "barrier"
	// KindCounter is a number whose purpose is not stored: a semaphore, an expirable
	// semaphore of which no permit is taken, a latch, or any other number. Package admin
	// finds such numbers.
	KindCounter Kind = "semaphore or latch"
)
