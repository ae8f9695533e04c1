package wait

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
)

// A caller that has the lock already waits only for others of the same owner: for
// its siblings, or for those of its scope.

// Nest re-enters the lock from outer, after its siblings.
func (c *Table) Nest(ctx context.Context, l *term.Lock, outer *term.Hold, want *term.Params) (*term.Hold, error) {
	if outer.Reads {
		p := Waiter{c: c, key: l.Key}
		h, err := outer.JoinNested(ctx, l, want)
		return p.nested(outer, h, err)
	}
	t := outer.Term()
	p := c.NewWaiter(l, want)
	p.owner, p.ttl = t.ID, max(0, t.Lease.Left(p.start))
	if err := p.amongSiblings(ctx, outer, want); err != nil {
		return nil, err
	}
	h, err := t.Reenter(ctx, outer, l, want)
	return p.nested(outer, h, err)
}

// nested returns a hold in outer that has begun, or says why it could not.
func (p *Waiter) nested(outer, h *term.Hold, err error) (*term.Hold, error) {
	if err == nil {
		return h, nil
	}
	if over := outer.Unenterable(); over != nil {
		return nil, over
	}
	return nil, p.GiveUpError(err)
}

// amongSiblings waits until it is the caller's turn to nest in outer.
func (p *Waiter) amongSiblings(ctx context.Context, outer *term.Hold, want *term.Params) error {
	g := outer.Siblings()
	switch {
	case g.TryEnter():
		return nil
	case want.Try:
		return p.GiveUpError(request.ErrWaitOver)
	}
	want.Asks.Over()
	_, in, err := p.lineUp(ctx, g, turn{until: p.until, over: outer.End().Done()}, nil, func(waited time.Duration) {
		p.c.Events.SlowWait(p.c.Server.Name(p.key), waited, want.At, outer.Term().Site())
	})
	if err == nil {
		return nil
	}
	if in {
		g.Exit()
	}
	if over := outer.Unenterable(); over != nil {
		return over
	}
	return p.GiveUpError(err)
}

// EnterScope acquires or re-enters the lock for a scope, after the others of it.
// fresh acquires the lock if the scope does not hold it.
func (c *Table) EnterScope(ctx context.Context, l *term.Lock, scope *term.Scope, want *term.Params, fresh func() (*term.Hold, error)) (*term.Hold, error) {
	nest := scope.Enter(l, want)
	defer nest.Leave(l)
	p := c.NewWaiter(l, want)
	select {
	case <-nest.Slot:
	default:
		if want.Try {
			return nil, p.GiveUpError(request.ErrWaitOver)
		}
		over := c.unplaced.publish(p.shownFor(ctx))
		how := request.Waiting{Key: p.key, Asks: &nest.Refusals, Since: want.Since, Until: p.until, Stop: c.Server.Done}
		_, err := request.Wait(ctx, c.Server, &how, nest.Slot)
		if over(); err != nil {
			return nil, p.GiveUpError(err)
		}
	}
	defer func() { nest.Slot <- struct{}{} }()
	h, err := nest.Join(ctx, l, want)
	if !errors.Is(err, term.ErrNotNested) {
		return h, p.GiveUpError(err)
	}
	if h, err = fresh(); err == nil {
		nest.Note(h)
	}
	return h, err
}
