package term

import (
	"time"

	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// A lock can be held for so long at least, however soon its holder releases it, so
// that others whose clocks are late find it taken. The term ends as any other
// does. Until the time is over an id that nobody has stays in Redis, known to this
// client as one that nobody releases, and to all as one that nobody has: its TTL
// says when the lock is free. A caller that does not wait for so long is told so
// at once. The TTL of a holder's id says no such thing, as the holder may release
// it earlier.

var errNotKept = invalid.Errorf("redlatch: MinHold is for Lock, StripedLock and SpinLock, and the hold that is to be re-entered is of a lock of another kind, which cannot stay when its holder has released it; acquire both as the same kind of lock")

// A stay is until when a lock is to stay. It is guarded by Term.mu.
type stay struct{ until time.Time }

// atLeast lets the lock stay until then.
func (stay *stay) atLeast(until time.Time) {
	if until.After(stay.until) {
		stay.until = until
	}
}

// left returns for how long the lock is to stay. Of most locks nobody has asked
// that.
func (stay *stay) left() time.Duration {
	if stay.until.IsZero() {
		return 0
	}
	return max(0, time.Until(stay.until))
}

// staying prepares the last request of t's id if its lock is to stay for so long,
// as nobody's. Until then both ids are known, and for as long as the lock may last
// if this request is late, or is never executed.
func (t *owner) staying(rest, longest time.Duration) request.Call {
	nobody := wire.KeptField(t.Env.NewID())
	for _, id := range []string{t.ID, nobody} {
		t.Env.lapsed.add(id, max(rest, t.Length, longest)+request.LongestAttempt, true)
	}
	return t.Op(t.Lock.Kind.Keep, []string{t.ID, nobody, t.Lock.Channel, wire.MillisUp(rest)})
}
