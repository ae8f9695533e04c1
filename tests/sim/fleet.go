package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
)

// A Line is what a real process writes of a claim, and again each time that it has
// found the hold to be its own. All times are of one clock, which the processes
// share.
type Line struct {
	Process, Number, Nest int // Number is that of the claim, in its process
	Resource, ID          string
	Weight                int
	Inner                 bool
	Token                 int64
	Lease                 time.Duration
	Call, From, To        time.Duration // a worker trusted it at From, and still at To

	Err string // not a claim, but what must not be: an error that no fault explains
}

// A Worker is one of a real process: it does what those of a world do.
type Worker struct {
	Client   *redlatch.Client
	Type     string
	Process  int
	Number   int           // in its process
	Watchdog time.Duration // of the client
	Now      func() time.Duration
	Write    func(l Line)

	own *chance
	nth int
}

// Work acquires, holds and releases, over and over, until ctx ends. It returns an
// error that no fault explains.
func (f *Worker) Work(ctx context.Context, seed uint64) error {
	f.own = newChance(seed, uint64(10_000+100*f.Process+f.Number))
	k := kindOf(f.Type)
	if k.choose == nil {
		return fmt.Errorf("nobody holds a %s", f.Type)
	}
	for ctx.Err() == nil {
		time.Sleep(f.own.upTo(60 * time.Millisecond))
		name, call := object(f.own.n(objects)), f.Now()
		if f.Type == "election" {
			turn, cancel := context.WithTimeout(ctx, f.own.upTo(5*time.Second))
			err := lead(turn, election.New(f.Client, name), func(_ context.Context, h *redlatch.Hold) {
				f.stay(h, f.claims(h, Line{Call: call, Weight: k.capacity, Lease: f.Watchdog}, nil), f.long())
			})
			cancel()
			if f.unexpected(err) {
				return err
			}
			continue
		}
		l := Line{Call: call, Lease: f.Watchdog}
		var lease time.Duration
		if f.own.oneIn(3) {
			lease = 200*time.Millisecond + f.own.upTo(maxLease-200*time.Millisecond)
			l.Lease = lease
		}
		x := k.choose(f.Client, name, lease, f.own)
		if l.Weight = x.weight; l.Weight == 0 {
			l.Weight = k.capacity
		}
		turn, cancel := context.WithTimeout(ctx, f.own.upTo(5*time.Second))
		h, err := x.acquire(turn)
		cancel()
		if f.unexpected(err) {
			return err
		}
		if err == nil {
			f.hold(ctx, x, h, l, 3)
		}
	}
	return nil
}

func (f *Worker) unexpected(err error) bool {
	return errors.Is(err, redlatch.ErrInvalid) || errors.Is(err, redlatch.ErrReentry) || errors.Is(err, redlatch.ErrNotHeld)
}

// hold holds, perhaps acquires once more meanwhile, and releases.
func (f *Worker) hold(ctx context.Context, x choice, h *redlatch.Hold, l Line, deeper int) {
	all := f.claims(h, l, x.values)
	f.stay(h, all, f.long())
	if x.nests && deeper > 0 && f.own.oneIn(3) && len(all) > 0 {
		inner, cancel := context.WithTimeout(h.Context(), time.Second)
		if in, err := x.lock.Acquire(inner); err == nil {
			l.Inner, l.Nest = true, all[0].Nest
			f.hold(ctx, x, in, l, deeper-1)
		}
		cancel()
		f.stay(h, all, 0)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = h.Release(end) // a fault may have anything become of it
}

// long is for how long a worker holds.
func (f *Worker) long() time.Duration {
	if f.own.oneIn(10) {
		return f.own.upTo(6 * time.Second)
	}
	return f.own.upTo(40 * time.Millisecond)
}

// claims returns what a hold makes its worker believe: nothing, if it has ended by
// now. Of a group it has values, each a claim of its own.
func (f *Worker) claims(h *redlatch.Hold, like Line, values []string) (all []Line) {
	members := h.Members()
	if like.Nest == 0 {
		f.nth += permits + 1
		like.Nest = (1000*f.Process+f.Number)*1_000_000 + f.nth
	}
	like.From = f.Now()
	for i, m := range members {
		l := like
		l.Process, l.Resource, l.ID, l.Token = f.Process, m.Name(), m.ID(), m.Token()
		if like.Weight > 1 && kindOf(f.Type).capacity == permits {
			l.Weight = 1 // each permit is a member
			l.Nest += i
		}
		if values == nil {
			all = append(all, l)
		}
		for _, value := range values {
			l.Resource, l.Token = value, 0
			all = append(all, l)
		}
	}
	for i := range all {
		f.nth++
		all[i].Number = f.Number*1_000_000 + f.nth
	}
	if h.Err() != nil { // since From, for all that the worker knows
		return nil
	}
	return all
}

// stay looks again and again whether the hold has ended. That it had not, was so
// before it looked.
func (f *Worker) stay(h *redlatch.Hold, all []Line, d time.Duration) {
	for until := f.Now() + d; ; time.Sleep(2 * time.Millisecond) {
		now := f.Now()
		if h.Err() != nil {
			return
		}
		for i := range all {
			all[i].To = now
			f.Write(all[i])
		}
		if now >= until {
			return
		}
	}
}

// A Loss is a time in which real servers lost, or may have lost, what they had
// stored. Its times are of the clock of the lines.
type Loss struct {
	What     string
	From, To time.Duration // nothing that is asked for after To can be lost by it
}

// A Verdict is what the checker says of the lines of a play.
type Verdict struct {
	Wrong    []string
	Claims   int
	Overlaps map[string]time.Duration // the longest, by what was lost: 0, if that never gave anything to two
}

// Judge checks what real processes have written. Of each claim the last line
// counts. Losses are in the order of their beginnings.
func Judge(typ string, lines []Line, losses ...Loss) Verdict {
	h := &history{start: time.Now(), capacity: kindOf(typ).capacity, footings: map[[2]string]*footing{}}
	for _, l := range losses {
		h.losses = append(h.losses, &loss{what: l.What, from: l.From, to: l.To})
	}
	last := map[[2]int]*claim{}
	for _, l := range lines {
		key := [2]int{l.Process, l.Number}
		if c := last[key]; c != nil {
			c.to = l.To
			continue
		}
		id := [2]string{l.Resource, l.ID}
		if h.footings[id] == nil {
			h.footings[id] = &footing{asked: l.Call}
		}
		c := &claim{
			resource: l.Resource, id: l.ID, weight: l.Weight, process: l.Process, nest: l.Nest, inner: l.Inner, token: l.Token, lease: l.Lease,
			footing: h.footings[id], call: l.Call, from: l.From, to: l.To, how: fmt.Sprint("claim ", l.Number),
		}
		c.asked, c.longest = min(c.asked, l.Call), max(c.longest, l.Lease)
		last[key] = c
		h.claims = append(h.claims, c)
	}
	h.check()
	return Verdict{h.wrong, len(h.claims), h.overlaps()}
}
