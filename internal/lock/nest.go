package lock

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/gate"
	"github.com/redlatch/redlatch/internal/request"
)

// A nesting is a hold's place in the nest of its term. Those that are nested in the same
// hold are siblings, and take turns. It is guarded by term.mu.
type nesting struct {
	prev, next *Hold             // of the live holds of the term
	parent     *Hold             // the hold that this one is nested in; nil for the first
	children   *gate.Gate[*term] // at which those line up that nest in this hold
	joined     *Hold             // the first hold of the same scope, whose turn this one shares
	open       int               // this hold, if live, plus the nested one that has its turn
}

// A nest is what a term knows of its holds. It is guarded by term.mu.
type nest struct {
	holds   *Hold         // the live ones, linked by Hold.next
	count   int           // holds that are live or being entered
	watched int           // of the live ones, how many the watchdog keeps
	keep    time.Duration // the longest lease that it is to renew one of them for
	unfreed int           // so many holds have ended by a window, and count until they are released
}

// keepLess has the others kept for no longer than they ask for, and for least, now that the hold that asked for most has
// ended. What Redis has runs down by itself.
func (n *nest) keepLess(least time.Duration) {
	keep := least
	for h := n.holds; h != nil && keep < n.keep; h = h.next {
		keep = max(keep, h.lease)
	}
	n.keep = keep
}

// liveOfLocked returns a live hold of a scope.
func (t *term) liveOfLocked(sc *scope) *Hold {
	for h := t.holds; h != nil; h = h.next {
		if h.scope == sc {
			return h
		}
	}
	return nil
}

// firstOfLocked returns the hold whose turn the live holds of a scope share.
func (t *term) firstOfLocked(sc *scope) *Hold {
	h := t.liveOfLocked(sc)
	if h != nil && h.joined != nil {
		return h.joined
	}
	return h
}

// nest re-enters the lock from outer, after its siblings.
func (c *Locks) nest(ctx context.Context, l *Spec, outer *Hold, o *Params) (*Hold, error) {
	switch {
	case outer.reads && l.kind.stops:
		return nil, writeInRead(l.Name())
	case outer.reads:
		return c.joinNested(ctx, outer, o)
	}
	p := newWaitParams(l, o)
	p.owner, p.ttl = outer.t.id, max(0, outer.t.lease.Left(p.start))
	if err := p.amongSiblings(ctx, outer, o); err != nil {
		return nil, err
	}
	h, err := outer.t.reenter(ctx, outer, l, o)
	return p.nested(outer, h, err)
}

// nested returns a hold in outer that has begun, or says why it could not.
func (p *waitParams) nested(outer, h *Hold, err error) (*Hold, error) {
	if err == nil {
		return h, nil
	}
	if over := outer.unenterable(); over != nil {
		return nil, over
	}
	return nil, p.asBusy(err)
}

// amongSiblings waits until it is the caller's turn to nest in outer.
func (p *waitParams) amongSiblings(ctx context.Context, outer *Hold, o *Params) error {
	g := outer.siblings()
	switch {
	case g.TryEnter():
		return nil
	case o.Try:
		return p.asBusy(request.ErrWaitOver)
	}
	o.asks.Over()
	_, in, err := p.lineUp(ctx, g, outer.End().Done(), nil, func(waited time.Duration) {
		p.c.Events.SlowWait(p.c.Server.Name(p.key), waited, o.At, outer.t.site())
	})
	if err == nil {
		return nil
	}
	if in {
		g.Exit()
	}
	if over := outer.unenterable(); over != nil {
		return over
	}
	return p.asBusy(err)
}

// closed frees the hold's turn among its siblings when it and everything that
// was nested in it, or shares its turn, has been released.
func (h *Hold) closed() {
	for h.joined != nil || h.parent != nil { // the first one of a nest has no siblings
		h.t.mu.Lock()
		h.open--
		over := h.open == 0
		h.t.mu.Unlock()
		switch {
		case !over:
			return
		case h.joined != nil:
			h = h.joined
		default:
			h.parent.siblings().Exit()
			h = h.parent
		}
	}
}

// siblings returns the gate at which callers line up that nest in h.
func (h *Hold) siblings() *gate.Gate[*term] {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if h.children == nil {
		h.children = &gate.Gate[*term]{}
	}
	return h.children
}
