package term

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// A hold can be left to whoever has its id. Then its term is over in this process:
// nobody renews it or nests in it, the gate is left, and whoever of this process
// wants the lock finds it with somebody else. The hold itself is over when its
// user releases it, and not before.

var (
	errDetachShared  = invalid.Errorf("redlatch: a side of a read-write lock and a group lock cannot be detached, because they are not released by an id; release the hold")
	errDetachMember  = invalid.Errorf("redlatch: a member of several locks is released together with the others, and cannot be detached; acquire the lock by itself")
	errDetachNest    = invalid.Errorf("redlatch: the lock cannot be detached while another hold of its nest is left, or about to begin; release the others first")
	errDetachMinHold = invalid.Errorf("redlatch: the lock cannot be detached before the time of its MinHold is over, which nobody else would keep to; release it, or wait")
)

// Detach leaves the lock to whoever has the hold's id, unless the hold is over.
func (h *Hold) Detach() error {
	t := h.t
	h.lock(time.Now())
	err := h.life.Why
	switch {
	case err != nil, h.life.Detached:
	case t.Lock.Kind.Renew != lua.LockRenew:
		err = errDetachShared
	case h.several:
		err = errDetachMember
	case t.count > 1:
		err = errDetachNest
	case t.stays.left() > 0:
		err = errDetachMinHold
	}
	if err != nil || h.life.Detached {
		t.mu.Unlock()
		return err
	}
	h.life.Detached = true
	t.removeLocked(h, nil)
	t.state, t.err, t.inside, t.count = termOver, holdctx.ErrDetached, false, 0
	observer := h.life.ObserverLocked()
	t.mu.Unlock()
	t.Env.detached.add(t.ID) // before the table forgets it
	t.Env.Clock.Remove(&t.Lease)
	t.Home.Forget(t, true)
	if h.scope != nil {
		h.scope.released(t.Lock)
	}
	t.Home.Leave()
	if observer != nil {
		observer.Released(holdctx.EndDetached, time.Now(), nil)
	}
	return nil
}

// Unenterable says why nothing can nest in the hold: it is over, or detached; nil
// if something can.
func (h *Hold) Unenterable() error {
	h.lock(time.Now())
	defer h.t.mu.Unlock()
	err := h.life.MineLocked()
	if err == holdctx.ErrDetached { //nolint:errorlint // the value itself
		return fmt.Errorf("%w, and the context descends from that hold of lock %q; acquire with a context that does not descend from it", holdctx.ErrDetached, h.Name())
	}
	return err
}

// releaseApart releases the lock of a detached hold, which its user has ended.
// What a late request may make of its id is released again, as of any other term.
func (t *nest) releaseApart(ctx context.Context) error {
	if t.Env.Server.Left() {
		return request.ErrClosed
	}
	err := t.Lock.ReleaseAs(ctx, t.ID)
	if errors.Is(err, holdctx.ErrNotHeld) {
		t.orphan(nil)
	} else {
		t.orphan(err)
	}
	return err
}

// ReleaseAs is ReleaseOwner for an owner that may be.
func (l *Lock) ReleaseAs(ctx context.Context, owner string) error {
	call := l.releasing(owner)
	reply, err := call.Run(ctx)
	return l.heldBy(owner, reply.Int > 0 || call.Unknown, err)
}

// ExtendAs is ExtendOwner for an owner that may be.
func (l *Lock) ExtendAs(ctx context.Context, owner string, d time.Duration) error {
	call := l.Env.Server.Question(lua.LockRenew, []string{l.Key})
	call.Args, call.Acks = []string{owner, wire.MillisUp(d), "0"}, l.Env.Server.Acks.Renews
	reply, err := call.Run(ctx)
	switch {
	case err != nil:
		return err
	case len(reply.List) != 1:
		return request.Unexpected(reply, lua.LockRenew)
	}
	if text := reply.List[0].Str; text != "" {
		return call.Raised(ctx, text)
	}
	is := reply.List[0].Int == 1
	return l.heldBy(owner, is, call.Doubt(is))
}

// heldBy returns NotHeldBy for a lock that turns out not to be that owner's.
func (l *Lock) heldBy(owner string, is bool, err error) error {
	if err == nil && !is {
		err = l.NotHeldBy(owner)
	}
	return err
}

// NotHeldBy says that the lock is not that owner's. It is holdctx.ErrNotHeld.
func (l *Lock) NotHeldBy(owner string) error {
	return fmt.Errorf("%w: lock %q is not of the owner %s; its lease has run out, or it was released", holdctx.ErrNotHeld, l.Name(), wire.Text(owner))
}

// detached are the ids that may stand in Redis although no term of this client has
// them: nobody here knows for how long others extend them. They would be as many
// as a client has ever detached. So what is kept of them is the number of the
// latest, and older ids that nobody has are taken for detached ones: they are left
// to their TTL.
type detached struct {
	mu     sync.Mutex // guards what follows
	latest uint64
	last   time.Time // when one was added last; zero: never
}

func (d *detached) add(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latest, d.last = max(d.latest, numberOf(id)), time.Now()
}

// may says whether an id of this client, which no term of it has, may be that of a
// detached hold.
func (d *detached) may(id string) bool {
	n := numberOf(id)
	d.mu.Lock()
	defer d.mu.Unlock()
	return n > 0 && n <= d.latest
}

// since says whether an id was added since then.
func (d *detached) since(then time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.last.IsZero() && !d.last.Before(then)
}

// numberOf returns the number in an owner id of this client, which is at least 1;
// 0 if it is none, as that of a writer.
func numberOf(id string) uint64 {
	n, _ := strconv.ParseUint(id[len(wireClient(id))+1:], 10, 64)
	return n
}
