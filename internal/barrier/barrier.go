package barrier

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/poll"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// Options is what Barriers need.
type Options struct {
	Server *request.Server
	Polls  *poll.Polls
	ID     string        // of the client
	NewID  func() string // an id that the client gives once
	// Join notes a caller that may have to leave, unless the client is closed; Part
	// forgets it. Close waits for those.
	Join func() bool
	Part func()
}

// Barriers are those of a client.
type Barriers struct {
	Options

	leavers *queue.Gather[string] // of the ids of callers that leave
	leaving departures
}

// New returns the barriers of a client.
func New(o Options) *Barriers {
	return &Barriers{Options: o, leavers: queue.NewGather[string](queue.MostAnswered, o.Server.Go)}
}

// A Barrier is one of them.
type Barrier struct {
	Key     string // in Redis
	Parties int

	all     *Barriers
	channel string
	gathers atomic.Pointer[string] // the generation that gathers, as far as we know
}

// Barrier returns the barrier that has this name in Redis for so many parties.
func (all *Barriers) Barrier(key string, parties int) *Barrier {
	return &Barrier{Key: key, Parties: parties, all: all, channel: wire.Prefix(wire.BarrierChannel, key)}
}

// Name returns the barrier's name, as its user gave it.
func (b *Barrier) Name() string { return b.all.Server.Name(b.Key) }

// The ways to break a generation, as the scripts say them.
const (
	Left  = "left"
	Dead  = "dead"
	Reset = "reset"
	Gone  = "gone"
)

// ErrBroken is the state of users' errors about a generation that was broken.
var ErrBroken = errors.New("redlatch: barrier broken")

// A BrokenError says that a generation was broken.
type BrokenError struct {
	Reason string // Left, ...
	By     string // who has died, left or called Reset; empty if that is not known
}

// Error implements error.
func (b *BrokenError) Error() string { return "barrier broken: " + b.Reason }

// Await arrives and waits until all parties have. It returns how many were still
// to come then. at is where that was asked for. Its error is a BrokenError, one of
// a caller that gave up, or that of a request.
func (b *Barrier) Await(ctx context.Context, at callsite.Site) (index int, err error) {
	if b.all.Server.Closed() || !b.all.Join() {
		return -1, request.ErrClosed
	}
	defer b.all.Part()
	if left := b.all.leaving.over(b.Key); left != nil {
		_, _ = request.Pause(ctx, b.all.Server.Done, left, time.Time{}, request.AttemptTimeout(b.all.Server.Length))
	}
	a, err := b.arrive(ctx)
	if err != nil {
		return -1, err
	}
	over, err := verdict(a.how, a.who)
	if !over {
		err = b.wait(ctx, &a, at)
	}
	var broken *BrokenError
	if err != nil && !errors.As(err, &broken) {
		b.leave(a)
		return -1, err
	}
	b.gathered(following(a.generation, broken))
	if err != nil {
		return -1, err
	}
	return a.index, nil
}

// wait waits until the generation has ended.
func (b *Barrier) wait(ctx context.Context, a *arrival, at callsite.Site) error {
	return b.all.Polls.Wait(ctx, "barrier:"+a.generation, b.channel, poll.Question{
		Script: lua.BarrierPoll, Keys: wire.BarrierKeys(b.Key, a.generation),
		Args: []string{a.generation, b.all.ID, wire.Millis(b.all.Server.Length), b.channel},
		Read: func(r driver.Reply) (bool, error) {
			if len(r.List) != 2 {
				return false, request.Unexpected(r, lua.BarrierPoll)
			}
			return verdict(r.List[0].Str, r.List[1].Str)
		},
		About: claim.Claim{Name: b.Key, Kind: claim.Barrier, Owner: a.id, Site: at},
	})
}

// Reset breaks the generation that gathers, if anybody waits in it, and makes the
// barrier one of b's number of parties.
func (b *Barrier) Reset(ctx context.Context) error {
	id, g := b.all.NewID(), ""
	for {
		call := b.call(lua.BarrierReset, g, g, id, b.channel, strconv.Itoa(b.Parties))
		reply, err := call.Run(ctx)
		if err != nil {
			return err
		}
		if reply.Str == "done" {
			return nil
		}
		g = reply.Str
	}
}

// call prepares a request about a generation.
func (b *Barrier) call(s *script.Script, generation string, args ...string) request.Call {
	return request.Call{
		Server: b.all.Server, Script: s, Lease: b.all.Server.Length, Stop: b.all.Server.Done,
		Keys: wire.BarrierKeys(b.Key, generation), Args: args,
	}
}

// An arrival is one caller's place in a generation.
type arrival struct {
	generation, id string
	index          int
	how, who       string // how the generation stands
}

// arrive gets the caller into the generation that gathers. Each try has an id of
// its own, and is about one generation. So requests need no session: leaving marks
// the id, and an arrival that comes later counts nowhere.
func (b *Barrier) arrive(ctx context.Context) (arrival, error) {
	for {
		a := arrival{id: b.all.NewID()}
		if g := b.gathers.Load(); g != nil {
			a.generation = *g
		}
		call := b.call(lua.BarrierArrive, a.generation,
			a.generation, a.id, b.all.ID, strconv.Itoa(b.Parties), wire.Millis(b.all.Server.Length), b.channel)
		reply, err := call.Run(ctx)
		if err == nil && len(reply.List) != 3 {
			err = request.Unexpected(reply, call.Script)
		}
		if err != nil {
			if call.Unknown || call.Pending != nil {
				b.leave(a)
			}
			return a, err
		}
		a.how, a.who, a.index = reply.List[0].Str, reply.List[1].Str, int(reply.List[2].Int)
		switch a.how {
		case "current", "forgotten":
			b.gathered(a.who)
			if a.how == "forgotten" && call.Unknown && a.generation != "" { // it may have been counted
				return a, &BrokenError{Reason: Gone}
			}
		case "parties":
			return a, invalid.Errorf("redlatch: barrier %q is one of %s parties, not of %d; give all the same number, or reset the barrier to change it", b.Name(), wire.Text(a.who), b.Parties)
		default:
			return a, nil
		}
	}
}

// leave takes the caller out of its generation. It returns at once; it does not
// matter which request comes first, this one or the one by which the caller
// arrived. It is sent until the server has answered or the client is closed: the
// others must not wait for nothing, nor take for present who is not.
func (b *Barrier) leave(a arrival) {
	if a.generation == "" { // a place that nobody can have
		return
	}
	b.all.leaving.add(b.Key, 1)
	b.all.leavers.Add(wire.BarrierKeys(b.Key, a.generation)[1], a.id, func(all []string) {
		defer b.all.leaving.add(b.Key, -len(all))
		args := append([]string{a.generation, b.channel}, all...)
		for {
			call := b.call(lua.BarrierLeave, a.generation, args...)
			call.Stop = b.all.Server.Over
			if _, err := call.Run(context.Background()); b.all.Server.Closed() || !call.Again(err) {
				return
			}
		}
	})
}

// verdict says whether a generation has ended, and what that is for those in it.
func verdict(how, who string) (over bool, err error) {
	switch how {
	case "waits":
		return false, nil
	case "tripped":
		return true, nil
	default:
		return true, &BrokenError{Reason: how, By: who}
	}
}

// gathered notes which generation gathers. That may be wrong: then the server
// says so.
func (b *Barrier) gathered(generation string) { b.gathers.Store(&generation) }

// following returns the generation after another one, which went or was broken:
// those behind a reset have its id.
func following(generation string, broken *BrokenError) string {
	i := strings.LastIndexByte(generation, ':') + 1
	begun := generation[:i]
	if broken != nil && broken.Reason == Reset {
		begun = broken.By + ":"
	}
	n, _ := strconv.ParseUint(generation[i:], 10, 64)
	return begun + strconv.FormatUint(n+1, 10)
}
