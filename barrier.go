package redlatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/poll"
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
// refused, until it calls Reset.
type Barrier struct {
	c       *Client
	name    string
	parties int
	channel string
	err     error // a name or number that cannot be used

	gathers atomic.Pointer[string] // the generation that gathers, as far as we know
}

// Barrier returns the barrier with this name for so many parties. A name that
// Redis could not handle, and a number below 1, is refused by every method.
func (c *Client) Barrier(name string, parties int) *Barrier {
	b := &Barrier{c: c, name: name, parties: parties, channel: wire.Prefix(wire.BarrierChannel, name)}
	if b.err = checkName(name); b.err == nil && parties < 1 {
		b.err = fmt.Errorf("redlatch: barrier %q of %d parties: it takes at least 1 to go on", name, parties)
	}
	return b
}

// Name returns the barrier's name.
func (b *Barrier) Name() string { return b.name }

// Parties returns how many callers make a generation.
func (b *Barrier) Parties() int { return b.parties }

// Await arrives at the barrier and waits until all parties have. It returns how
// many were still to come when the caller arrived: 0 for the last one, whom the
// others may let do what is to be done once.
//
// A caller that leaves before, because ctx or the Wait is over, breaks the
// generation for the others, who get ErrBroken; its own error is ErrBusy. So does
// one that cannot reach the server for Config.OutageTimeout, as soon as it can,
// and Close. If the caller's process dies the others get ErrBroken when it has not
// been heard for its Config.WatchdogTimeout.
//
// A caller that leaves, or hears nothing of the server, cannot know whether the
// others have gone on at that very moment.
func (b *Barrier) Await(ctx context.Context, opts ...Option) (int, error) {
	index := -1
	o, bad := waitOnly(opts, "Barrier.Await")
	at := b.c.callSite(1)
	err := b.c.report.observe(ctx, AcquireStartEvent{Name: b.name, Kind: KindBarrier}, o.once, func(ctx context.Context) (_ bool, err error) {
		if err := b.usable(ctx); err != nil {
			return false, err
		}
		if bad != nil {
			return false, bad
		}
		index, err = b.await(ctx, &o, at)
		return false, err
	})
	return index, err
}

func (b *Barrier) await(ctx context.Context, o *options, at callsite.Site) (int, error) {
	if !b.c.locks.Join() { // Close waits until it is known who leaves
		return -1, ErrClosed
	}
	defer b.c.locks.Part()
	a, err := b.arrive(ctx, o.until)
	if err != nil {
		return -1, b.busy(err)
	}
	over, err := b.verdict(a.how, a.who)
	switch {
	case over:
	case o.once:
		err = request.ErrWaitOver
	default:
		err = b.c.polls.Wait(ctx, o.until, "barrier:"+a.generation, b.channel, poll.Question{
			Script: lua.BarrierPoll, Keys: wire.BarrierKeys(b.name, a.generation),
			Args: []string{a.generation, b.c.id, wire.Millis(b.c.cfg.WatchdogTimeout), b.channel},
			Read: func(r driver.Reply) (bool, error) {
				if len(r.List) != 2 {
					return false, request.Unexpected(r, lua.BarrierPoll)
				}
				return b.verdict(r.List[0].Str, r.List[1].Str)
			},
			About: claim.Claim{Name: b.name, Kind: claim.Barrier, Site: at},
		})
	}
	var broken *BrokenError
	switch {
	case err == nil || errors.As(err, &broken):
		b.gathered(following(a.generation, broken))
	default:
		left := b.leave(a)
		if err == request.ErrWaitOver { //nolint:errorlint // made by await, never wrapped; ctx still bounds the call
			_, _ = request.Pause(ctx, b.c.server.Done, left, time.Time{}, request.AttemptTimeout(b.c.cfg.WatchdogTimeout))
		}
	}
	if err != nil {
		return -1, b.busy(err)
	}
	return a.index, nil
}

// Reset breaks the generation that gathers, if anybody waits in it, and makes the
// barrier one of this Barrier's number of parties.
func (b *Barrier) Reset(ctx context.Context) error {
	if err := b.usable(ctx); err != nil {
		return err
	}
	id, g := b.c.nextID(), ""
	for {
		o := request.Call{
			Server: b.c.server, Script: lua.BarrierReset, Lease: b.c.cfg.WatchdogTimeout, Stop: b.c.server.Done,
			Keys: wire.BarrierKeys(b.name, g), Args: []string{g, id, b.channel, strconv.Itoa(b.parties)},
		}
		reply, err := o.Run(ctx)
		if err != nil {
			return err
		}
		if reply.Str == "done" {
			return nil
		}
		g = reply.Str
	}
}

// An arrival is one caller's place in a generation.
type arrival struct {
	generation, id string
	index          int
	how, who       string // how the generation stands
}

// arrive gets the caller into the generation that gathers. Each try has an id of
// its own, and is about one generation.
func (b *Barrier) arrive(ctx context.Context, until time.Time) (arrival, error) {
	for {
		a := arrival{id: b.c.nextID()}
		if g := b.gathers.Load(); g != nil {
			a.generation = *g
		}
		o := request.Call{
			Server: b.c.server, Script: lua.BarrierArrive, Lease: b.c.cfg.WatchdogTimeout, Stop: b.c.server.Done, Until: until,
			Keys: wire.BarrierKeys(b.name, a.generation),
			Args: []string{a.generation, a.id, b.c.id, strconv.Itoa(b.parties), wire.Millis(b.c.cfg.WatchdogTimeout), b.channel},
		}
		reply, err := o.Run(ctx)
		if err == nil && len(reply.List) != 3 {
			err = request.Unexpected(reply, o.Script)
		}
		if err != nil {
			if o.Unknown || o.Pending != nil {
				b.leave(a)
			}
			return a, err
		}
		a.how, a.who, a.index = reply.List[0].Str, reply.List[1].Str, int(reply.List[2].Int)
		switch a.how {
		case "current", "forgotten":
			b.gathered(a.who)
			if a.how == "forgotten" && o.Unknown && a.generation != "" { // it may have been counted
				return a, &BrokenError{Name: b.name, Reason: BrokenGone}
			}
		case "parties":
			return a, fmt.Errorf("redlatch: barrier %q is one of %s parties, not of %d; give all the same number, or call Reset to change it", b.name, wire.Text(a.who), b.parties)
		default:
			return a, nil
		}
	}
}

// A leaver is a caller that leaves its generation.
type leaver struct {
	id   string
	left chan struct{} // closed in the end
}

// leave takes the caller out of its generation. It returns at once, with a channel
// that is closed in the end; it does not matter which request comes first, this
// one or one to arrive. It is sent until the server has answered or the client is
// closed: the others must not wait for nothing, nor take for present who is not.
func (b *Barrier) leave(a arrival) <-chan struct{} {
	l := leaver{id: a.id, left: make(chan struct{})}
	if a.generation == "" { // a place that nobody can have
		close(l.left)
		return l.left
	}
	keys := wire.BarrierKeys(b.name, a.generation)
	b.c.leavers.Add(keys[1], l, func(all []leaver) {
		args := []string{a.generation, b.channel}
		for _, l := range all {
			args = append(args, l.id)
			defer close(l.left)
		}
		for {
			o := request.Call{Server: b.c.server, Script: lua.BarrierLeave, Lease: b.c.cfg.WatchdogTimeout, Stop: b.c.server.Over, Keys: keys, Args: args}
			if _, err := o.Run(context.Background()); !errors.Is(err, ErrUnavailable) || b.c.open() != nil {
				return
			}
		}
	})
	return l.left
}

// verdict says whether a generation has ended, and what that is for those in it.
func (b *Barrier) verdict(how, who string) (over bool, err error) {
	switch how {
	case "waits":
		return false, nil
	case "tripped":
		return true, nil
	default:
		return true, &BrokenError{Name: b.name, Reason: BreakReason(how), By: who}
	}
}

// keys returns those of a generation.
// gathered notes which generation gathers. That may be wrong: then the server
// says so.
func (b *Barrier) gathered(generation string) { b.gathers.Store(&generation) }

// following returns the generation after another one, which went or was broken: those
// behind a reset have its id.
func following(generation string, broken *BrokenError) string {
	i := strings.LastIndexByte(generation, ':') + 1
	begun := generation[:i]
	if broken != nil && broken.Reason == BrokenReset {
		begun = broken.By + ":"
	}
	n, _ := strconv.ParseUint(generation[i:], 10, 64)
	return begun + strconv.FormatUint(n+1, 10)
}

func (b *Barrier) busy(err error) error {
	return asBusy(err, BusyError{Name: b.name, what: "not all parties have come to barrier %q"})
}

func (b *Barrier) usable(ctx context.Context) error {
	if err := b.c.usable(ctx, b.err); err != nil {
		return err
	}
	return b.c.twins.Use(twins.Barriers, b.name)
}

// A BreakReason says how a generation of a Barrier was broken.
type BreakReason string

// The ways to break a generation of a barrier.
const (
	// BrokenLeft: one who had arrived has left: its context or Wait was over, or
	// its client was closed.
	BrokenLeft BreakReason = "left"
	// BrokenDead: a client in it was not heard for its Config.WatchdogTimeout.
	BrokenDead BreakReason = "dead"
	// BrokenReset: somebody has called Reset.
	BrokenReset BreakReason = "reset"
	// BrokenGone: the server no longer knows of it: deleted, evicted, or gone with
	// a restart or failover; or it ended more than a minute, or a hundred
	// generations, before we could ask.
	BrokenGone BreakReason = "gone"
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
