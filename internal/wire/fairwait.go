package wire

import "time"

// Redisson's fairLockWaitTimeout: its default, and the least and the most that
// redlatch accepts. The first waiter of a queue renews its place once a second.
// With less than LeastFairWait, Redisson would drop it although it lives.
const (
	DefaultFairWait = 5 * time.Minute
	LeastFairWait   = 5 * time.Second
	MostFairWait    = 24 * time.Hour
)
