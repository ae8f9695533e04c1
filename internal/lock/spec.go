package lock

import (
	"cmp"
	"context"

	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
)

// A Spec is a lock, and how its callers come to it.
type Spec struct {
	term.Lock

	locks *Locks // of whose callers it is wanted
	// acquire waits for the lock for a caller that does not have it already.
	acquire func(c *Locks, ctx context.Context, l *term.Lock, want term.Params) (*term.Hold, error)
}

// Compare orders locks that are acquired together.
func Compare(a, b *Spec) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Env.ServerName, b.Env.ServerName), cmp.Compare(a.Entry.Name, b.Entry.Name))
}

// Same says whether two locks of one client exclude each other, or are two sides
// of one.
func Same(a, b *Spec) bool {
	return a.Env == b.Env && a.Key == b.Key && a.Excludes(&b.Lock)
}

// Client returns the locks of the client that the lock is of.
func (lock *Spec) Client() *Locks { return lock.locks }

// Enter acquires or re-enters the lock.
func (lock *Spec) Enter(ctx context.Context, want term.Params) (*term.Hold, error) {
	if lock.Err != nil {
		return nil, lock.Err
	}
	want.Wish = lock.Wish
	if lock.Env.Server.Closed() {
		return nil, request.ErrClosed
	}
	if lock.Twin != "" {
		if err := lock.Env.Twins.Use(lock.Twin, lock.Key); err != nil {
			return nil, err
		}
	}
	outer, scope, err := lock.Enclosing(ctx)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, fact.Busy{Name: lock.Name(), Cause: request.ContextError(ctx)}
	case scope != nil:
		return lock.enterScope(ctx, scope, want, outer)
	case outer != nil:
		return lock.locks.Nest(ctx, &lock.Lock, outer, &want)
	}
	return lock.acquire(lock.locks, ctx, &lock.Lock, want)
}

// enterScope acquires or re-enters the lock for a scope.
func (lock *Spec) enterScope(ctx context.Context, scope *term.Scope, want term.Params, outer *term.Hold) (*term.Hold, error) {
	c, l := lock.locks, &lock.Lock
	return c.EnterScope(ctx, l, scope, &want, func() (*term.Hold, error) {
		if outer != nil {
			return c.Nest(ctx, l, outer, &want)
		}
		return lock.acquire(c, ctx, l, want)
	})
}
