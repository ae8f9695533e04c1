package lock

import (
	"cmp"
	"context"
	"errors"

	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/request"
)

// A Spec is a lock, and how its callers come to it.
type Spec struct {
	Lock

	locks *Locks // of whose callers it is wanted
	// acquire waits for the lock for a caller that does not have it already.
	acquire func(c *Locks, ctx context.Context, l *Lock, o Params) (*Hold, error)
}

// Compare orders locks that are acquired together.
func Compare(a, b *Spec) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.c.ServerName, b.c.ServerName), cmp.Compare(a.entry.name, b.entry.name))
}

// Same says whether two locks of one client exclude each other, or are two sides of
// one.
func Same(a, b *Spec) bool {
	return a.c == b.c && a.key == b.key && (!a.kind.part || !b.kind.part || a.values().overlaps(b.values()))
}

// Client returns the locks of the client that the lock is of.
func (l *Spec) Client() *Locks { return l.locks }

// Enter acquires or re-enters the lock.
func (l *Spec) Enter(ctx context.Context, o Params) (*Hold, error) {
	if l.err != nil {
		return nil, l.err
	}
	o.Wish = l.wish
	if l.c.Server.Closed() {
		return nil, request.ErrClosed
	}
	if l.twin != "" {
		if err := l.c.Twins.Use(l.twin, l.key); err != nil {
			return nil, err
		}
	}
	outer, sc, err := l.enclosing(ctx)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, fact.Busy{Name: l.Name(), Cause: request.ContextError(ctx)}
	case sc != nil:
		return l.enterScope(ctx, sc, &o, outer)
	case outer != nil:
		return l.locks.nest(ctx, &l.Lock, outer, &o)
	}
	return l.acquire(l.locks, ctx, &l.Lock, o)
}

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
