package wait

import (
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/wire"
)

// seen is who had a lock when we last saw it, and for how long.
type seen struct {
	owner string
	ttl   time.Duration
	free  time.Time // from when on nobody has it, if it only stays until then: see keep.go of package term; else zero
	asked time.Time // when the server was asked that said so
}

// busy says why nobody else could have the lock.
func (seen seen) busy(name string) fact.Busy {
	b := fact.Busy{Name: name, Owner: seen.owner, TTL: seen.ttl}
	if seen.owner == wire.Mode {
		b.Owner, b.Kind = "", claim.ReadWrite
	}
	if !seen.free.IsZero() {
		b.After = max(0, time.Until(seen.free))
	}
	return b
}

// sawAt is what the server has said of a lock that is not free, when it was asked
// then.
func sawAt(asked time.Time, owner string, ttl time.Duration) seen {
	seen := seen{owner: owner, ttl: max(0, ttl), asked: asked}
	if ttl > 0 && wire.Kept(owner) {
		seen.free = asked.Add(ttl)
	}
	return seen
}

// Saw notes what the server has said of a lock that is not free, when it was asked
// then.
func (p *Waiter) Saw(asked time.Time, owner string, ttl time.Duration) {
	p.seen = sawAt(asked, owner, ttl)
}

// InVain says whether the caller waits less long than the lock stays.
func (p *Waiter) InVain() bool { return !p.until.IsZero() && p.until.Before(p.free) }

// inVain says whether the lock stays for longer than a caller waits that has come
// at that time, and has others before it. What they knew before it came may not be
// so any more: somebody may have freed the lock. Then whoever is inside the gate
// is to ask anew. A spin lock's caller does that after its pause.
func (e *Entry) inVain(came, until time.Time) bool {
	e.Lock()
	free, asked := e.seen.free, e.seen.asked
	e.Unlock()
	switch {
	case until.IsZero() || !until.Before(free) || e.current() != nil:
		return false
	case asked.Before(came):
		e.news.Nudge()
		return false
	}
	return true
}

// saw notes who has the lock. If nobody has it any more, and it stays, those in
// line learn that.
func (e *Entry) saw(now seen) {
	e.Lock()
	e.seen = now
	if e.Extra != nil && !now.free.IsZero() {
		e.Extra.Saw(now.asked, now.free)
	}
	e.Unlock()
	if !now.free.IsZero() {
		e.gate.Wake()
	}
}

// lastSeen returns who has the lock, as far as we know, and for how long.
func (e *Entry) lastSeen() seen {
	if cur := e.current(); cur != nil {
		return seen{owner: cur.ID, ttl: max(0, cur.Lease.Left(time.Now()))}
	}
	e.Lock()
	defer e.Unlock()
	return e.seen
}
