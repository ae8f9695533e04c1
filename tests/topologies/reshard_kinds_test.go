package topologies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A movable is what is not one lock, and has keys in a slot that moves. One client
// has it to itself, or has others wait for it.
type movable struct {
	what  string
	waits bool // it waits for as long as the slot is half moved, also beyond Config.OutageTimeout
	// begin has a take it, or make it so that others wait. end does the opposite. want
	// has b wait for it, and give it back: it succeeds once end was called, and not
	// before.
	begin func(p *pair) (end, want func(ctx context.Context) error)
	// free says what is wrong in the end; "" if nothing is.
	free func(p *pair) string
}

// movables are all kinds of them. This is where they are made, too.
var movables = []movable{
	owned("MultiLock", func(c *redlatch.Client, name string) ownable {
		return multi{redlatch.MultiLock(c.Lock(name+"x"), c.Lock(name+"y"))}
	}),
	owned("of kinds", func(c *redlatch.Client, name string) ownable {
		elsewhere := strings.NewReplacer("{", "~", "}", "~").Replace(name) // the last, by name
		return multi{redlatch.MultiLock(c.FairLock(name+"x"), c.Lock(name+"y"), c.ReadWriteLock(name+"z").Write(), c.Lock(elsewhere))}
	}),
	owned("Semaphore", func(c *redlatch.Client, name string) ownable { return permits{semaphore.New(c, name, 0)} }),
	owned("Expirable", func(c *redlatch.Client, name string) ownable { return expirable{semaphore.NewExpirable(c, name, 0)} }),
	owned("RateLimiter", func(c *redlatch.Client, name string) ownable {
		return limiter{ratelimit.New(c, name, ratelimit.Rate{})}
	}),
	{
		what:  latchKind,
		waits: true, // one key says what its count is
		begin: func(p *pair) (end, want func(context.Context) error) {
			l := latch.New(p.a, p.name)
			_, err := l.TrySetCount(p.ctx, 1)
			p.must("TrySetCount", err)
			return l.CountDown, latch.New(p.b, p.name).Wait
		},
		free: func(p *pair) string { return left(latch.New(p.b, p.name).Count(p.ctx))(0) },
	},
	{
		what: barrierKind,
		begin: func(p *pair) (end, want func(context.Context) error) {
			passed, failed := make(chan struct{}), error(nil)
			go func() {
				defer close(passed)
				_, failed = barrier.New(p.a, p.name, 2).Await(p.ctx)
			}()
			end = func(ctx context.Context) error {
				_, err := barrier.New(p.b, p.name, 2).Await(ctx)
				return err
			}
			return end, func(ctx context.Context) error { // to see it pass
				select {
				case <-passed:
					return failed
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		},
		free: func(*pair) string { return "" },
	},
	{
		what:  "Election",
		waits: true, // Run is not over when a server does not answer
		begin: func(p *pair) (end, want func(context.Context) error) {
			resign, err := leads(p.ctx, election.New(p.a, p.name))
			p.must("Run", err)
			return resign, func(ctx context.Context) error {
				resign, err := leads(ctx, election.New(p.b, p.name))
				if err == nil {
					err = resign(p.ctx)
				}
				return err
			}
		},
		free: func(p *pair) string {
			if l, err := election.New(p.a, p.name).Leader(p.ctx); err != nil || l.Owner != "" {
				return fmt.Sprintf("the leader is %+v (%v)", l, err)
			}
			return ""
		},
	},
}

const (
	latchKind   = "CountDownLatch" // has a name without a hash tag
	barrierKind = "Barrier"        // ends for those who wait if one of them leaves
)

// named returns pairs of clients for all movables, in the slot of a name.
func named(t *testing.T, clients []*redlatch.Client, tag string) (all []*pair) {
	for _, m := range movables {
		p := &pair{T: t, ctx: t.Context(), a: clients[0], b: clients[1], name: "{" + tag + "}" + m.what}
		if m.what == latchKind {
			p.name = tag
		}
		all = append(all, p)
	}
	return all
}

// begun has all of them begin.
func begun(all []*pair) (ends, wants []func(context.Context) error) {
	for i, p := range all {
		end, want := movables[i].begin(p)
		ends, wants = append(ends, end), append(wants, want)
	}
	return ends, wants
}

// partsOf returns, for each of all, those of the keys of a slot that are its own.
func partsOf(all []*pair, keys []string) [][]string {
	parts := make([][]string, len(all))
	slices.Sort(keys)
	for _, key := range keys {
		of := -1
		for i, p := range all {
			if key == p.name || movables[i].what == latchKind && strings.HasSuffix(key, "{"+p.name+"}") {
				of = i
				break
			}
			if movables[i].what != latchKind && strings.Contains(key, p.name) && (of < 0 || len(p.name) > len(all[of].name)) {
				of = i
			}
		}
		if of >= 0 {
			parts[of] = append(parts[of], key)
		}
	}
	return parts
}

// An ownable is what one has at a time.
type ownable interface {
	init(ctx context.Context) error
	acquire(ctx context.Context) (release func(context.Context) error, err error)
	available(ctx context.Context) (int, error)
}

// owned makes a movable of what one has at a time.
func owned(what string, of func(c *redlatch.Client, name string) ownable) movable {
	return movable{
		what: what,
		begin: func(p *pair) (end, want func(context.Context) error) {
			mine, other := of(p.a, p.name), of(p.b, p.name)
			p.must(what, mine.init(p.ctx))
			release, err := mine.acquire(p.ctx)
			p.must(what, err)
			return release, func(ctx context.Context) error {
				release, err := other.acquire(ctx)
				if err == nil {
					err = release(p.ctx)
				}
				return err
			}
		},
		free: func(p *pair) string { return left(of(p.a, p.name).available(p.ctx))(1) },
	}
}

// left says what is wrong with a number that was read.
func left(n int, err error) func(want int) string {
	return func(want int) string {
		if err != nil || n != want {
			return fmt.Sprintf("%d are left (%v), want %d", n, err, want)
		}
		return ""
	}
}

type multi struct{ *redlatch.Lock }

func (l multi) init(context.Context) error { return nil }

func (l multi) acquire(ctx context.Context) (func(context.Context) error, error) {
	h, err := l.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return h.Release, nil
}

func (l multi) available(ctx context.Context) (int, error) {
	release, err := l.acquire(ctx)
	if err != nil {
		return 0, err
	}
	return 1, release(ctx)
}

type permits struct{ *semaphore.Semaphore }

func (s permits) init(ctx context.Context) error {
	_, err := s.TrySetPermits(ctx, 1)
	return err
}

func (s permits) acquire(ctx context.Context) (func(context.Context) error, error) {
	return func(ctx context.Context) error { return s.Release(ctx, 1) }, s.Acquire(ctx, 1)
}

func (s permits) available(ctx context.Context) (int, error) { return s.Available(ctx) }

type expirable struct{ *semaphore.Expirable }

func (s expirable) init(ctx context.Context) error {
	_, err := s.TrySetPermits(ctx, 1)
	return err
}

func (s expirable) acquire(ctx context.Context) (func(context.Context) error, error) {
	p, err := s.Acquire(ctx, 1)
	if err != nil {
		return nil, err
	}
	return p.Release, nil
}

func (s expirable) available(ctx context.Context) (int, error) { return s.Available(ctx) }

type limiter struct{ *ratelimit.Limiter }

func (l limiter) init(ctx context.Context) error {
	_, err := l.TrySetRate(ctx, ratelimit.Rate{Permits: 1, Interval: time.Hour})
	return err
}

func (l limiter) acquire(ctx context.Context) (func(context.Context) error, error) {
	return func(ctx context.Context) error { return l.Release(ctx, 1) }, l.Acquire(ctx, 1)
}

func (l limiter) available(ctx context.Context) (int, error) { return l.Available(ctx) }

var errResigned = errors.New("the term is over")

// leads returns when the client leads, or ctx ends.
func leads(ctx context.Context, e *election.Candidate) (resign func(context.Context) error, err error) {
	began, stop := make(chan struct{}), make(chan struct{})
	ended := start(func() error {
		return e.Run(ctx, func(ctx context.Context, _ int64) error {
			close(began)
			select {
			case <-stop:
				return errResigned
			case <-ctx.Done():
				return fmt.Errorf("the term has ended: %w", context.Cause(ctx))
			}
		})
	})
	select {
	case err := <-ended:
		return nil, err
	case <-began:
		return func(context.Context) error {
			close(stop)
			if err := <-ended; !errors.Is(err, errResigned) {
				return fmt.Errorf("Run: %w", err)
			}
			return nil
		}, nil
	}
}

// Whatever part of something is at the new node of a slot that moves, nobody has
// it for whom it is not yet, who waits has it when the slot has moved, and nothing
// is lost of it.
func TestNothingIsLostOfAnObjectWhoseSlotMoves(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for i, kind := range testserver.Kinds() {
		adapter := drivers.Adapters[i%len(drivers.Adapters)]
		t.Run(fmt.Sprintf("%v/%s", kind, adapter.Name), func(t *testing.T) {
			t.Parallel()
			c := testserver.StartCluster(t, kind)
			var clients []*redlatch.Client
			for _, who := range []string{"a", "b"} {
				clients = append(clients, client(t, adapter.Open(t, drivers.Cluster(c)), redlatch.Config{ServerName: who}))
			}
			for n, more := 0, true; more; n++ {
				more = moves(t, c, at(c, fmt.Sprint("moves", n)), n, clients)
			}
		})
	}
}

// moves lets the n-th part of each move before, and after all its others; 0 is
// none. It says whether there is another.
func moves(t *testing.T, c *testserver.Cluster, tag string, n int, clients []*redlatch.Client) (more bool) {
	t.Helper()
	all := named(t, clients, tag)
	ends, wants := begun(all)
	waits, overs, carried := make([]<-chan error, len(all)), make([]<-chan error, len(all)), make([][]string, len(all))
	for i, p := range all {
		waits[i] = start(func() error { return wants[i](p.ctx) })
	}
	time.Sleep(50 * time.Millisecond) // who waits stands where those do, as a rule
	m := c.MarkSlot(tag)
	for i, parts := range partsOf(all, m.Keys()) {
		switch {
		case len(parts) == 0:
			t.Errorf("%s has no keys", all[i].name)
		case n > 2*len(parts):
		case n > len(parts):
			carried[i] = slices.Delete(slices.Clone(parts), n-1-len(parts), n-len(parts))
		case n > 0:
			carried[i] = parts[n-1 : n]
		}
		more = more || n < 2*len(parts)
		m.Carry(carried[i]...)
	}
	var early sync.WaitGroup
	for i, p := range all {
		early.Go(func() {
			ctx, cancel := context.WithTimeout(p.ctx, 50*time.Millisecond)
			defer cancel()
			switch err := wants[i](ctx); {
			case err == nil:
				t.Errorf("%s: %q are at the new node: it is had before its time", p.name, carried[i])
			case !errors.Is(err, redlatch.ErrBusy) && !errors.Is(err, redlatch.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("%s: %q are at the new node: %v", p.name, carried[i], err)
			}
		})
	}
	early.Wait()
	for i, p := range all {
		overs[i] = start(func() error { return ends[i](p.ctx) })
	}
	m.Finish()
	for i, p := range all {
		p.await(fmt.Sprintf("%s: the end, while %q were at the new node", p.name, carried[i]), overs[i])
		p.await(fmt.Sprintf("%s: who waited while %q were at the new node", p.name, carried[i]), waits[i])
		if wrong := movables[i].free(p); wrong != "" {
			t.Errorf("%s: %q were at the new node: %s", p.name, carried[i], wrong)
		}
	}
	return more
}
