package redlatch

import (
	"math/rand/v2"
	"time"
)

// A Backoff says how long to wait before the try after the n-th failed one; n
// counts from 1. Less than a millisecond counts as one. It is called by several
// goroutines at a time.
type Backoff func(n int) time.Duration

// minBackoff is the shortest pause between two tries, whatever a Backoff says.
const minBackoff = time.Millisecond

// ConstantBackoff waits for d each time.
func ConstantBackoff(d time.Duration) Backoff {
	return func(int) time.Duration { return max(d, minBackoff) }
}

// ExponentialBackoff waits for first, then twice as long each time, at most for
// most, each time with a jitter of a quarter more or less. Redisson's default is
// ExponentialBackoff(time.Millisecond, 128*time.Millisecond), give or take the
// jitter.
func ExponentialBackoff(first, most time.Duration) Backoff {
	first = max(first, minBackoff)
	most = min(max(first, most), maxLease)
	return func(n int) time.Duration {
		d := most
		if shift := max(n-1, 0); shift < 32 && first<<shift>>shift == first {
			d = min(most, first<<shift)
		}
		return d - d/4 + rand.N(d/2+1) //nolint:gosec // jitter
	}
}

// SpinLock returns the lock with this name for which callers do not wait by
// messages but try again and again, Redisson's getSpinLock. It needs no Pub/Sub,
// neither to wait nor to release, and wakes nobody: a waiter of Lock(name) would
// notice its release only when the TTL has passed, so do not mix the two under
// one name.
//
// Of the goroutines of this process only one tries at a time. With Wait it tries a last
// time just before that is over. A backoff of nil
// is ExponentialBackoff(time.Millisecond, 128*time.Millisecond).
func (c *Client) SpinLock(name string, backoff Backoff, opts ...PlainOption) *Lock {
	if backoff == nil {
		backoff = ExponentialBackoff(time.Millisecond, 128*time.Millisecond)
	}
	return newLock(c, KindLock, c.locks.Spin(c.server.Key(name), backoff), opts)
}
