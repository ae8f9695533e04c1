package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/sim/linear"
)

const (
	parties = 3 // of a barrier, and what a latch is set to
	rate    = 5 // permits in an interval of a limiter
	every   = time.Second
)

// A call is one of a synchronizer that nobody holds: of when it may have had its
// effect, and what it was told.
type call struct {
	process  int
	what     string // as package linear names it
	resource string
	from, to time.Duration // to is negative while it lasts
	err      error
	n        int // permits, a count, or the index at a barrier
}

func (c *call) worked() bool { return c.to >= 0 && c.err == nil }

// calls are those of a world.
type calls struct {
	mu      sync.Mutex
	all     []*call
	rounds  map[string]*round // the last one of each latch
	latches int
	left    []string       // latches that may not have come to 0
	more    map[string]int // permits that were added to each semaphore
	lives   map[life][]sign
	arrived map[string]bool // ids of those who have come to a barrier
}

// changing stands for a number of permits while it changes, or if nobody knows it.
const changing = -1

// called notes a call, while f makes it. f returns what the call was told, or was
// about.
func (w *world) called(p *process, what, resource string, n int, f func() (int, error)) error {
	c := &call{process: p.number, what: what, resource: resource, from: w.now(), to: -1, n: n}
	w.calls.mu.Lock()
	w.calls.all = append(w.calls.all, c)
	w.calls.mu.Unlock()
	got, err := f()
	w.calls.mu.Lock()
	c.to, c.err, c.n = w.now(), err, got
	w.calls.mu.Unlock()
	w.trace("process %d %s %s: %d, %v", p.number, what, resource, got, err)
	return err
}

// counted is a semaphore of which the server knows no owner.
func counted() kind {
	return kind{
		capacity: permits,
		once: func(ctx context.Context, w *world, p *process, name string, own *chance) {
			s := counter{semaphore.New(p.client, name, permits), w, p}
			if own.oneIn(6) {
				w.unexpected(s.look(ctx))
				return
			}
			n, what, wait := 1+own.n(2), linear.Acquire, time.Duration(-1)
			switch {
			case own.oneIn(8):
				what, wait = linear.Refuse, 0
			case own.oneIn(5):
				wait = 1 + own.upTo(time.Second)
			}
			err := w.waits(ctx, p, name, wait, func() error {
				return s.at(what, n, func() error {
					if wait >= 0 {
						return s.TryAcquire(ctx, n, wait)
					}
					return s.Acquire(ctx, n)
				})
			})
			if err != nil {
				w.unexpected(err)
				return
			}
			if w.Seed%2 == 1 && name == object(1) && own.oneIn(6) { // the others show best when too many are given
				s.more()
			}
			w.pause(ctx, own)
			w.unexpected(s.at(linear.Release, n, func() error { return s.Release(bg, n) }))
		},
		calm: func(ctx context.Context, w *world, p *process, name string) error {
			s := counter{semaphore.New(p.client, name, permits), w, p}
			more := w.calls.more[name]
			if more == changing {
				return s.drains(ctx)
			}
			all := permits + more
			for _, f := range []func() error{
				func() error { return s.at(linear.Acquire, all, func() error { return s.Acquire(ctx, all) }) },
				func() error { return s.at(linear.Settle, 0, func() error { return nil }) }, // or there would not be so many
				func() error { return s.look(ctx) },
				func() error { return s.adds(ctx, -more-1) }, // one is owed
				func() error { return s.look(ctx) },
				func() error { return s.at(linear.Release, all, func() error { return s.Release(ctx, all) }) },
				func() error { return s.look(ctx) },
				func() error { return s.adds(ctx, 1) },
				func() error { return s.drains(ctx) },
			} {
				if err := f(); err != nil {
					return err
				}
			}
			w.calls.more[name] = 0
			return nil
		},
	}
}

// A counter is a semaphore of a process.
type counter struct {
	*semaphore.Semaphore

	w *world
	p *process
}

func (s counter) at(what string, n int, f func() error) error {
	return s.w.called(s.p, what, s.Name(), n, func() (int, error) { return n, f() })
}

func (s counter) look(ctx context.Context) error {
	return s.w.called(s.p, linear.Look, s.Name(), 0, func() (int, error) { return s.Available(ctx) })
}

func (s counter) adds(ctx context.Context, n int) error {
	return s.at(linear.Add, n, func() error { return s.AddPermits(ctx, n) })
}

// drains takes all that is free, and gives it back.
func (s counter) drains(ctx context.Context) error {
	n := 0
	err := s.w.called(s.p, linear.Drain, s.Name(), 0, func() (_ int, err error) {
		n, err = s.Drain(ctx)
		return n, err
	})
	if err != nil {
		return err
	}
	return s.at(linear.Release, n, func() error { return s.Release(ctx, n) })
}

// more adds a permit to a semaphore, or takes it away again.
func (s counter) more() {
	all := &s.w.calls
	all.mu.Lock()
	defer all.mu.Unlock()
	was, n := all.more[s.Name()], 1
	switch {
	case was == changing:
		return
	case was > 0:
		n = -1
	}
	all.more[s.Name()] = changing
	all.mu.Unlock()
	err := s.adds(bg, n)
	all.mu.Lock()
	s.w.unexpected(err)
	if err == nil { // else nobody knows
		all.more[s.Name()] = was + n
	}
}

// pause is what a worker does in between.
func (w *world) pause(ctx context.Context, own *chance) {
	timer := time.NewTimer(own.upTo(100 * time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// limited is a limiter.
func limited() kind {
	of := func(p *process, name string) *ratelimit.Limiter {
		return ratelimit.New(p.client, name, ratelimit.Rate{Permits: rate, Interval: every})
	}
	take := func(ctx context.Context, w *world, p *process, name string, n int, wait time.Duration) error {
		l := of(p, name)
		return w.called(p, linear.Acquire, name, n, func() (int, error) {
			if wait > 0 {
				return n, l.TryAcquire(ctx, n, wait)
			}
			return n, l.Acquire(ctx, n)
		})
	}
	look := func(ctx context.Context, w *world, p *process, name string) error {
		return w.called(p, linear.Look, name, 0, func() (int, error) { return of(p, name).Available(ctx) })
	}
	return kind{
		once: func(ctx context.Context, w *world, p *process, name string, own *chance) {
			if own.oneIn(6) {
				w.unexpected(look(ctx, w, p, name))
				return
			}
			var wait time.Duration
			if own.oneIn(5) {
				wait = 1 + own.upTo(2*time.Second)
			}
			n := 1 + own.n(2)
			w.unexpected(w.waits(ctx, p, name, wait, func() error { return take(ctx, w, p, name, n, wait) }))
		},
		calm: func(ctx context.Context, w *world, p *process, name string) error {
			return errors.Join(take(ctx, w, p, name, rate, 0), look(ctx, w, p, name))
		},
	}
}

// leastInterval is how short the interval of a limiter may be: the server's clock
// may be 2 % fast.
const leastInterval = every * 97 / 100

// met is a barrier.
func met() kind {
	await := func(ctx context.Context, w *world, p *process, name string) error {
		return w.called(p, linear.Met, name, 0, func() (int, error) { return barrier.New(p.client, name, parties).Await(ctx) })
	}
	return kind{
		once: func(ctx context.Context, w *world, p *process, name string, own *chance) {
			if own.oneIn(12) {
				w.unexpected(w.called(p, linear.Reset, name, 0, func() (int, error) { return 0, barrier.New(p.client, name, parties).Reset(ctx) }))
				return
			}
			if w.Seed%4 < 2 { // nobody gives up early, so that nearly all are told, and little excuses the others
				ctx = p.life
			}
			ctx, cancel := context.WithTimeout(ctx, w.Trouble-w.now()+10*time.Second) // too few may be left
			defer cancel()
			w.unexpected(w.waits(ctx, p, name, -1, func() error { return await(ctx, w, p, name) }))
		},
		calm: func(ctx context.Context, w *world, p *process, name string) error {
			var all sync.WaitGroup
			errs := make([]error, parties)
			for i := range parties {
				all.Go(func() { errs[i] = await(ctx, w, p, name) })
			}
			all.Wait()
			if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
				return errs[i]
			}
			return nil
		},
	}
}

// A life is that of a process, as a barrier sees it, and a sign is when the server
// heard of it, and for how long it does without the next.
type (
	life struct {
		process int
		barrier string // its key
	}
	sign struct{ at, lasts time.Duration }
)

// atBarrier notes that the server has heard that a process lives which waits at a
// barrier. A request to arrive is heard once.
func (all *calls) atBarrier(process int, n news, now time.Duration) {
	lasts := 2 // of the arguments
	if n.script == "barrier.arrive" {
		lasts = 4
	}
	ms, err := strconv.Atoi(n.args[lasts])
	all.mu.Lock()
	defer all.mu.Unlock()
	if err != nil || n.reply.List[0].Str != "waits" || lasts == 4 && all.arrived[n.args[1]] {
		return
	}
	if lasts == 4 {
		all.arrived[n.args[1]] = true
	}
	of := life{process, n.keys[0]}
	all.lives[of] = append(all.lives[of], sign{now, time.Duration(ms) * time.Millisecond})
}

// mute says whether the server did not hear of the process of a call for so long
// that it may have taken it for dead. Its clock may be 2 % fast.
func (all *calls) mute(c *call) bool {
	signs, last := all.lives[life{c.process, wire.BarrierKeys(c.resource, "")[0]}], c.from
	if len(signs) == 0 {
		return false
	}
	most := signs[0].lasts * 97 / 100
	for _, s := range signs {
		if s.at < c.from || c.to < s.at {
			continue
		}
		if s.at-last >= most {
			return true
		}
		last = s.at
	}
	return c.to-last >= most
}

// A round is one latch, from when it is set until all who wait have gone on.
type round struct {
	name        string
	set         bool
	begun, down int             // count-downs that may have counted, and those that have
	waiting     int             // at most parties: the others count down
	waits       context.Context // of those who wait
	end         context.CancelFunc
}

// over says whether another latch is to be set: nobody can say any more what this
// one counts, or it has come to 0.
func (r *round) over() bool { return r == nil || r.waits.Err() != nil || r.down == parties }

// latched is a latch. Its workers agree about the rounds without it.
func latched() kind {
	return kind{
		once: func(ctx context.Context, w *world, p *process, name string, own *chance) {
			w.calls.mu.Lock()
			defer w.calls.mu.Unlock()
			r := w.calls.rounds[name]
			if r.over() {
				w.calls.latches++
				r = &round{name: fmt.Sprintf("%s:%d", name, w.calls.latches)}
				r.waits, r.end = context.WithTimeout(bg, w.Trouble-w.now()+time.Minute)
				w.calls.rounds[name] = r
				context.AfterFunc(r.waits, func() {
					w.calls.mu.Lock()
					defer w.calls.mu.Unlock()
					if r.down < parties {
						w.calls.left = append(w.calls.left, r.name)
					}
				})
				r.set = w.atLatch(r, func() error { return w.sets(p.life, p, latch.New(p.client, r.name), parties) })
				return
			}
			l, count := latch.New(p.client, r.name), own.n(4)
			switch {
			case !r.set:
			case (count == 0 || r.waiting == parties) && r.begun < parties:
				r.begun++
				if w.atLatch(r, func() error { return w.at(p, linear.Down, l, func() error { return l.CountDown(ctx) }) }) {
					r.down++
				}
			case count == 1:
				w.calls.mu.Unlock()
				w.unexpected(w.called(p, linear.Look, r.name, 0, func() (int, error) { return l.Count(ctx) }))
				w.calls.mu.Lock()
			case r.waiting < parties:
				r.waiting++
				w.waitAt(p, l, r)
				r.waiting--
			}
		},
		calm: func(ctx context.Context, w *world, p *process, name string) error {
			l := latch.New(p.client, name)
			down := func() error { return w.at(p, linear.Down, l, func() error { return l.CountDown(ctx) }) }
			for _, f := range []func() error{
				func() error { return w.sets(ctx, p, l, 2) }, down, down,
				func() error { return w.at(p, linear.GoesOn, l, func() error { return l.Wait(ctx) }) },
			} {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// at notes what is done at a latch.
func (w *world) at(p *process, what string, l *latch.Latch, f func() error) error {
	return w.called(p, what, l.Name(), 0, func() (int, error) { return 0, f() })
}

// errSet is what a latch is told that is set already.
var errSet = errors.New("it is set")

// sets sets a latch. Whether it can be set is for the model to say.
func (w *world) sets(ctx context.Context, p *process, l *latch.Latch, n int) error {
	err := w.called(p, linear.Set, l.Name(), n, func() (int, error) {
		set, err := l.TrySetCount(ctx, n)
		if err == nil && !set {
			err = errSet
		}
		return n, err
	})
	if errors.Is(err, errSet) {
		return nil
	}
	return err
}

// atLatch calls f without the lock. If it fails, nobody knows what the latch
// counts, and nobody waits there any longer.
func (w *world) atLatch(r *round, f func() error) bool {
	w.calls.mu.Unlock()
	err := f()
	w.calls.mu.Lock()
	w.unexpected(err)
	if err != nil {
		w.trace("the latch %s is given up: %v", r.name, err)
		r.end()
	}
	return err == nil
}

// waitAt waits at a latch.
func (w *world) waitAt(p *process, l *latch.Latch, r *round) {
	w.calls.mu.Unlock()
	ctx, end := context.WithCancel(r.waits)
	defer end()
	defer context.AfterFunc(p.life, end)()
	err := w.at(p, linear.GoesOn, l, func() error { return l.Wait(ctx) })
	w.calls.mu.Lock()
	w.unexpected(err)
	if errors.Is(r.waits.Err(), context.DeadlineExceeded) && r.down == parties && err != nil {
		w.fail("process %d waits for ever at the latch %s: %v", p.number, r.name, err)
	}
}

// openings are the latches of which a server has told that they came to 0, and how
// many had counted each of them down by then: each once, however often its request
// was executed. These are not the script's own numbers.
type openings struct {
	counted map[string]map[string]int // callers by latch, and by session and number
	opened  []opening
}

type opening struct {
	latch   string
	counted int
}

// down notes that a latch was counted down, and whether those who wait were told.
func (o *openings) down(keys, args []string, r driver.Reply, told bool) {
	number := strings.TrimPrefix(args[0], "-") // it is sent again
	latch, request := keys[0], keys[1]+" "+number
	counts := len(r.List) == 2 && fmt.Sprint(r.List[0].Int) == number && r.List[1].Kind == driver.ReplyInt && r.List[1].Int != 2 // it was set
	if callers, err := strconv.Atoi(args[3]); err == nil && counts {
		if o.counted == nil {
			o.counted = map[string]map[string]int{}
		}
		if o.counted[latch] == nil {
			o.counted[latch] = map[string]int{}
		}
		o.counted[latch][request] = callers
	}
	if !told {
		return
	}
	sum := 0
	for _, callers := range o.counted[latch] {
		sum += callers
	}
	o.opened = append(o.opened, opening{latch, sum})
	delete(o.counted, latch)
}

// checkOpenings checks that each latch came to 0 when as many had counted it down
// as it was set to.
func (w *world) checkOpenings() {
	for _, s := range w.nodes {
		for _, o := range s.latches.opened {
			want := parties
			if !strings.Contains(o.latch, ":") {
				want = 2 // in the calm
			}
			if o.counted != want {
				w.failLocked(w.now(), "the latch %s has opened, and %d have counted it down, not %d", o.latch, o.counted, want)
			}
		}
	}
}

// givenUp says whether a latch was left before it came to 0.
func (w *world) givenUp(key string) bool {
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	return slices.Contains(w.calls.left, key)
}
