package wait

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/gate"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/queue"
)

// No list has the holders of locks, or the callers that wait for one. A question
// goes through the entries: their terms have the holds, and a caller that waits
// leaves what is to be known of it where it waits. A caller that gets a lock at
// once leaves nothing, so it pays nothing.

// A shownWait is what a caller that waits for a lock leaves.
type shownWait struct {
	claim.Wait

	l *term.Lock // nil: it is not to be shown
}

// Shown returns what the caller leaves of itself where it waits.
func (p *Waiter) Shown(ctx context.Context) claim.Wait {
	return claim.Wait{Ctx: ctx, Since: p.start, Until: p.until, Site: p.at}
}

// shownFor adds the lock that it waits for.
func (p *Waiter) shownFor(ctx context.Context) shownWait { return shownWait{p.Shown(ctx), p.lock} }

// add adds the wait to a list, if it is to be shown. The list may be full then.
func (w *shownWait) add(list *claim.List, owner string) (more bool) {
	if w.l == nil {
		return true
	}
	return list.Wait(w.l.Wanted(owner), &w.Wait)
}

// A takingWait is the wait of a caller that is inside a gate, and has to wait
// there, to take a term.
type takingWait struct {
	shownWait

	t *term.Term
}

// Publish makes the caller, which is inside the gate, visible to Claims while it
// has to wait to take t.
func (p *Waiter) Publish(ctx context.Context, e *Entry, t *term.Term) {
	if p.lock == nil || (p.shown != nil && p.shown.t == t) {
		return
	}
	p.shown = &takingWait{p.shownFor(ctx), t}
	e.Lock()
	defer e.Unlock()
	e.waits = p.shown
}

// retract is the end of Publish. The entry may be another's meanwhile.
func (e *Entry) retract(w *takingWait) {
	e.Lock()
	defer e.Unlock()
	if e.waits == w {
		e.waits = nil
	}
}

// unplaced are the callers that wait for a lock where no entry knows of them.
type unplaced struct {
	mu   sync.Mutex
	line queue.Line[*unplacedWait]
}

// An unplacedWait is the wait of one of them.
type unplacedWait struct {
	shownWait

	place queue.Place[*unplacedWait]
}

// publish makes a wait visible to Claims, until over is called.
func (u *unplaced) publish(w shownWait) (over func()) {
	x := &unplacedWait{shownWait: w}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.line.Push(&x.place, x, false)
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.line.Remove(&x.place)
	}
}

// Publish makes a caller that has waited for the lock since then visible to
// Claims, until over is called. It is for callers that want several locks, and
// wait for none of them now.
func (c *Table) Publish(ctx context.Context, l *term.Lock, since time.Time, want *term.Params) (over func()) {
	return c.unplaced.publish(shownWait{claim.Wait{Ctx: ctx, Since: since, Until: want.Until, Site: want.At}, l})
}

// Claims tells what callers of this client hold and wait for: each thing as it is
// when it is looked at, so what passes from one to another meanwhile may be told
// twice, or not at all. Nobody who acquires or releases waits for more than the
// copying of one queue, and no mutex is locked while yield runs.
func (c *Table) Claims(yield claim.Yield) {
	var list claim.List
	for _, e := range c.all() {
		if !e.claims(&list, yield) {
			return
		}
	}
	for _, local := range c.localQueues.All() {
		if !queued(&local.gate, &list, yield) {
			return
		}
	}
	u := &c.unplaced
	u.mu.Lock()
	others := u.line.Len()
	for x := range u.line.All() {
		others--
		if !x.add(&list, "") {
			break
		}
	}
	list.Others(others)
	u.mu.Unlock()
	list.Tell(yield)
}

// claims tells what callers have to do with one lock.
func (e *Entry) claims(list *claim.List, yield claim.Yield) (more bool) {
	e.Lock()
	t, w := e.cur, e.waits
	if e.Extra != nil {
		e.Extra.Waits(list)
	}
	e.Unlock()
	if !list.Tell(yield) || !queued(&e.gate, list, yield) {
		return false
	}
	if t == nil || t.Home != e { // the entry of a queue shows the term of another
		return true
	}
	nests, fresh := t.Claims(list, e.news.Confirmed())
	if fresh && w != nil && w.t == t {
		w.add(list, t.ID)
	}
	if !list.Tell(yield) {
		return false
	}
	for _, g := range nests {
		if !queued(g, list, yield) {
			return false
		}
	}
	return true
}

// queued tells of those who are queued at a gate.
func queued(g *gate.Gate[*term.Term], list *claim.List, yield claim.Yield) (more bool) {
	others := g.Look(func(who any) bool {
		tk, ok := who.(*ticket)
		return !ok || tk.add(list, "")
	})
	list.Others(others)
	return list.Tell(yield)
}
