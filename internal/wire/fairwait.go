package wire

import "time"

// The bounds of Redisson's fairLockWaitTimeout, and what it is unless it is set. The first waiter
// of a queue is heard every second, and renews there what is left of it: with less than
// LeastFairWait Redisson would pass over waiters that live.
const (
	DefaultFairWait = 5 * time.Minute
	LeastFairWait   = 5 * time.Second
	MostFairWait    = 24 * time.Hour
)
