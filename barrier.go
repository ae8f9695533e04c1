package redlatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/internal/barrier"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/twins"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Barrier lets callers wait for one another, in whatever processes: when so
// many have arrived all go on, and the barrier is there for the next time. It is a
// name, immutable, and cheap. Redisson has none; its keys are redlatch's own, and
// are forgotten ten minutes after their last use.
//
// Those who go on together are a generation. Each of them is told so, or each is
// told that the generation is broken: because one of them has left before all had
// arrived, has died, or somebody has called Reset; or because it hears nothing for
// more than a minute, and then the others may have gone on. The next generation
// begins with nobody in it. A caller is in one generation only, and is counted in
// it once, whatever happens to its request.
//
// The number of parties belongs to the barrier: a Barrier of another number is
// refused with ErrInvalid, until it calls Reset.
type Barrier struct {
	c   *Client
	in  *barrier.Barrier
	err error // a name or number that cannot be used
}

// Barrier returns the barrier with this name for so many parties. A name that
// Redis could not handle, and a number below 1, is refused by every method.
func (c *Client) Barrier(name string, parties int) *Barrier {
	key := c.server.Key(name)
	b := &Barrier{c: c, in: c.barriers.Barrier(key, parties)}
	if b.err = request.CheckKey(key); b.err == nil && parties < 1 {
		b.err = invalid.Errorf("redlatch: barrier %q of %d parties: it takes at least 1 to go on", name, parties)
	}
	return b
}

// Name returns the barrier's name.
func (b *Barrier) Name() string { return b.in.Name() }

// Parties returns how many callers make a generation.
func (b *Barrier) Parties() int { return b.in.Parties }

// Await arrives at the barrier and waits until all parties have. It returns how
// many were still to come when the caller arrived: 0 for the last one, whom the
// others may let do what is to be done once.
//
// A caller that leaves before, because ctx or the Wait is over, breaks the
// generation for the others, who get ErrBroken; its own error is ErrBusy, or
// ErrUnavailable if the server did not answer meanwhile. So does
// one that cannot reach the server for Config.OutageTimeout, as soon as it can,
// and Close. If the caller's process dies the others get ErrBroken when it has not
// been heard for its Config.WatchdogTimeout.
//
// A caller that leaves, or hears nothing of the server, cannot know whether the
// others have gone on at that very moment.
func (b *Barrier) Await(ctx context.Context, opts ...Option) (int, error) {
	index := -1
	o, bad := collect(opts, false, ofBarriers)
	at := b.c.waitSite()
	e := AcquireStartEvent{Name: b.in.Name(), Kind: KindBarrier}
	err := b.c.report.observe(ctx, e, o.once, func(ctx context.Context) (_ bool, err error) {
		if err := b.usable(ctx); err != nil {
			return false, err
		}
		if bad != nil {
			return false, bad
		}
		index, err = b.in.Await(ctx, barrier.Want{Once: o.once, Until: o.until, Site: at})
		return false, b.explain(err)
	})
	return index, err
}

var ofBarriers = ofWaits("Barrier.Await")

// explain turns the end of a wait into the error that users see.
func (b *Barrier) explain(err error) error {
	var broken *barrier.BrokenError
	if errors.As(err, &broken) {
		return &BrokenError{Name: b.in.Name(), Reason: BreakReason(broken.Reason), By: broken.By}
	}
	return asBusy(err, BusyError{Name: b.in.Name(), Kind: KindBarrier})
}

// Reset breaks the generation that gathers, if anybody waits in it, and makes the
// barrier one of this Barrier's number of parties.
func (b *Barrier) Reset(ctx context.Context) error {
	if err := b.usable(ctx); err != nil {
		return err
	}
	return b.in.Reset(ctx)
}

func (b *Barrier) usable(ctx context.Context) error {
	if err := b.c.usable(ctx, b.err); err != nil {
		return err
	}
	return b.c.twins.Use(twins.Barriers, b.in.Key)
}

// A BreakReason says how a generation of a Barrier was broken.
type BreakReason string

// The ways to break a generation of a barrier.
const (
	// BrokenLeft: one who had arrived has left: its context or Wait was over, or
	// its client was closed.
	BrokenLeft BreakReason = barrier.Left
	// BrokenDead: a client in it was not heard for its Config.WatchdogTimeout.
	BrokenDead BreakReason = barrier.Dead
	// BrokenReset: somebody has called Reset.
	BrokenReset BreakReason = barrier.Reset
	// BrokenGone: the server no longer knows of it: deleted, evicted, or gone with
	// a restart or failover; or it ended more than a minute, or a hundred
	// generations, before we could ask.
	BrokenGone BreakReason = barrier.Gone
)

// A BrokenError says how a generation of a barrier was broken. It is ErrBroken.
type BrokenError struct {
	Name   string // the barrier's name
	Reason BreakReason
	By     string // the client's UUID of who has died, or that with a number behind it of who left or called Reset; empty if not known
}

// Error implements error.
func (e *BrokenError) Error() string {
	var how string
	by := wire.Text(e.By)
	switch e.Reason {
	case BrokenLeft:
		how = by + " left before all parties had come"
	case BrokenDead:
		how = "client " + by + " has died, or cannot be heard"
	case BrokenReset:
		how = by + " has reset it"
	case BrokenGone:
		how = "the server no longer has it (deleted, evicted, or lost with a restart or failover)"
	}
	return fmt.Sprintf("redlatch: barrier %q broken: %s", e.Name, how)
}

// Is reports that a BrokenError is ErrBroken.
func (e *BrokenError) Is(target error) bool { return target == ErrBroken }
