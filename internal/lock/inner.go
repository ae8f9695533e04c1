package lock

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/request"
)

// A caller that has the lock already waits only for others of the same owner: for its siblings, or for those of its scope.

// nest re-enters the lock from outer, after its siblings.
func (c *table) nest(ctx context.Context, l *Lock, outer *Hold, want *Params) (*Hold, error) {
	switch {
	case outer.reads && l.kind.stops:
		return nil, writeInRead(l.Name())
	case outer.reads:
		p := waiter{c: c, key: outer.t.lock.key}
		h, err := outer.joinNested(ctx, want)
		return p.nested(outer, h, err)
	}
	p := c.newWaiter(l, want)
	p.owner, p.ttl = outer.t.id, max(0, outer.t.lease.Left(p.start))
	if err := p.amongSiblings(ctx, outer, want); err != nil {
		return nil, err
	}
	h, err := outer.t.reenter(ctx, outer, l, want)
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
func (p *waiter) amongSiblings(ctx context.Context, outer *Hold, want *Params) error {
	g := outer.siblings()
	switch {
	case g.TryEnter():
		return nil
	case want.Try:
		return p.giveUpError(request.ErrWaitOver)
	}
	want.asks.Over()
	_, in, err := p.lineUp(ctx, g, turn{until: p.until, over: outer.End().Done()}, nil, func(waited time.Duration) {
		p.c.Events.SlowWait(p.c.Server.Name(p.key), waited, want.At, outer.t.site())
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
