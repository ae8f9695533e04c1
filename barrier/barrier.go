// Package barrier lets callers of any number of processes wait for one another,
// again and again. Redisson has no barriers: the keys are redlatch's own.
//
//	step := barrier.New(client, "simulation:step", 4)
//	index, err := step.Await(ctx) // until all four have come; 0: this one was the last
package barrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/barrier"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/nameclash"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// ErrBroken: not all who had come to a barrier could go on together. Every
// error with this state is also a *BrokenError.
var ErrBroken = barrier.ErrBroken

// A Barrier lets callers of any number of processes wait for one another. When as
// many have arrived as it has parties, all of them go on, and the barrier is there
// for the next time. A Barrier is a name, immutable, and cheap, and may be shared.
// Its keys in Redis expire ten minutes after their last use.
//
// The callers that go on together are a generation. Either each of them is told
// that all have arrived, or each is told that the generation is broken: a caller
// has left before all had arrived, a process has died, or somebody has called
// Reset. A caller that hears nothing for more than a minute is told so, too; then
// the others may have gone on. The next generation begins empty. A caller belongs
// to one generation, and is counted in it once, whatever happens to its request.
//
// The number of parties is stored with the barrier: a Barrier with another number
// is refused with redlatch.ErrInvalid, until it calls Reset.
type Barrier struct {
	e   *bridge.Engines
	in  *barrier.Barrier
	err error // a name or number that cannot be used
}

// New returns the barrier with this name for a number of parties. Every method
// refuses a name that Redis cannot handle, and a number below 1.
func New(c *redlatch.Client, name string, parties int) *Barrier {
	e := bridge.Open(c)
	key := e.Server.Key(name)
	b := &Barrier{e: e, in: e.Barriers.Barrier(key, parties)}
	if b.err = request.CheckKey(key); b.err == nil && parties < 1 {
		b.err = invalid.Errorf("redlatch: barrier %q of %d parties: it takes at least 1 to go on", name, parties)
	}
	return b
}

// Name returns the barrier's name.
func (b *Barrier) Name() string { return b.in.Name() }

// Parties returns how many callers make a generation.
func (b *Barrier) Parties() int { return b.in.Parties }

// Await arrives at the barrier and waits until all parties have arrived. It
// returns how many were still missing when the caller arrived. That is 0 for the
// last one: the callers can agree that this one does what is to be done once.
//
// If ctx ends before, the caller leaves and breaks the generation: the others get
// ErrBroken. Its own error is redlatch.ErrBusy, or redlatch.ErrUnavailable if the
// server did not answer. redlatch.Client.Close breaks the generation, too. So does
// a caller that cannot reach the server for redlatch.Config.OutageTimeout, as soon
// as it reaches it again. If the caller's process dies, the others get ErrBroken
// when the process has not been heard for its redlatch.Config.WatchdogTimeout.
//
// A caller that leaves, or does not hear from the server, cannot know whether the
// others have gone on at that moment.
func (b *Barrier) Await(ctx context.Context) (int, error) {
	at := b.e.WaitSite()
	ctx, a := b.e.Begin(ctx, hooks.Acquisition{Name: b.Name(), Kind: string(redlatch.KindBarrier)}, false)
	missing, err := -1, b.usable(ctx)
	if err == nil {
		missing, err = b.in.Await(ctx, at)
		err = b.explain(err)
	}
	a.Counted(false, err)
	return missing, err
}

// explain turns the end of a wait into the error that users see.
func (b *Barrier) explain(err error) error {
	var broken *barrier.BrokenError
	if errors.As(err, &broken) {
		return &BrokenError{Name: b.Name(), Reason: BreakReason(broken.Reason), By: broken.By}
	}
	if gaveUp, cause := request.GaveUp(err); gaveUp {
		return &redlatch.BusyError{Name: b.Name(), Kind: redlatch.KindBarrier, Cause: cause}
	}
	return err
}

// Reset breaks the current generation, if anybody waits in it, and gives the
// barrier this Barrier's number of parties.
func (b *Barrier) Reset(ctx context.Context) error {
	if err := b.usable(ctx); err != nil {
		return err
	}
	return b.in.Reset(ctx)
}

func (b *Barrier) usable(ctx context.Context) error {
	return b.e.UsableName(ctx, b.err, nameclash.Barriers, b.in.Key)
}

// A BreakReason says how a generation of a Barrier was broken.
type BreakReason string

// The ways to break a generation of a barrier.
const (
	// BrokenLeft: a caller has left after it had arrived: its context ended,
	// or its client was closed.
	BrokenLeft BreakReason = "left"
	// BrokenDead: one of the clients was not heard for its
	// redlatch.Config.WatchdogTimeout.
	BrokenDead BreakReason = "dead"
	// BrokenReset: somebody has called Reset.
	BrokenReset BreakReason = "reset"
	// BrokenGone: the server no longer knows the generation. It was deleted, evicted,
	// or lost in a restart or failover; or it ended more than a minute, or a hundred
	// generations, before the caller could ask.
	BrokenGone BreakReason = "gone"
)

// A BrokenError says how a generation of a barrier was broken. It is ErrBroken.
type BrokenError struct {
	Name   string // the barrier's name
	Reason BreakReason
	By     string // the UUID of the client that has died; with a number behind it, the caller that left or called Reset; empty if not known
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
