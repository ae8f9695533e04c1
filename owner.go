package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock/term"
)

// WithOwner returns a context under which everything is one owner, as a thread is
// for Redisson: any number of goroutines that acquire a lock with a context that
// descends from it share the lock, and Redis counts their holds. It is for code
// that carries its ownership through contexts it does not get from holds. It gives
// up what the other way of re-entering guarantees: that siblings exclude each
// other. When somebody asks who takes part (package admin), this client may call
// Value on the contexts of its callers that wait, also just after such a call has
// returned.
func WithOwner(ctx context.Context) context.Context { return term.WithOwner(ctx) }

// ReleaseID releases a lock by the id of a hold that was detached (Hold.Detach),
// or that is of another process: for one work whose steps are processes of their
// own. It returns ErrNotHeld, and changes nothing, if the lock is not that owner's
// any more. After a lost answer such a lock counts as released by the first
// request: ReleaseID does not know how long the lease was. The id of a live hold
// of this Client that was not detached is ErrInvalid, and so are sides of a
// read-write lock, group locks, and several locks as one.
func (l *Lock) ReleaseID(ctx context.Context, id string) error {
	if err := l.byID(ctx); err != nil {
		return err
	}
	return l.spec.ReleaseOwner(ctx, id)
}

// ExtendID raises the lease of a lock to d from now by the id of a hold, if it is
// not longer already; it never shortens it. What is refused, and what it returns,
// is as for ReleaseID. The id that MinHold leaves is no hold's: ErrNotHeld. With
// AckRequired, an extension that fewer replicas acknowledge is ErrNotAcknowledged.
// Do not call it for a name that a read-write lock has: it would extend that lock,
// too, if the owner is one of its readers.
func (l *Lock) ExtendID(ctx context.Context, id string, d time.Duration) error {
	if err := l.byID(ctx); err != nil {
		return err
	}
	d, err := args.Lease(d)
	if err != nil {
		return err
	}
	return l.spec.ExtendOwner(ctx, id, d)
}

// byID says what is wrong with a call about an id.
func (l *Lock) byID(ctx context.Context) error {
	switch {
	case ctx == nil:
		return args.ErrNilContext
	case l.several != nil && l.several.err != nil:
		return l.several.err
	case l.several != nil:
		return invalid.Errorf("redlatch: %q are several locks, and an id is of one; call ReleaseID and ExtendID of each with the id of its hold: see Hold.Members", l.Name())
	}
	return l.c.engines.Usable(ctx, l.spec.Err)
}
