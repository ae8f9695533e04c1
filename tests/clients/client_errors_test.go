package clients

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// What an error is, and what it is not: buildbuddy left redsync because an error
// changed, and redsync #125 has one error for three cases.
func TestErrorsAreTold(t *testing.T) {
	all := map[string]error{
		"busy": redlatch.ErrBusy, "lost": redlatch.ErrLost, "not held": redlatch.ErrNotHeld, "reentry": redlatch.ErrReentry,
		"closed": redlatch.ErrClosed, "unavailable": redlatch.ErrUnavailable, "deadline": context.DeadlineExceeded,
	}
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		l := c.Lock("orders", redlatch.NonReentrant())
		h := w.Acquire(bg, l)
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

		tell("a lock that is held", second(other.Lock("orders").TryAcquire(bg, 0)), true, "busy")
		tell("a wait that is over", second(other.Lock("orders").TryAcquire(bg, time.Second)), true, "busy")
		tell("a context that is over", second(other.Lock("orders").Acquire(soon)), false, "busy", "deadline")
		tell("a re-entry that is refused", second(l.Acquire(h.Context())), false, "reentry")
		w.Release(h)
		tell("a second release", h.Release(bg), false, "not held")
		tell("a released hold", h.Err(), false, "not held")
		tell("the end of a released hold", context.Cause(h.Context()), false, "not held")

		h = w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Second)))
		tell("a hold", h.Err(), false)
		time.Sleep(2 * time.Second)
		tell("a hold whose lease is over", h.Err(), false, "lost")
		tell("the extension of it", h.Extend(bg, time.Minute), false, "lost")
		tell("its release", h.Release(bg), false, "lost")
		tell("its second release", h.Release(bg), false, "not held")

		w.Server.SetError("LOADING")
		tell("a server that cannot be used", second(l.Acquire(bg)), true, "unavailable")
		short, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		tell("and a context that is over", second(l.Acquire(short)), false, "unavailable", "deadline")
		w.Server.SetError("")

		h = w.Acquire(bg, l)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		tell("a hold of a closed client", h.Err(), false, "closed")
		tell("a closed client", second(l.Acquire(bg)), false, "closed")
	})
}

// Of one handler for all errors it depends what has the name.
func TestBusyErrorsSayWhatIsBusy(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		permits, l := semaphore.NewExpirable(c, "permits", 1), latch.New(c, "latch")
		limiter := ratelimit.New(c, "limiter", ratelimit.Rate{})
		w.SetRate(limiter, ratelimit.Rate{Permits: 1, Interval: time.Minute})
		w.OK(limiter.TryAcquire(bg, 1, 0))
		h := w.Acquire(bg, c.FairLock("lock"))
		p, err := permits.Acquire(bg, 1)
		w.OK(err)
		w.OK(only(l.TrySetCount(bg, 1)))
		w.SetPermits(semaphore.New(c, "semaphore", 0), 0)
		soon, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		for kind, err := range map[redlatch.Kind]error{
			redlatch.KindLock:        only(w.Client(redlatch.Config{}).FairLock("lock").TryAcquire(bg, 0)),
			redlatch.KindSemaphore:   semaphore.New(c, "semaphore", 0).TryAcquire(bg, 1, 0),
			redlatch.KindExpirable:   only(permits.TryAcquire(bg, 1, 0)),
			redlatch.KindLatch:       l.Wait(soon),
			redlatch.KindRateLimiter: limiter.TryAcquire(bg, 1, 0),
			redlatch.KindBarrier:     only(barrier.New(c, "barrier", 2).Await(soon)),
		} {
			var busy *redlatch.BusyError
			if !errors.As(err, &busy) || busy.Kind != kind {
				t.Errorf("%v of kind %q, want %q", err, busy.Kind, kind)
			}
		}
		w.Server.FlushAll()
		var lost *redlatch.LostError
		if err := h.Release(bg); !errors.As(err, &lost) || lost.Kind != redlatch.KindLock {
			t.Errorf("%v", err)
		}
		if err := p.Release(bg); !errors.As(err, &lost) || lost.Kind != redlatch.KindExpirable {
			t.Errorf("%v", err)
		}
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
		{&redlatch.BusyError{Name: "n", Owner: "o", TTL: 1500 * time.Millisecond}, `redlatch: lock "n" is held by o; its lease ends in 1.5s unless it is renewed`},
		{
			&redlatch.BusyError{Name: "n", Owner: "o", TTL: time.Second, By: "billing@host-7 pid 4121", For: 12300 * time.Millisecond, Renewed: true},
			`redlatch: lock "n" is held by billing@host-7 pid 4121 (o) for 12.3s (renewed while it lives)`,
		},
		{
			&redlatch.BusyError{Name: "n", Owner: "o", TTL: time.Second, Note: `x"; its lease ends in 1ms \" \x1b`},
			`redlatch: lock "n" is held by o: "x'; its lease ends in 1ms \' \x1b"; its lease ends in 1s unless it is renewed`,
		},
		{
			&redlatch.BusyError{Name: "n", Owner: "o", Cause: context.DeadlineExceeded},
			`redlatch: lock "n" is held by o: context deadline exceeded`,
		},
		{
			&redlatch.BusyError{Name: "n", Owner: "o:kept", TTL: time.Minute, RetryAfter: time.Minute, By: "billing@host-7 pid 4121"},
			`redlatch: lock "n" was released, and MinHold keeps it for another 1m0s at least`,
		},
		{&redlatch.BusyError{Name: "n", Owner: "o:kept", TTL: time.Minute}, `redlatch: lock "n" was released, and MinHold keeps it`},
		{&redlatch.BusyError{Name: "n", Kind: redlatch.KindRateLimiter}, `redlatch: rate limiter "n" has not enough permits`},
		{
			&redlatch.BusyError{Name: "n", Kind: redlatch.KindRateLimiter, RetryAfter: 1500 * time.Millisecond, Cause: context.Canceled},
			`redlatch: rate limiter "n" has not enough permits for another 1.5s at least: context canceled`,
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
		{&redlatch.LostError{Name: "n", Reason: redlatch.LostMaxHold}, `redlatch: lock "n" lost: it was held for as long as MaxHold allows`},
		{&redlatch.LostError{Name: "n", Kind: redlatch.KindExpirable, Reason: redlatch.LostMaxHold}, `redlatch: permit of semaphore "n" lost: it was held for as long as MaxHold allows`},
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

// An errgroup ends its context with the error of the goroutine that has failed
// first.
func TestAContextThatEndsWithAnErrorOfRedlatchAsItsCause(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var outcome observe.Outcome
		other := w.Client(redlatch.Config{})
		c := w.Client(redlatch.Config{}, observe.Hooks{AcquireEnd: func(_ context.Context, e observe.AcquireEndEvent) { outcome = e.Outcome }})
		hx, ha := w.Acquire(bg, other.Lock("x")), w.Acquire(bg, other.Lock("a"))
		_, busy := c.Lock("x").TryAcquire(bg, 0)
		third := w.Client(redlatch.Config{})
		_ = third.Close()
		_, closed := third.Lock("x").TryAcquire(bg, 0)
		sem := semaphore.New(other, "s", 0)
		w.SetPermits(sem, 1)
		_ = sem.Acquire(bg, 1)
		_, _ = latch.New(other, "l").TrySetCount(bg, 1)
		for what, cause := range map[string]error{"busy": busy, "closed": closed, "unavailable": fmt.Errorf("%w: of another server", redlatch.ErrUnavailable), "acks": &redlatch.AckError{}, "none": nil, "plain": errors.New("plain")} {
			for kind, wait := range map[string]func(ctx context.Context) error{
				"lock":      func(ctx context.Context) error { _, err := c.Lock("a").Acquire(ctx); return err },
				"fair":      func(ctx context.Context) error { _, err := c.FairLock("a").Acquire(ctx); return err },
				"semaphore": func(ctx context.Context) error { return semaphore.New(c, "s", 0).Acquire(ctx, 1) },
				"latch":     func(ctx context.Context) error { return latch.New(c, "l").Wait(ctx) },
				"barrier":   func(ctx context.Context) error { _, err := barrier.New(c, "b", 2).Await(ctx); return err },
				"multi": func(ctx context.Context) error {
					_, err := redlatch.MultiLock(c.Lock("a"), c.Lock("b")).Acquire(ctx)
					return err
				},
			} {
				ctx, cancel := context.WithCancelCause(bg)
				done := locktest.Later(func() error { return wait(ctx) })
				time.Sleep(100 * time.Millisecond)
				cancel(cause)
				err := <-done
				w.Settle() // a barrier counts a caller that has left until it hears of it
				var b *redlatch.BusyError
				if !errors.As(err, &b) || b.Name == "x" || b.Cause == nil {
					t.Errorf("%s/%s: BusyError %+v", what, kind, b)
				}
				if redlatch.IsRetryable(err) || outcome != observe.OutcomeCancelled || !errors.Is(err, context.Canceled) {
					t.Errorf("%s/%s: %v, retryable: %v, outcome %s", what, kind, err, redlatch.IsRetryable(err), outcome)
				}
			}
		}
		w.Release(hx)
		w.Release(ha)
	})
}

// A program may give its contexts ErrClosed as their cause when it closes a
// client.
func TestErrClosedAsACauseHidesNoOutage(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var outcome observe.Outcome
		silent := &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("no connection")}
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{
			Hook: func(string, []string, func() (driver.Reply, error)) (driver.Reply, error) {
				return driver.Reply{}, silent
			},
		}, observe.Hooks{AcquireEnd: func(_ context.Context, e observe.AcquireEndEvent) { outcome = e.Outcome }})
		for kind, wait := range map[string]func(ctx context.Context) error{
			"lock":      func(ctx context.Context) error { _, err := c.Lock("a").Acquire(ctx); return err },
			"fair":      func(ctx context.Context) error { _, err := c.FairLock("a").Acquire(ctx); return err },
			"semaphore": func(ctx context.Context) error { return semaphore.New(c, "s", 0).Acquire(ctx, 1) },
			"expirable": func(ctx context.Context) error {
				_, err := semaphore.NewExpirable(c, "e", 0).Acquire(ctx, 1)
				return err
			},
			"limiter": func(ctx context.Context) error { return ratelimit.New(c, "r", ratelimit.Rate{}).Acquire(ctx, 1) },
			"latch":   func(ctx context.Context) error { return latch.New(c, "l").Wait(ctx) },
		} {
			ctx, cancel := context.WithCancelCause(bg)
			done := locktest.Later(func() error { return wait(ctx) })
			time.Sleep(5 * time.Second)
			cancel(redlatch.ErrClosed)
			if err := <-done; !errors.Is(err, redlatch.ErrUnavailable) || !errors.Is(err, context.Canceled) || redlatch.IsRetryable(err) || outcome != observe.OutcomeUnavailable {
				t.Errorf("%s: %v, outcome %s", kind, err, outcome)
			}
		}
	})
}

// What engines say among themselves users cannot name: each of them is made an
// error of the root once, on its way out.
func TestNoErrorIsAnEnginesOwn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		far, _ := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, 0)
		public := func(what string, err error, is error) {
			t.Helper()
			var (
				busy fact.Busy
				lost fact.Lost
				few  fact.TooFew
			)
			if errors.As(err, &busy) || errors.As(err, &lost) || errors.As(err, &few) {
				t.Errorf("%s: %#v is an engine's", what, err)
			}
			if !errors.Is(err, is) {
				t.Errorf("%s: %v, want %v", what, err, is)
			}
		}
		kinds := maps.Clone(locktest.TypesOfLock)
		kinds["multilock"] = func(c *redlatch.Client, name string) *redlatch.Lock {
			return redlatch.MultiLock(c.Lock(name+" 1"), c.Lock(name+" 2"))
		}
		kinds["redlock"] = func(c *redlatch.Client, name string) *redlatch.Lock {
			return redlatch.RedLock(c.Lock(name+" 1"), w.Client(redlatch.Config{}).Lock(name+" 2"), w.Client(redlatch.Config{}).Lock(name+" 3"))
		}
		soon := func() context.Context {
			ctx, cancel := context.WithTimeout(bg, 2*time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		for name, of := range kinds {
			l := of(c, name)
			h := w.Acquire(bg, l)
			rival := of(other, name)
			if name == "read" {
				rival = other.ReadWriteLock(name).Write()
			}
			for who, l := range map[string]*redlatch.Lock{"a rival": rival, "another caller": l} {
				if name == "read" && l != rival { // they share it
					continue
				}
				public(name+": "+who+" tries", only(l.TryAcquire(bg, 0)), redlatch.ErrBusy)
				public(name+": "+who+" waits", only(l.TryAcquire(bg, 2*time.Second)), redlatch.ErrBusy)
				public(name+": "+who+" has a context", only(l.Acquire(soon())), redlatch.ErrBusy)
			}
			w.Server.FlushAll()
			time.Sleep(time.Minute) // a renewal
			public(name+": lost", h.Err(), redlatch.ErrLost)
			public(name+": a context", context.Cause(h.Context()), redlatch.ErrLost)
			public(name+": its release", h.Release(bg), redlatch.ErrLost)
			h = w.Acquire(bg, l)
			w.Server.FlushAll()
			public(name+": a release finds it lost", h.Release(bg), redlatch.ErrLost)
			if name != "redlock" { // whose other members acknowledge
				public(name+": not acknowledged", only(of(far, name).TryAcquire(bg, 0)), redlatch.ErrNotAcknowledged)
			}
		}

		permits := semaphore.NewExpirable(c, "permits", 1)
		p, err := permits.Acquire(bg, 1)
		w.OK(err)
		public("permits", only(permits.TryAcquire(bg, 1, 0)), redlatch.ErrBusy)
		public("permits, a context", only(permits.Acquire(soon(), 1)), redlatch.ErrBusy)
		counted := semaphore.New(c, "semaphore", 1)
		w.OK(counted.Acquire(bg, 1))
		public("a semaphore", counted.TryAcquire(bg, 1, 0), redlatch.ErrBusy)
		public("a semaphore, a context", counted.Acquire(soon(), 1), redlatch.ErrBusy)
		limiter := ratelimit.New(c, "limiter", ratelimit.Rate{Permits: 1, Interval: time.Minute})
		w.OK(limiter.Acquire(bg, 1))
		public("a limiter", limiter.TryAcquire(bg, 1, 0), redlatch.ErrBusy)
		public("a limiter, a context", limiter.Acquire(soon(), 1), redlatch.ErrBusy)
		l := latch.New(c, "latch")
		w.OK(only(l.TrySetCount(bg, 1)))
		public("a latch", l.Wait(soon()), redlatch.ErrBusy)
		public("a barrier", only(barrier.New(c, "barrier", 2).Await(soon())), redlatch.ErrBusy)
		public("permits, not acknowledged", only(semaphore.NewExpirable(far, "other permits", 1).TryAcquire(bg, 1, 0)), redlatch.ErrNotAcknowledged)
		public("a semaphore, not acknowledged", semaphore.New(far, "other semaphore", 1).TryAcquire(bg, 1, 0), redlatch.ErrNotAcknowledged)
		w.Server.FlushAll()
		public("permits, a release finds them lost", p.Release(bg), redlatch.ErrLost)

		whole, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		_ = election.New(c, "chief").Run(whole, func(ctx context.Context, _ int64) error {
			w.Server.FlushAll()
			<-ctx.Done()
			public("a term of an election", context.Cause(ctx), redlatch.ErrLost)
			cancel()
			return nil
		})
		if whole.Err() != context.Canceled {
			t.Error("nobody was elected")
		}
	})
}
