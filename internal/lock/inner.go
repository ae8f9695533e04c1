package lock

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/request"
)

// A caller that has the lock already waits only for others of the same owner: for its siblings, or for those of its scope.

// enterScope acquires or re-enters the lock for a scope.
func (l *Spec) enterScope(ctx context.Context, sc *scope, o *Params, outer *Hold) (*Hold, error) {
	c := l.locks
	n := sc.enter(&l.Lock)
	defer sc.leave(&l.Lock)
	p := c.newWaiter(&l.Lock, o)
	select {
	case <-n.slot:
	default:
		if o.Try {
			return nil, p.giveUpError(request.ErrWaitOver)
		}
		over := c.unplaced.publish(p.wait(ctx))
		w := request.Waiting{Key: p.key, Asks: &n.refusals, Since: o.Since, Until: p.until, Stop: c.Server.Done}
		_, err := request.Wait(ctx, c.Server, &w, n.slot)
		if over(); err != nil {
			return nil, p.giveUpError(err)
		}
	}
	defer func() { n.slot <- struct{}{} }()
	o.scope, o.asks = sc, &n.refusals
	if t := n.t.Load(); t != nil {
		h, err := sc.join(ctx, t, &l.Lock, o)
		if !errors.Is(err, errNotNested) {
			return h, p.giveUpError(err)
		}
	}
	var h *Hold
	var err error
	if outer != nil {
		h, err = c.nest(ctx, &l.Lock, outer, o)
	} else {
		h, err = l.acquire(c, ctx, &l.Lock, *o)
	}
	if err == nil {
		n.t.Store(h.t)
	}
	return h, err
}

// nest re-enters the lock from outer, after its siblings.
func (c *table) nest(ctx context.Context, l *Lock, outer *Hold, o *Params) (*Hold, error) {
	switch {
	case outer.reads && l.kind.stops:
		return nil, writeInRead(l.Name())
	case outer.reads:
		p := waiter{c: c, key: outer.t.lock.key}
		h, err := outer.joinNested(ctx, o)
		return p.nested(outer, h, err)
	}
	p := c.newWaiter(l, o)
	p.owner, p.ttl = outer.t.id, max(0, outer.t.lease.Left(p.start))
	if err := p.amongSiblings(ctx, outer, o); err != nil {
		return nil, err
	}
	h, err := outer.t.reenter(ctx, outer, l, o)
	return p.nested(outer, h, err)
}

// nested returns a hold in outer that has begun, or says why it could not.
func (p *waiter) nested(outer, h *Hold, err error) (*Hold, error) {
	if err == nil {
		return h, nil
	}
	if over := outer.unenterable(); over != nil {
		return nil, over
	}
	return nil, p.giveUpError(err)
}

// amongSiblings waits until it is the caller's turn to nest in outer.
func (p *waiter) amongSiblings(ctx context.Context, outer *Hold, o *Params) error {
	g := outer.siblings()
	switch {
	case g.TryEnter():
		return nil
	case o.Try:
		return p.giveUpError(request.ErrWaitOver)
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
	return p.giveUpError(err)
}
