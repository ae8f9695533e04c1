package lock

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/wire"
)

// What has an owner id can be extended and released by whoever knows that, in
// whatever process. The scripts are those of a term, which do something to the
// owner's own alone.

var errNotByOwner = invalid.Errorf("redlatch: a lock that others share, and several locks as one, are extended and released by their holds only")

// ReleaseOwner releases the lock if it is that owner's. It fails with
// holdctx.ErrNotHeld if it is not.
func (lock *Spec) ReleaseOwner(ctx context.Context, owner string) error {
	if err := lock.byOwner(owner); err != nil {
		return err
	}
	return lock.ReleaseAs(ctx, owner)
}

// ExtendOwner raises the lease of the lock to d if it is that owner's. It fails
// with holdctx.ErrNotHeld if it is not.
func (lock *Spec) ExtendOwner(ctx context.Context, owner string, d time.Duration) error {
	if err := lock.byOwner(owner); err != nil {
		return err
	}
	if wire.Kept(owner) { // nobody is
		return lock.NotHeldBy(owner)
	}
	return lock.ExtendAs(ctx, owner, d)
}

// byOwner says what is wrong with a request that names that owner.
func (lock *Spec) byOwner(owner string) error {
	switch client, _ := wire.ClientOf(owner); {
	case lock.Kind.Renew != lua.LockRenew:
		return errNotByOwner
	case client == "":
		return invalid.Errorf("redlatch: %s is not an owner of redlatch's, which is a client's UUID, a colon and a number", wire.Quote(owner))
	case client == lock.Env.ID && wire.Kept(owner): // which any client releases
	case client == lock.Env.ID && lock.Env.Released(owner):
		return lock.NotHeldBy(owner)
	case client == lock.Env.ID && lock.locks.Keeps(lock.Key, owner):
		return invalid.Errorf("redlatch: %s is an owner of this very client, and was not detached; use its Hold", owner)
	}
	return nil
}
