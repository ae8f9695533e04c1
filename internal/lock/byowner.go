package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// What has an owner id can be extended and released by whoever knows that, in whatever process. The scripts are those of
// a term, which do something to the owner's own alone.

var errNotByOwner = invalid.Errorf("redlatch: a lock that others share, and several locks as one, are extended and released by their holds only")

// ReleaseOwner releases the lock if it is that owner's. It fails with holdctx.ErrNotHeld if it is not.
func (l *Spec) ReleaseOwner(ctx context.Context, owner string) error {
	if err := l.byOwner(owner); err != nil {
		return err
	}
	return l.releaseOwner(ctx, owner)
}

// ExtendOwner raises the lease of the lock to d if it is that owner's. It fails with holdctx.ErrNotHeld if it is not.
func (l *Spec) ExtendOwner(ctx context.Context, owner string, d time.Duration) error {
	if err := l.byOwner(owner); err != nil {
		return err
	}
	if wire.Kept(owner) { // nobody is
		return notHeldBy(owner, &l.Lock, false, nil)
	}
	return l.extendOwner(ctx, owner, d)
}

// releaseOwner is ReleaseOwner for an owner that may be.
func (l *Lock) releaseOwner(ctx context.Context, owner string) error {
	o := l.releasing(owner)
	reply, err := o.Run(ctx)
	return notHeldBy(owner, l, reply.Int > 0 || o.Unknown, err)
}

// extendOwner is ExtendOwner for an owner that may be.
func (l *Lock) extendOwner(ctx context.Context, owner string, d time.Duration) error {
	o := l.c.Server.Question(lua.LockRenew, []string{l.key})
	o.Args, o.Acks = []string{owner, wire.MillisUp(d), "0"}, l.c.Server.Acks.Renews
	reply, err := o.Run(ctx)
	switch {
	case err != nil:
		return err
	case len(reply.List) != 1:
		return request.Unexpected(reply, lua.LockRenew)
	}
	if text := reply.List[0].Str; text != "" {
		return o.Raised(ctx, text)
	}
	is := reply.List[0].Int == 1
	return notHeldBy(owner, l, is, o.Doubt(is))
}

// notHeldBy returns holdctx.ErrNotHeld for a lock that turns out not to be that owner's.
func notHeldBy(owner string, l *Lock, is bool, err error) error {
	if err == nil && !is {
		err = fmt.Errorf("%w: lock %q is not of the owner %s; its lease has run out, or it was released", holdctx.ErrNotHeld, l.Name(), wire.Text(owner))
	}
	return err
}

// byOwner says what is wrong with a request that names that owner.
func (l *Spec) byOwner(owner string) error {
	switch client := wireClient(owner); {
	case l.kind.renew != lua.LockRenew:
		return errNotByOwner
	case client == "":
		return invalid.Errorf("redlatch: %s is not an owner of redlatch's, which is a client's UUID, a colon and a number", wire.Quote(owner))
	case client == l.c.ID && wire.Kept(owner): // which any client releases
	case client == l.c.ID && l.c.lapsed.released(owner):
		return notHeldBy(owner, &l.Lock, false, nil)
	case client == l.c.ID && l.locks.keeps(l.key, owner):
		return invalid.Errorf("redlatch: %s is an owner of this very client, and was not detached; use its Hold", owner)
	}
	return nil
}
