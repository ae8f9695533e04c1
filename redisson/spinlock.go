package redisson

import (
	"math/rand/v2"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/renew"
)

// A Backoff says how long to wait before the try after the n-th failed one; n
// counts from 1. Less than a millisecond counts as one. It is called by several
// goroutines at a time.
type Backoff func(n int) time.Duration

// minBackoff is the shortest pause between two tries, whatever a Backoff says.
const minBackoff = time.Millisecond

// Constant waits for d each time.
func Constant(d time.Duration) Backoff {
	return func(int) time.Duration { return max(d, minBackoff) }
}

// Exponential waits for first, then twice as long each time, at most for
// most, each time with a jitter of a quarter more or less. Redisson's default is
// Exponential(time.Millisecond, 128*time.Millisecond), give or take the
// jitter.
func Exponential(first, most time.Duration) Backoff {
	first = max(first, minBackoff)
	most = min(max(first, most), renew.MaxLease)
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
// neither to wait nor to release, and wakes nobody: a waiter of
// redlatch.Client.Lock would notice its release only when the TTL has passed, so
// do not mix the two under one name.
//
// Of the goroutines of this process only one tries at a time. A call that waits
// for so long at most tries a last time just before that is over. A backoff of nil
// is Exponential(time.Millisecond, 128*time.Millisecond).
func SpinLock(c *redlatch.Client, name string, backoff Backoff, opts ...redlatch.PlainOption) *redlatch.Lock {
	if backoff == nil {
		backoff = Exponential(time.Millisecond, 128*time.Millisecond)
	}
	e := bridge.Open(c)
	return bridge.NewLock(c, string(redlatch.KindLock), e.Locks.Spin(e.Server.Key(name), backoff), opts).(*redlatch.Lock)
}
