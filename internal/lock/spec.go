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
	acquire func(c *Locks, ctx context.Context, l *Lock, want Params) (*Hold, error)
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
func (lock *Spec) Client() *Locks { return lock.locks }

// Enter acquires or re-enters the lock.
func (lock *Spec) Enter(ctx context.Context, want Params) (*Hold, error) {
	if lock.err != nil {
		return nil, lock.err
	}
	want.Wish = lock.wish
	if lock.c.Server.Closed() {
		return nil, request.ErrClosed
	}
	if lock.twin != "" {
		if err := lock.c.Twins.Use(lock.twin, lock.key); err != nil {
			return nil, err
		}
	}
	outer, scope, err := lock.enclosing(ctx)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, fact.Busy{Name: lock.Name(), Cause: request.ContextError(ctx)}
	case scope != nil:
		return lock.enterScope(ctx, scope, &want, outer)
	case outer != nil:
		return lock.locks.nest(ctx, &lock.Lock, outer, &want)
	}
	return lock.acquire(lock.locks, ctx, &lock.Lock, want)
}

// enterScope acquires or re-enters the lock for a scope.
func (lock *Spec) enterScope(ctx context.Context, scope *scope, want *Params, outer *Hold) (*Hold, error) {
	c := lock.locks
	nest := scope.enter(&lock.Lock)
	defer scope.leave(&lock.Lock)
	p := c.newWaiter(&lock.Lock, want)
	select {
	case <-nest.slot:
	default:
		if want.Try {
			return nil, p.giveUpError(request.ErrWaitOver)
		}
		over := c.unplaced.publish(p.wait(ctx))
		how := request.Waiting{Key: p.key, Asks: &nest.refusals, Since: want.Since, Until: p.until, Stop: c.Server.Done}
		_, err := request.Wait(ctx, c.Server, &how, nest.slot)
		if over(); err != nil {
			return nil, p.giveUpError(err)
		}
	}
	defer func() { nest.slot <- struct{}{} }()
	want.scope, want.asks = scope, &nest.refusals
	if t := nest.t.Load(); t != nil {
		h, err := scope.join(ctx, t, &lock.Lock, want)
		if !errors.Is(err, errNotNested) {
			return h, p.giveUpError(err)
		}
	}
	var h *Hold
	var err error
	if outer != nil {
		h, err = c.nest(ctx, &lock.Lock, outer, want)
	} else {
		h, err = lock.acquire(c, ctx, &lock.Lock, *want)
	}
	if err == nil {
		nest.t.Store(h.t)
	}
	return h, err
}
