package lock

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/request"
)

// A caller that has the lock already waits only for others of the same owner: for its siblings, or for those of its scope.

// nest re-enters the lock from outer, after its siblings.
func (c *table) nest(ctx context.Context, l *Lock, outer *Hold, want *Params) (*Hold, error) {
	if outer.reads {
		p := waiter{c: c, key: l.Key}
		h, err := outer.joinNested(ctx, l, want)
		return p.nested(outer, h, err)
	}
	t := outer.Term()
	p := c.newWaiter(l, want)
	p.owner, p.ttl = t.id, max(0, t.lease.Left(p.start))
	if err := p.amongSiblings(ctx, outer, want); err != nil {
		return nil, err
	}
	h, err := t.reenter(ctx, outer, l, want)
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
		p.c.Events.SlowWait(p.c.Server.Name(p.key), waited, want.At, outer.Term().site())
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

// EnterScope acquires or re-enters the lock for a scope, after the others of it. fresh is how to come to the lock if the scope
// has it not.
func (c *table) EnterScope(ctx context.Context, l *Lock, scope *scope, want *Params, fresh func() (*Hold, error)) (*Hold, error) {
	nest := scope.Enter(l, want)
	defer nest.Leave(l)
	p := c.newWaiter(l, want)
	select {
	case <-nest.Slot:
	default:
		if want.Try {
			return nil, p.giveUpError(request.ErrWaitOver)
		}
		over := c.unplaced.publish(p.wait(ctx))
		how := request.Waiting{Key: p.key, Asks: &nest.Refusals, Since: want.Since, Until: p.until, Stop: c.Server.Done}
		_, err := request.Wait(ctx, c.Server, &how, nest.Slot)
		if over(); err != nil {
			return nil, p.giveUpError(err)
		}
	}
	defer func() { nest.Slot <- struct{}{} }()
	h, err := nest.Join(ctx, l, want)
	if !errors.Is(err, errNotNested) {
		return h, p.giveUpError(err)
	}
	if h, err = fresh(); err == nil {
		nest.Has(h)
	}
	return h, err
}
