// Package args checks what callers of any package give to a call: contexts,
// functions, waits, leases and lifetimes. It promises that each of them has the
// same bounds, and the same words for a refusal, in every package.
package args

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/wire"
)

// ErrNilContext refuses what could not be ended.
var ErrNilContext = invalid.Errorf("redlatch: nil context; use context.Background() if nothing is to end the call")

// ErrNilFunction refuses what could not be called.
var ErrNilFunction = invalid.Errorf("redlatch: nil function; there is nothing to run")

// MinLease is the shortest lease: a shorter one leaves no time to trust it.
const MinLease = 20 * time.Millisecond

// Lease returns a lease as Redis counts it, or why it cannot be one.
func Lease(d time.Duration) (time.Duration, error) {
	switch {
	case d < MinLease:
		return 0, invalid.Errorf("redlatch: a lease of %v is too short; it must be at least %v, of which %v are the safety margin", d, MinLease, renew.Margin(MinLease))
	case d > renew.MaxLease:
		return 0, invalid.Errorf("redlatch: a lease of %v is too long; leave Lease out, and the watchdog keeps the hold for as long as the process lives", d)
	}
	return Millis(d), nil
}

// Millis rounds a duration up to what Redis counts.
func Millis(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// Extension returns what Extend is given as Redis counts it. Extend is not for
// what the watchdog keeps.
func Extension(ctx context.Context, d time.Duration, watchdog bool) (time.Duration, error) {
	switch {
	case ctx == nil:
		return 0, ErrNilContext
	case watchdog:
		return 0, invalid.Errorf("redlatch: Extend is for holds acquired with Lease; the watchdog extends this one by itself")
	}
	return Lease(d)
}

// ForEver is a time to live that does not end, as scripts have it.
const ForEver = "0"

// Expire lets an object live for d; lives tells it for how many ms, as scripts
// have them.
func Expire(ctx context.Context, d time.Duration, lives func(ctx context.Context, ms string) (bool, error)) (bool, error) {
	if d <= 0 || d > renew.MaxLease {
		return false, invalid.Errorf("redlatch: a lifetime of %v; it must be positive and at most %v (Persist lets an object last for ever)", d, renew.MaxLease)
	}
	return lives(ctx, wire.MillisUp(d))
}

// A Patience is how long a call waits: for as long as its context lasts, if it is
// zero.
type Patience struct {
	bounded bool
	d       time.Duration
}

// AtMost is the patience of the calls that begin with Try.
func AtMost(d time.Duration) Patience { return Patience{bounded: true, d: d} }

// End returns until when the call waits; zero: for as long as its context lasts.
// And it says whether it tries once. Such a call has no end of its own: it goes on
// for Config.OutageTimeout if the server does not answer.
func (p Patience) End() (until time.Time, once bool, err error) {
	switch {
	case !p.bounded:
		return time.Time{}, false, nil
	case p.d < 0:
		return time.Time{}, false, invalid.Errorf("redlatch: a wait of %v; it must not be negative (0 tries once, for Config.OutageTimeout if the server does not answer)", p.d)
	case p.d == 0:
		return time.Time{}, true, nil
	case p.d > renew.MaxLease: // which is none
		return time.Time{}, false, nil
	}
	return time.Now().Add(p.d), false, nil
}
