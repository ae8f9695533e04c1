package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// As in peers_test.go, about what has been acquired: renewal, loss, release.

// redisson #7272: renewals went on after the unlock. Here one is under way.
func TestNothingIsRenewedAfterARelease(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var count counter
		d := &tap{hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" {
				time.Sleep(2 * time.Second)
			}
			return count.hook(s, args, next)
		}}
		c := w.tapped(redlatch.Config{}, d)
		for _, wait := range []time.Duration{0, time.Second, 11 * time.Second, 13 * time.Second} {
			h := w.acquire(c.Lock("orders"), bg)
			time.Sleep(wait)
			w.release(h)
			time.Sleep(3 * time.Second) // what was under way has come and gone
			before := count.of("lock.renew")
			time.Sleep(10 * time.Minute)
			if n := count.of("lock.renew") - before; n > 0 || w.server.Exists("orders") {
				t.Errorf("released after %v: %d renewals since, exists %v", wait, n, w.server.Exists("orders"))
			}
		}
	})
}

// redisson #2037: renewals went on for ever after the key had gone.
func TestNothingIsRenewedAfterALoss(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var count counter
		c := w.tapped(redlatch.Config{}, &tap{hook: count.hook})
		h := w.acquire(c.Lock("orders"), bg)
		w.server.Del("orders")
		<-h.Context().Done()
		synctest.Wait()
		before := count.of("lock.renew")
		time.Sleep(10 * time.Minute)
		if n := count.of("lock.renew") - before; n > 0 {
			t.Errorf("%d renewals after the loss", n)
		}
	})
}

// redisson #5697, #5698: renewals stopped, and nobody was told; rueidis #923:
// a renewed key was not always kept for the whole validity.
func TestEveryFailedRenewalIsAnEventAndTriedAgainSoon(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var failing atomic.Bool
		var mu sync.Mutex
		var tries []time.Time
		var failed atomic.Int64
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s != "lock.renew" {
				return next()
			}
			mu.Lock()
			tries = append(tries, time.Now())
			mu.Unlock()
			if failing.Load() {
				return driver.Reply{}, errTapUnknown
			}
			r, err := next()
			if ttl := w.server.TTL("orders"); ttl != 30*time.Second {
				t.Errorf("renewed for %v", ttl)
			}
			return r, err
		}}
		cfg := redlatch.Config{Events: redlatch.Events{RenewFailed: func(e redlatch.RenewFailedEvent) {
			if e.Holds != 1 || !errors.Is(e.Err, errTapUnknown) {
				t.Errorf("%+v", e)
			}
			failed.Add(1)
		}}}
		c := w.tapped(cfg, d)
		h := w.acquire(c.Lock("orders"), bg)
		for range 3 {
			time.Sleep(time.Minute)
			synctest.Wait()
			mu.Lock()
			tries = nil
			mu.Unlock()
			failed.Store(0)
			failing.Store(true)
			time.Sleep(15 * time.Second)
			failing.Store(false)
			synctest.Wait()
			mu.Lock()
			if n := len(tries); n < 5 || failed.Load() != int64(n) {
				t.Errorf("%d tries and %d events of failure in 15 s, want as many of one as of the other", n, failed.Load())
			}
			for i := 1; i < len(tries); i++ {
				if d := tries[i].Sub(tries[i-1]); d > 1500*time.Millisecond {
					t.Errorf("tried again after %v", d)
				}
			}
			mu.Unlock()
		}
		if err := h.Err(); err != nil {
			t.Error(err)
		}
		w.release(h)
	})
}

// redisson #6516, #6144: the renewal of a lock that had been re-entered failed.
func TestAReenteredHoldIsRenewed(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		holds := []*redlatch.Hold{w.acquire(l, bg)}
		for range 3 {
			holds = append(holds, w.acquire(l, holds[len(holds)-1].Context()))
		}
		for len(holds) > 0 { // from the outside in
			time.Sleep(2 * time.Minute)
			for _, h := range holds {
				if err := h.Err(); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := w.count(holds[0]), fmt.Sprint(len(holds)); got != want {
				t.Errorf("count %s, want %s", got, want)
			}
			w.release(holds[0])
			holds = holds[1:]
		}
	})
}

// redisson #6303: with thousands of locks the renewals came too late.
func TestThousandsOfHoldsAreRenewedInTime(t *testing.T) {
	inFakeTime(t, func(w *world) {
		const holds = 1000
		var count counter
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" {
				time.Sleep(20 * time.Millisecond) // a slow server
			}
			return count.hook(s, args, next)
		}})
		var all []*redlatch.Hold
		for i := range holds {
			all = append(all, w.acquire(c.Lock(fmt.Sprint("orders:", i)), bg))
		}
		time.Sleep(61 * time.Second) // six renewals of each
		for _, h := range all {
			if err := h.Err(); err != nil {
				t.Fatal(err)
			}
			if ttl := w.server.TTL(h.Name()); ttl < 19*time.Second {
				t.Errorf("%s is kept for another %v", h.Name(), ttl)
			}
			w.release(h)
		}
		if n := count.of("lock.renew"); n < 6*holds/100 || n > 7*holds/100 {
			t.Errorf("%d requests to renew %d locks six times, want batches of 100", n, holds)
		}
	})
}

// redsync #144, #158: an extension that failed for a passing reason was said to
// have found the lock taken.
func TestAnExtensionOfUnknownOutcomeIsNoLoss(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var down atomic.Bool
		d := &tap{hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if down.Load() {
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		h := w.acquire(c.Lock("orders"), bg, redlatch.Lease(time.Minute))
		expires := h.Expires()
		down.Store(true)
		err := h.Extend(bg, time.Hour)
		if !errors.Is(err, redlatch.ErrUnavailable) || errors.Is(err, redlatch.ErrLost) || !redlatch.IsRetryable(err) {
			t.Errorf("Extend: %v, want ErrUnavailable", err)
		}
		if h.Err() != nil || !h.Expires().Equal(expires) {
			t.Errorf("%v; trusted until %v, before until %v", h.Err(), h.Expires(), expires)
		}
		down.Store(false)
		if err := h.Extend(bg, time.Hour); err != nil || !h.Expires().After(expires) {
			t.Errorf("Extend: %v; trusted until %v", err, h.Expires())
		}
		w.release(h)
	})
}

// redisson #4698, #7254: nobody was told. Whatever the reason, there is one
// event, and it comes after the context has ended.
func TestEveryLossIsOneEvent(t *testing.T) {
	for reason, lose := range map[redlatch.LossReason]func(w *world, h *redlatch.Hold){
		redlatch.LostExpired: func(w *world, _ *redlatch.Hold) { w.server.SetError("LOADING") },
		redlatch.LostGone:    func(w *world, h *redlatch.Hold) { w.server.Del(h.Name()) },
		redlatch.LostRevoked: func(w *world, h *redlatch.Hold) {
			if ok, err := w.client(redlatch.Config{}).Lock(h.Name()).ForceRelease(bg); err != nil || !ok {
				w.Errorf("%v, %v", ok, err)
			}
		},
		redlatch.LostMaxHold: func(*world, *redlatch.Hold) {},
	} {
		t.Run(string(reason), func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				var h *redlatch.Hold
				var events []redlatch.LostEvent
				c := w.client(redlatch.Config{MaxHold: time.Minute, Events: redlatch.Events{Lost: func(e redlatch.LostEvent) {
					if h.Context().Err() == nil {
						t.Error("the event came before the context had ended")
					}
					events = append(events, e)
				}}})
				h = w.acquire(c.Lock("orders"), bg)
				synctest.Wait()
				start := time.Now()
				lose(w, h)
				<-h.Context().Done()
				lasted, lostAt := time.Since(start), time.Now()
				w.server.SetError("")
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if len(events) != 1 {
					t.Fatalf("%d events: %+v", len(events), events)
				}
				if e := events[0]; e.Err.Reason != reason || e.Err.Owner != h.Owner() || e.Held < lasted || e.Held > lasted+time.Second || e.Site == "" {
					t.Errorf("after %v: %+v, %+v", lasted, e, e.Err)
				}
				if at := events[0].Err.Confirmed; at.Before(start) || lostAt.Sub(at) > 30*time.Second || at.After(lostAt) {
					t.Errorf("confirmed %v after the start, lost after %v", at.Sub(start), lasted)
				}
				if err := h.Release(bg); !errors.Is(err, redlatch.ErrLost) {
					t.Errorf("Release: %v", err)
				}
			})
		})
	}
}

// redisson #4818, #3484, #5623: the lease of one acquisition was the next one's.
func TestALeaseDoesNotLeakIntoTheNextAcquisition(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		for i, tt := range []struct {
			opts []redlatch.Option
			ttl  time.Duration
		}{
			{[]redlatch.Option{redlatch.Lease(5 * time.Second)}, 5 * time.Second},
			{nil, 30 * time.Second},
			{[]redlatch.Option{redlatch.Lease(time.Hour)}, time.Hour},
			{nil, 30 * time.Second},
		} {
			h := w.acquire(l, bg, tt.opts...)
			if ttl := w.server.TTL("orders"); ttl != tt.ttl {
				t.Errorf("acquisition %d: TTL %v, want %v", i, ttl, tt.ttl)
			}
			w.release(h)
		}
	})
}

// redisson #1824, redis-py #656: only the thread that had locked could unlock.
func TestAHoldIsNobodysThread(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		h := <-later(func() *redlatch.Hold { return w.acquire(l, bg) })
		// The goroutine that acquired is no owner, and neither is this one.
		if _, err := l.Try(bg); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Try: %v", err)
		}
		inner := <-later(func() *redlatch.Hold { return w.acquire(l, h.Context()) })
		if err := <-later(func() error { return inner.Release(bg) }); err != nil {
			t.Error(err)
		}
		if err := <-later(func() error { return h.Release(bg) }); err != nil {
			t.Error(err)
		}
		if w.server.Exists("orders") {
			t.Error("still held")
		}
	})
}

// redis-py #3535, python-redis-lock #39: a late release freed somebody else's
// lock; node-redlock #362: it was called a failure of the servers.
func TestAReleaseAfterTheLeaseLeavesTheNextHolderAlone(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg, redlatch.Lease(time.Second))
		next := w.acquire(other.Lock("orders"), bg)
		err := h.Release(bg)
		w.wantErr(err, redlatch.ErrLost)
		if errors.Is(err, redlatch.ErrUnavailable) || errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Release: %v", err)
		}
		w.wantErr(h.Release(bg), redlatch.ErrNotHeld)
		if w.count(next) != "1" || next.Err() != nil {
			t.Errorf("the next holder: count %q, %v", w.count(next), next.Err())
		}
		w.release(next)
	})
}

// redisson #7251, spring-integration #3655: something was left of each lock.
func TestNothingIsLeftOfManyLocks(t *testing.T) {
	nothingIsLeft(t, bg)
}

// WithOwner kept 1.8 kB of each lock that was ever released under it.
func TestWithOwnerKeepsNothingOfReleasedLocks(t *testing.T) {
	nothingIsLeft(t, redlatch.WithOwner(bg))
}

func nothingIsLeft(t *testing.T, ctx context.Context) {
	t.Helper()
	b := &blockable{end: make(chan struct{})}
	c, err := redlatch.New(b, redlatch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n := 0
	cycle := func(times int) {
		t.Helper()
		for range times {
			n++
			l := c.Lock(fmt.Sprint("orders:", n))
			h, err := l.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			inner, err := l.Acquire(h.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(inner.Release(bg), h.Release(bg)); err != nil {
				t.Fatal(err)
			}
		}
	}
	heap := func() uint64 {
		for range 3 { // pools empty themselves in two
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const times = 20_000
	cycle(1000)
	before, goroutines := heap(), runtime.NumGoroutine()
	cycle(times)
	if after := heap(); after > before+times*16 { // two pointers each
		t.Errorf("%d bytes are left of %d locks", after-before, times)
	}
	runtime.KeepAlive(ctx)
	if now := runtime.NumGoroutine(); now > goroutines+10 {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
}

// What an error is, and what it is not: buildbuddy left redsync because an error
// changed, and redsync #125 has one error for three cases.
func TestErrorsAreTold(t *testing.T) {
	all := map[string]error{
		"busy": redlatch.ErrBusy, "lost": redlatch.ErrLost, "not held": redlatch.ErrNotHeld, "reentry": redlatch.ErrReentry,
		"closed": redlatch.ErrClosed, "unavailable": redlatch.ErrUnavailable, "deadline": context.DeadlineExceeded,
	}
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		l := c.NonReentrantLock("orders")
		h := w.acquire(l, bg)
		tell := func(what string, err error, retryable bool, is ...string) {
			t.Helper()
			want := map[string]bool{}
			for _, name := range is {
				want[name] = true
			}
			for name, e := range all {
				if errors.Is(err, e) != want[name] {
					t.Errorf("%s: %v; is %s: %v, want %v", what, err, name, !want[name], want[name])
				}
			}
			if redlatch.IsRetryable(err) != retryable {
				t.Errorf("%s: %v; retryable %v", what, err, !retryable)
			}
		}
		second := func(_ any, err error) error { return err }
		soon, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()

		tell("a lock that is held", second(other.Lock("orders").Try(bg)), true, "busy")
		tell("a wait that is over", second(other.Lock("orders").Acquire(bg, redlatch.Wait(time.Second))), true, "busy")
		tell("a context that is over", second(other.Lock("orders").Acquire(soon)), false, "busy", "deadline")
		tell("a re-entry that is refused", second(l.Acquire(h.Context())), false, "reentry")
		w.release(h)
		tell("a second release", h.Release(bg), false, "not held")
		tell("a released hold", h.Err(), false, "not held")
		tell("the end of a released hold", context.Cause(h.Context()), false, "not held")

		h = w.acquire(l, bg, redlatch.Lease(time.Second))
		tell("a hold", h.Err(), false)
		time.Sleep(2 * time.Second)
		tell("a hold whose lease is over", h.Err(), false, "lost")
		tell("the extension of it", h.Extend(bg, time.Minute), false, "lost")
		tell("its release", h.Release(bg), false, "lost")
		tell("its second release", h.Release(bg), false, "not held")

		w.server.SetError("LOADING")
		tell("a server that cannot be used", second(l.Acquire(bg)), true, "unavailable")
		short, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		tell("and a context that is over", second(l.Acquire(short)), false, "unavailable", "deadline")
		w.server.SetError("")

		h = w.acquire(l, bg)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		tell("a hold of a closed client", h.Err(), false, "closed")
		tell("a closed client", second(l.Acquire(bg)), false, "closed")
	})
}

// The texts are read by people and not promised, but they say which of the
// three cases it is, and who.
func TestErrorTexts(t *testing.T) {
	at := time.Unix(0, 0)
	for _, tt := range []struct {
		err  error
		text string
	}{
		{&redlatch.BusyError{Name: "n"}, `redlatch: lock "n" was not acquired`},
		{&redlatch.BusyError{Name: "n", Owner: "o", TTL: 1500 * time.Millisecond}, `redlatch: lock "n" is held by o for another 1.5s at most`},
		{
			&redlatch.BusyError{Name: "n", Owner: "o", Cause: context.DeadlineExceeded},
			`redlatch: lock "n" is held by o: context deadline exceeded`,
		},
		{
			&redlatch.LostError{Name: "n", Reason: redlatch.LostExpired, Confirmed: at},
			`redlatch: lock "n" lost: its lease ran out before a renewal was confirmed`,
		},
		{
			&redlatch.LostError{Name: "n", Reason: redlatch.LostGone},
			`redlatch: lock "n" lost: the server no longer has it (released by force, expired, evicted, or lost with a restart or failover)`,
		},
		{&redlatch.LostError{Name: "n", Reason: redlatch.LostRevoked}, `redlatch: lock "n" lost: it was released by force`},
		{&redlatch.LostError{Name: "n", Reason: redlatch.LostMaxHold}, `redlatch: lock "n" lost: it was held for Config.MaxHold`},
		{redlatch.ErrNotHeld, "redlatch: lock not held"},
		{redlatch.ErrReentry, "redlatch: lock cannot be re-entered"},
		{redlatch.ErrClosed, "redlatch: client closed"},
		{redlatch.ErrUnavailable, "redlatch: server unavailable"},
	} {
		if got := tt.err.Error(); got != tt.text {
			t.Errorf("%T: %q, want %q", tt.err, got, tt.text)
		}
	}
}

// A caller under WithOwner may wait twice: for another acquisition of the same owner,
// then for the lock. Wait bounds both together.
func TestWaitBoundsAllWaitingUnderWithOwner(t *testing.T) {
	inFakeTime(t, func(w *world) {
		foreign := w.acquire(w.client(redlatch.Config{}).Lock("orders"), bg)
		l, owner := w.client(redlatch.Config{}).Lock("orders"), redlatch.WithOwner(bg)
		first := later(func() error { _, err := l.Acquire(owner, redlatch.Wait(3*time.Second)); return err })
		synctest.Wait()
		start := time.Now()
		_, err := l.Acquire(owner, redlatch.Wait(5*time.Second))
		w.wantErr(err, redlatch.ErrBusy)
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("waited for %v", waited)
		}
		w.wantErr(<-first, redlatch.ErrBusy)
		w.release(foreign)
	})
}
