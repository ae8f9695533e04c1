package redlatch

// A Kind says what has a name: a lock, several locks as one, or a synchronizer.
type Kind string

// The kinds of locks, of several locks as one, of which Redis has only the
// members, and of synchronizers. Spin locks are of KindLock; Lock and the stripes
// of a StripedLock are, too, or of KindFenced with Fenced.
const (
	KindLock        Kind = "lock"
	KindFenced      Kind = "fenced lock"
	KindFair        Kind = "fair lock"
	KindReadWrite   Kind = "read-write lock"
	KindGroup       Kind = "group lock"
	KindMultiLock   Kind = "multi lock"
	KindRedLock     Kind = "red lock"
	KindSemaphore   Kind = "semaphore"
	KindExpirable   Kind = "expirable semaphore"
	KindLatch       Kind = "latch"
	KindRateLimiter Kind = "rate limiter"
	KindBarrier     Kind = "barrier"
	KindCounter     Kind = "semaphore or latch" // a number whose purpose is not stored, as package admin finds them
)
