package topologies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

const (
	// shortLease is one that a busy machine does not lose: every adapter could renew
	// one of 11 s.
	shortLease = 20 * time.Second
	// longLease is one that nobody lives to see renewed by the clock.
	longLease = 10 * time.Minute
	// soon is when those know who do not wait for a clock, on a busy machine: they
	// connect, and poll. It is less than a third of longLease.
	soon = time.Minute
)

// semaphores are those whose permits are only counted, and how many b says that
// they have if nobody has set them up: b knows that of the pool alone.
var semaphores = map[string]int{"semaphore": 0, "pool": 1}

// A household is two clients, as of two processes, that live through something
// together: one has a hold of each type, and the other waits for it.
type household struct {
	*testing.T
	ctx    context.Context
	name   string
	server *testserver.Server
	open   func() driver.Redis
	a, b   *redlatch.Client // a holds, b waits
	holds  []*held
	waits  map[string]chan error

	failed  chan struct{} // one slot: a renewal of a's has failed
	forgets atomic.Bool   // the server has forgotten what a holds: b may have it before a is told, and lose it, too
}

// held is what a has, and b wants.
type held struct {
	what string
	holding

	released atomic.Bool
}

// A holding is a Hold.
type holding interface {
	Err() error
	Context() context.Context
	Expires() time.Time
	Release(ctx context.Context) error
}

// setUp starts a household. What is not held stands in waits only: a latch, a
// barrier, permits without an owner, and a rate.
func setUp(t *testing.T, s *testserver.Server, open func() driver.Redis, name string, lease, rate time.Duration) *household {
	t.Helper()
	h := &household{
		T: t, ctx: t.Context(), name: name, server: s, open: open,
		waits: map[string]chan error{}, failed: make(chan struct{}, 1),
	}
	cfg := redlatch.Config{WatchdogTimeout: lease, OutageTimeout: 4 * generous} // see refused
	h.b = client(t, open(), cfg)
	h.a = client(t, open(), cfg)
	observe.Add(h.a, observe.Hooks{RenewFailed: func(observe.RenewFailedEvent) {
		select {
		case h.failed <- struct{}{}:
		default:
		}
	}})

	h.lock("lock", func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name) })
	h.lock("lease", func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name) }, redlatch.Lease(longLease))
	h.lock("fair", func(c *redlatch.Client, name string) *redlatch.Lock { return c.FairLock(name) })
	h.lock("group", func(c *redlatch.Client, name string) *redlatch.Lock {
		return redisson.GroupLock(c, name, []string{"x", "y"})
	})
	h.lock("write", func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Write() })
	h.lock("read", func(c *redlatch.Client, name string) *redlatch.Lock {
		if c == h.b {
			return c.ReadWriteLock(name).Write()
		}
		return c.ReadWriteLock(name).Read()
	})

	permits := semaphore.NewExpirable(h.a, h.of("permit"), 0)
	_, err := permits.TrySetPermits(h.ctx, 1)
	h.must("TrySetPermits", err)
	p, err := permits.Acquire(h.ctx, 1)
	h.must("Acquire of a permit", err)
	mine := h.has("permit", p)
	h.waitFor("permit", func() error {
		p, err := semaphore.NewExpirable(h.b, h.of("permit"), 0).Acquire(h.ctx, 1)
		if err != nil {
			return err
		}
		h.alone(mine)
		return p.Release(h.ctx)
	})

	for what, permits := range semaphores {
		_, err = semaphore.New(h.a, h.of(what), 0).TrySetPermits(h.ctx, 1)
		h.must("TrySetPermits", err)
		h.must("Acquire", semaphore.New(h.a, h.of(what), 0).Acquire(h.ctx, 1))
		h.waitFor(what, func() error { return semaphore.New(h.b, h.of(what), permits).Acquire(h.ctx, 1) })
	}

	_, err = latch.New(h.a, h.of("latch")).TrySetCount(h.ctx, 1)
	h.must("TrySetCount", err)
	h.waitFor("latch", func() error { return latch.New(h.b, h.of("latch")).Wait(h.ctx) })

	h.waitFor("barrier", func() error { _, err := barrier.New(h.b, h.of("barrier"), 2).Await(h.ctx); return err })

	_, err = ratelimit.New(h.a, h.of("rate"), ratelimit.Rate{}).TrySetRate(h.ctx, ratelimit.Rate{Permits: 1, Interval: rate})
	h.must("TrySetRate", err)
	h.must("Acquire", ratelimit.New(h.a, h.of("rate"), ratelimit.Rate{}).Acquire(h.ctx, 1))
	h.waitFor("rate", func() error { return ratelimit.New(h.b, h.of("rate"), ratelimit.Rate{}).Acquire(h.ctx, 1) })

	// Those who wait have subscribed; so has the client that holds, which is how it
	// notices that a connection breaks.
	h.awaitListeners()
	return h
}

func (h *household) awaitListeners() {
	h.Helper()
	for what := range h.waits {
		h.eventually("b listens for "+what, func() bool {
			return what == "rate" || len(h.list("PUBSUB", "CHANNELS", "*"+h.of(what)+"*")) > 0
		})
	}
	h.eventually("a listens", func() bool { return len(h.list("PUBSUB", "CHANNELS", "*"+h.a.ID())) > 0 })
}

func (h *household) of(what string) string { return h.name + "-" + what }

func (h *household) has(what string, x holding) *held {
	mine := &held{what: what, holding: x}
	h.holds = append(h.holds, mine)
	return mine
}

func (h *household) lock(what string, of func(*redlatch.Client, string) *redlatch.Lock, opts ...redlatch.PlainOption) {
	h.Helper()
	hold, err := locktest.With(of(h.a, h.of(what)), opts...).Acquire(h.ctx)
	h.must("Acquire of "+what, err)
	mine := h.has(what, hold)
	h.waitFor(what, func() error {
		hold, err := of(h.b, h.of(what)).Acquire(h.ctx)
		if err != nil {
			return err
		}
		h.alone(mine)
		if err := hold.Release(h.ctx); !errors.Is(err, redlatch.ErrLost) || !h.forgets.Load() {
			return err
		}
		return nil
	})
}

// alone is called when somebody else has got what x was a hold of.
func (h *household) alone(x *held) {
	// Err looks at the clock, so no pause of this process excuses it.
	if x.Err() == nil && !x.released.Load() && !h.forgets.Load() {
		h.Errorf("%s: %s is held twice", h.name, x.what)
	}
}

func (h *household) waitFor(what string, f func() error) {
	c := make(chan error, 1)
	h.waits[what] = c
	go func() { c <- f() }()
}

func (h *household) must(what string, err error) {
	h.Helper()
	if err != nil {
		h.Fatalf("%s: %s: %v", h.name, what, err)
	}
}

func (h *household) list(args ...string) []string {
	h.Helper()
	v, err := h.server.Do(args...)
	h.must(args[0], err)
	list, _ := v.([]any)
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = fmt.Sprint(list[i])
	}
	return texts
}

func (h *household) eventually(what string, ok func() bool) {
	h.Helper()
	eventually(h.T, h.name+": "+what, ok)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !locktest.Within(generous, ok) {
		t.Fatalf("it takes too long until %s", what)
	}
}

// wantHeld checks that nothing has been lost.
func (h *household) wantHeld() {
	h.Helper()
	for _, x := range h.holds {
		if err := x.Err(); err != nil {
			h.Errorf("%s: %s: %v", h.name, x.what, err)
		}
	}
}

// wantLost checks that all holds, except those named, end within limit, for that
// reason.
func (h *household) wantLost(limit time.Duration, reason redlatch.LossReason, except ...string) {
	h.Helper()
	over := time.After(limit)
	for _, x := range h.holds {
		if slices.Contains(except, x.what) {
			asked := x.what == "lease" && h.forgets.Load() // as a connection has broken on a busy machine
			if err := x.Err(); err != nil && !asked {
				h.Errorf("%s: %s: %v", h.name, x.what, err)
			}
			continue
		}
		select {
		case <-x.Context().Done():
		case <-over:
			h.Errorf("%s: the holder of %s is not told within %v", h.name, x.what, limit)
			return
		}
		var lost *redlatch.LostError
		if err := context.Cause(x.Context()); !errors.As(err, &lost) || lost.Reason != reason {
			h.Errorf("%s: %s ended with %v, want %q", h.name, x.what, err, reason)
		}
		if err := x.Release(h.ctx); !errors.Is(err, redlatch.ErrLost) {
			h.Errorf("%s: Release of the lost %s: %v", h.name, x.what, err)
		}
	}
}

// wantServed checks that all who wait, except those named, have got what they
// wanted within limit.
func (h *household) wantServed(limit time.Duration, except ...string) {
	h.Helper()
	over := time.After(limit)
	for what, c := range h.waits {
		if slices.Contains(except, what) {
			continue
		}
		select {
		case err := <-c:
			if err != nil {
				h.Errorf("%s: who waited for %s: %v", h.name, what, err)
			}
			delete(h.waits, what)
		case <-over:
			h.Errorf("%s: who waits for %s is not served within %v", h.name, what, limit)
			return
		}
	}
}

// wantError checks that somebody who waits is told that error.
func (h *household) wantError(what string, limit time.Duration, want error) {
	h.Helper()
	select {
	case err := <-h.waits[what]:
		if !errors.Is(err, want) {
			h.Errorf("%s: who waited for %s: %v, want %v", h.name, what, err, want)
		}
		delete(h.waits, what)
	case <-time.After(limit):
		h.Errorf("%s: who waits for %s is told nothing within %v", h.name, what, limit)
	}
}

// wantWaiting checks that nobody who waits, except those named, has been told
// anything.
func (h *household) wantWaiting(except ...string) {
	h.Helper()
	for what, c := range h.waits {
		if what == "rate" || slices.Contains(except, what) {
			continue // a rate's time comes by itself
		}
		select {
		case err := <-c:
			h.Errorf("%s: who waits for %s has returned: %v", h.name, what, err)
		default:
		}
	}
}

// giveUp lets go of everything that a has, all at once.
func (h *household) giveUp() {
	h.Helper()
	type attempt struct {
		what string
		err  error
	}
	var wg sync.WaitGroup
	errs := make(chan attempt, 20)
	try := func(what string, f func() error) { wg.Go(func() { errs <- attempt{what, f()} }) }
	for _, x := range h.holds {
		x.released.Store(true)
		if x.Err() == nil { // else it is lost, and known to be
			try("Release of "+x.what, func() error { return x.Release(h.ctx) })
		}
	}
	try("CountDown", func() error { return latch.New(h.a, h.of("latch")).CountDown(h.ctx) })
	for what := range semaphores {
		try("Release of "+what, func() error { return semaphore.New(h.a, h.of(what), 0).Release(h.ctx, 1) })
	}
	wg.Wait()
	close(errs)
	for x := range errs {
		if x.err != nil {
			h.Errorf("%s: %s: %v", h.name, x.what, x.err)
		}
	}
}

// arrive lets b's barrier be passed.
func (h *household) arrive() {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, generous)
	defer cancel()
	_, err := barrier.New(h.a, h.of("barrier"), 2).Await(ctx)
	h.must("Await", err)
}

// breakUp ends b's waiting at the barrier where it may have been found dead.
func (h *household) breakUp() {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, generous)
	defer cancel()
	h.must("Reset", barrier.New(h.a, h.of("barrier"), 2).Reset(ctx))
	h.wantError("barrier", soon, barrier.ErrBroken)
}

// leave ends the household, and looks for what it leaves behind: keys that are
// only about keys and end by themselves, but no other, and no subscription.
func (h *household) leave() {
	h.Helper()
	for what := range semaphores {
		// One was released, or set up anew, once, and b has got it.
		n, err := semaphore.New(h.a, h.of(what), 0).Available(h.ctx)
		h.must("Available", err)
		if n != 0 {
			h.Errorf("%s: the %s has %d permits in the end", h.name, what, n)
		}
		there, err := semaphore.New(h.a, h.of(what), 0).Delete(h.ctx)
		h.must("Delete", err)
		if !there {
			h.Errorf("%s: there is no %s in the end", h.name, what)
		}
	}
	_, err := semaphore.NewExpirable(h.a, h.of("permit"), 0).Delete(h.ctx)
	h.must("Delete", err)
	_, err = ratelimit.New(h.a, h.of("rate"), ratelimit.Rate{}).Delete(h.ctx)
	h.must("Delete", err)
	var left []string
	h.eventuallySays(func() string {
		left = slices.DeleteFunc(h.list("KEYS", "*"+h.name+"-*"), func(key string) bool {
			ttl, _ := h.server.MustDo("PTTL", key).(int64)
			return strings.HasPrefix(key, "redlatch_") && ttl != -1
		})
		return strings.Join(left, ", ")
	})
	for _, c := range []*redlatch.Client{h.a, h.b} {
		if err := c.Close(); err != nil {
			h.Errorf("%s: %v", h.name, err)
		}
	}
	h.eventuallySays(func() string { return strings.Join(h.list("PUBSUB", "CHANNELS", "*"+h.name+"*"), ", ") })
}

// eventuallySays waits until f has nothing to say.
func (h *household) eventuallySays(f func() string) {
	h.Helper()
	said := ""
	for end := time.Now().Add(generous); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if said = f(); said == "" {
			return
		}
	}
	h.Errorf("%s: left behind: %s", h.name, said)
}
