package lock

import (
	"time"

	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// A lock can be held for so long at least, however soon its holder releases it, so that others
// whose clocks are late find it taken. The term ends as any other does. Until the time is over an
// id that nobody has stays in Redis, known to this client as one that nobody releases, and to all as
// one that nobody has: its TTL says when the lock is free. A caller that does not wait for so long
// is told so at once. The TTL of a holder's id says no such thing, as the holder may release it earlier.

var errNotKept = invalid.Errorf("redlatch: MinHold is for Lock, StripedLock and SpinLock, and the hold that is to be re-entered is of a lock of another kind, which cannot stay when its holder has released it; acquire both as the same kind of lock")

// A stay is until when a lock is to stay. It is guarded by term.mu.
type stay struct{ until time.Time }

// atLeast lets the lock stay until then.
func (s *stay) atLeast(until time.Time) {
	if until.After(s.until) {
		s.until = until
	}
}

// left returns for how long the lock is to stay. Of most locks nobody has asked that.
func (s *stay) left() time.Duration {
	if s.until.IsZero() {
		return 0
	}
	return max(0, time.Until(s.until))
}

// sawAt is what the server has said of a lock that is not free, when it was asked then.
func sawAt(asked time.Time, owner string, ttl time.Duration) seen {
	s := seen{owner: owner, ttl: max(0, ttl), asked: asked}
	if ttl > 0 && wire.Kept(owner) {
		s.free = asked.Add(ttl)
	}
	return s
}

// inVain says whether the caller waits less long than the lock stays.
func (p *waitParams) inVain() bool { return !p.until.IsZero() && p.until.Before(p.free) }

// inVain says whether the lock stays for longer than a caller waits that has come at that time, and has others before it.
// What they knew before it came may not be so any more: somebody may have freed the lock. Then whoever is inside the gate is
// to ask anew. A spin lock's caller does that after its pause.
func (e *entry) inVain(came, until time.Time) bool {
	e.mu.Lock()
	free, asked := e.seen.free, e.seen.asked
	e.mu.Unlock()
	switch {
	case until.IsZero() || !until.Before(free) || e.current() != nil:
		return false
	case asked.Before(came):
		e.news.Nudge()
		return false
	}
	return true
}

// inVainLocked says whether one of the members waits less long than the lock stays. All are told to join again: then that one
// sees it. entry.mu is locked.
func (g *readerGroup) inVainLocked() bool {
	for m := range g.members.All() {
		if !m.Until.IsZero() && m.Until.Before(g.entry.seen.free) && !g.entry.seen.asked.Before(m.Since) {
			return true
		}
	}
	return false
}

// keeping prepares the last request of t's id if its lock is to stay for so long, as nobody's. Until then
// both ids are known, and for as long as the lock may last if this request is late, or is never executed.
func (t *term) keeping(rest time.Duration) request.Call {
	nobody := wire.KeptField(t.c.NewID())
	for _, id := range []string{t.id, nobody} {
		t.c.lapsed.add(id, max(rest, t.length, t.longest)+request.LongestAttempt, true)
	}
	return t.op(t.lock.kind.keep, []string{t.id, nobody, t.lock.channel, wire.MillisUp(rest)})
}
