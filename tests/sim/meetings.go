package sim

import (
	"cmp"
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
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
)

const (
	parties = 3 // of a barrier, and what a latch is set to
	rate    = 5 // permits in an interval of a limiter
	every   = time.Second
)

// A call is one of a synchronizer that nobody holds: of when it may have had its effect, and what it was told.
type call struct {
	resource string
	from, to time.Duration // to is negative while it lasts
	err      error
	n        int // permits, or the index at a barrier
}

func (c *call) worked() bool { return c.to >= 0 && c.err == nil }

// untold says whether the caller cannot know what became of its call. Who is told how a barrier was broken knows that its
// generation has not gone on.
func (c *call) untold() bool {
	var broken *barrier.BrokenError
	return !c.worked() && (!errors.As(c.err, &broken) || broken.Reason == barrier.BrokenGone)
}

// calls are those of a world.
type calls struct {
	mu      sync.Mutex
	all     []*call
	rounds  map[string]*round // the last one of each latch
	latches int
	left    []string // latches that may not have come to 0
}

// called notes a call, while f makes it.
func (w *world) called(resource string, n int, f func() (int, error)) error {
	c := &call{resource: resource, from: w.now(), to: -1, n: n}
	w.calls.mu.Lock()
	w.calls.all = append(w.calls.all, c)
	w.calls.mu.Unlock()
	got, err := f()
	w.calls.mu.Lock()
	c.to, c.err, c.n = w.now(), err, got
	w.calls.mu.Unlock()
	w.trace("%s: %d, %v", resource, got, err)
	return err
}

// counted is a semaphore of which the server knows no owner.
func counted() kind {
	return kind{
		capacity: permits,
		once: func(ctx context.Context, w *world, p *process, name string, own *chance) {
			s := semaphore.New(p.client, name, permits)
			n, asked := 1+own.n(2), w.now()
			var err error
			if own.oneIn(5) {
				err = s.TryAcquire(ctx, n, own.upTo(time.Second))
			} else {
				err = s.Acquire(ctx, n)
			}
			if err != nil {
				w.unexpected(err)
				return
			}
			all := []*claim{{resource: name, id: fmt.Sprint(w.nest()), weight: n, process: p.number, nest: w.nest(), call: asked, lease: forever}}
			w.begin(all)
			w.pause(ctx, own)
			w.end(all, "given back")
			w.unexpected(s.Release(bg, n))
		},
		calm: func(ctx context.Context, w *world, p *process, name string) error {
			s := semaphore.New(p.client, name, permits)
			if err := s.Acquire(ctx, permits); err != nil {
				return err
			}
			if free, err := s.Available(ctx); err != nil || free != 0 {
				return fmt.Errorf("%d permits are free when all are taken: %w", free, err)
			}
			return s.Release(ctx, permits)
		},
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
	take := func(ctx context.Context, w *world, p *process, name string, n int, wait time.Duration) error {
		l := ratelimit.New(p.client, name, ratelimit.Rate{Permits: rate, Interval: every})
		return w.called(name, n, func() (int, error) {
			if wait > 0 {
				return n, l.TryAcquire(ctx, n, wait)
			}
			return n, l.Acquire(ctx, n)
		})
	}
	return kind{
		once: func(ctx context.Context, w *world, p *process, name string, own *chance) {
			var wait time.Duration
			if own.oneIn(5) {
				wait = 1 + own.upTo(2*time.Second)
			}
			w.unexpected(take(ctx, w, p, name, 1+own.n(2), wait))
		},
		calm: func(ctx context.Context, w *world, p *process, name string) error {
			return take(ctx, w, p, name, rate, 0)
		},
	}
}

// checkRate checks that in no time more is given than the rate allows: the rate at once, and as much again after each interval. A
// permit was given between the call and the answer, and the server's clock may be 2 % fast.
func (w *world) checkRate() {
	const interval = every * 97 / 100
	given := slices.DeleteFunc(slices.Clone(w.calls.all), func(c *call) bool { return !c.worked() })
	slices.SortStableFunc(given, func(a, b *call) int { return cmp.Compare(a.to, b.to) })
	for _, first := range given {
		sum := 0
		for _, c := range given {
			if c.resource != first.resource || c.from < first.from {
				continue
			}
			sum += c.n
			if took := c.to - first.from; sum > rate*(1+int(took/interval)) {
				w.failLocked(first.from, "%d permits of %s are given in %v, and there are %d in an interval", sum, first.resource, took, rate)
				break
			}
		}
	}
}

// met is a barrier.
func met() kind {
	await := func(ctx context.Context, w *world, p *process, name string) error {
		return w.called(name, 0, func() (int, error) { return barrier.New(p.client, name, parties).Await(ctx) })
	}
	return kind{
		once: func(ctx context.Context, w *world, p *process, name string, _ *chance) {
			if w.Seed%4 < 2 { // nobody gives up early, so that nearly all are told, and little excuses the others
				ctx = p.life
			}
			ctx, cancel := context.WithTimeout(ctx, w.Trouble-w.now()+10*time.Second) // too few may be left
			defer cancel()
			w.unexpected(await(ctx, w, p, name))
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

// checkMeetings checks that whoever has met the others was at the barrier together with enough of them at some time; and that of
// those who were told, as many were the last to come as the first, but for those who have not been told.
func (w *world) checkMeetings() {
	untold, indexes := map[string]int{}, map[string]*[parties]int{}
	for _, c := range w.calls.all {
		if indexes[c.resource] == nil {
			indexes[c.resource] = &[parties]int{}
		}
		if c.untold() {
			untold[c.resource]++
		}
		if !c.worked() {
			continue
		}
		indexes[c.resource][c.n]++
		most := 0
		for _, at := range w.calls.all {
			if at.resource != c.resource || at.from < c.from || at.from > c.to {
				continue // when most are there, somebody has just come
			}
			most = max(most, w.there(c.resource, at.from))
		}
		if most = max(most, w.there(c.resource, c.from)); most < parties {
			w.failLocked(c.to, "somebody has met the others at %s, and at most %d were there", c.resource, most)
		}
	}
	for name, n := range indexes {
		if slices.Max(n[:])-slices.Min(n[:]) > untold[name] {
			w.failLocked(w.now(), "so many were the last, the one before, and the first at %s: %v, and only %d have not been told", name, *n, untold[name])
		}
	}
}

// lingers is for how long who has left a barrier without an answer may be counted there: its request is late, and then the server
// pauses; and of a process that was killed it waits for the watchdog.
const lingers = latest + longest + 8*time.Second

// there says how many are at a barrier at a moment, or may be.
func (w *world) there(resource string, at time.Duration) (n int) {
	for _, c := range w.calls.all {
		to := c.to
		if c.untold() {
			to += lingers
		}
		if c.resource == resource && c.from <= at && at <= to {
			n++
		}
	}
	return n
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

// over says whether another latch is to be set: nobody can say any more what this one counts, or it has come to 0.
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
				r.set = w.atLatch(r, func() error {
					set, err := latch.New(p.client, r.name).TrySetCount(p.life, parties)
					if err == nil && !set {
						w.fail("the latch %s is set, and nobody has set it", r.name)
					}
					return err
				})
				return
			}
			l, count := latch.New(p.client, r.name), own.n(4)
			switch {
			case !r.set:
			case (count == 0 || r.waiting == parties) && r.begun < parties:
				r.begun++
				if w.atLatch(r, func() error { return l.CountDown(ctx) }) {
					r.down++
				}
			case count == 1:
				w.count(ctx, l, r)
			case r.waiting < parties:
				r.waiting++
				w.waitAt(p, l, r)
				r.waiting--
			}
		},
		calm: func(ctx context.Context, w *world, p *process, name string) error {
			l := latch.New(p.client, name)
			if set, err := l.TrySetCount(ctx, 2); err != nil || !set {
				return fmt.Errorf("the latch cannot be set: %t, %w", set, err)
			}
			for _, f := range []func(context.Context) error{l.CountDown, l.CountDown, l.Wait} {
				if err := f(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// atLatch calls f without the lock. If it fails, nobody knows what the latch counts, and nobody waits there any longer.
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

// waitAt waits at a latch, and checks that all count-downs were under way when it is told to go on.
func (w *world) waitAt(p *process, l *latch.Latch, r *round) {
	c := &call{resource: r.name, from: w.now(), to: -1}
	w.calls.all = append(w.calls.all, c)
	w.calls.mu.Unlock()
	ctx, end := context.WithCancel(r.waits)
	defer end()
	defer context.AfterFunc(p.life, end)()
	err := l.Wait(ctx)
	w.calls.mu.Lock()
	c.to, c.err = w.now(), err
	w.trace("process %d has waited at %s, where %d of %d have counted down: %v", p.number, r.name, r.begun, parties, err)
	w.unexpected(err)
	switch {
	case err == nil && r.begun < parties:
		w.fail("process %d goes on at the latch %s, and only %d of %d have counted down", p.number, r.name, r.begun, parties)
	case errors.Is(r.waits.Err(), context.DeadlineExceeded) && r.down == parties && err != nil:
		w.fail("process %d waits for ever at the latch %s: %v", p.number, r.name, err)
	}
}

// openings are the latches of which a server has told that they came to 0, and how many had counted each of them down by then: each
// once, however often its request was executed. These are not the script's own numbers.
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

// checkOpenings checks that each latch came to 0 when as many had counted it down as it was set to.
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

// count asks how many are missing.
func (w *world) count(ctx context.Context, l *latch.Latch, r *round) {
	most := parties - r.down
	w.calls.mu.Unlock()
	n, err := l.Count(ctx)
	w.calls.mu.Lock()
	if err == nil && r.waits.Err() == nil && (n > most || n < parties-r.begun) {
		w.fail("%d are missing at the latch %s; there were at most %d, and are at least %d", n, r.name, most, parties-r.begun)
	}
}

// givenUp says whether a latch was left before it came to 0.
func (w *world) givenUp(key string) bool {
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	return slices.Contains(w.calls.left, key)
}
