package locks

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// rueidislock #372, #602: a loop without a pause.
func TestAnOutageIsNotHammered(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var n atomic.Int64
		d := &locktest.Tap{Hook: func(string, []string, func() (driver.Reply, error)) (driver.Reply, error) {
			n.Add(1)
			return driver.Reply{}, &driver.RunError{Outcome: driver.NotExecuted, Code: "LOADING", Err: errors.New("LOADING")}
		}}
		c := w.Tapped(redlatch.Config{OutageTimeout: time.Hour}, d)
		ctx, cancel := context.WithTimeout(bg, 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := c.Lock("orders").Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := n.Load(); got < 300 || got > 1300 {
			t.Errorf("%d requests in ten minutes of an outage, want one or two a second", got)
		}
	})
}

// rueidislock #630, redsync #83: a time-out inside that nobody had asked for.
func TestASlowLinkNeedsNoSettings(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(1200 * time.Millisecond)
			defer time.Sleep(1200 * time.Millisecond)
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		outer := w.Acquire(bg, c.Lock("orders"))
		inner := w.Acquire(outer.Context(), c.Lock("orders"))
		time.Sleep(5 * time.Minute)
		if err := inner.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		w.Release(inner)
		w.Release(outer)
	})
}

func TestAnOutageIsRetryableAndNotTheCallersDeadline(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(5 * time.Second) // a driver that hangs
			return driver.Reply{}, locktest.ErrReplyLost
		}}
		c := w.Tapped(redlatch.Config{}, d)
		_, err := c.Lock("orders").Acquire(bg)
		t.Log(err)
		if !errors.Is(err, redlatch.ErrUnavailable) {
			t.Fatal(err)
		}
		if !redlatch.IsRetryable(err) {
			t.Error("not retryable")
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("looks like the caller's deadline")
		}
		d.Off.Store(true)
		time.Sleep(10 * time.Minute)
	})
}

// The server answers, and refuses all that one of them asks: it has no memory.
// Those behind it were told that the lock was busy, or asked for as long as the
// first one had, each in its turn.
func TestCallersThatWaitForOneAnotherLearnTogetherThatTheServerRefuses(t *testing.T) {
	for name, lock := range locktest.TypesOfLock {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var full atomic.Bool
				const oom = "OOM command not allowed when used memory > 'maxmemory'."
				c := w.Tapped(redlatch.Config{OutageTimeout: 5 * time.Second}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if full.Load() && strings.HasSuffix(s, ".take") {
						return driver.Reply{}, driver.ServerError(oom, errors.New(oom))
					}
					return next()
				}})
				full.Store(true)
				refused := func(what string, err error, more ...error) {
					t.Helper()
					w.WantErr(err, append(more, redlatch.ErrUnavailable)...)
					if !strings.Contains(err.Error(), "OOM") {
						t.Errorf("%s: %v", what, err)
					}
				}
				start := time.Now()
				var waiting []<-chan error
				for range 5 {
					waiting = append(waiting, locktest.Later(func() error { _, err := lock(c, "orders").Acquire(bg); return err }))
					time.Sleep(100 * time.Millisecond)
				}
				ctx, cancel := context.WithTimeout(bg, time.Second)
				defer cancel()
				_, err := lock(c, "orders").Acquire(ctx)
				refused("its context has ended", err, context.DeadlineExceeded)
				_, err = lock(c, "orders").TryAcquire(bg, time.Second)
				refused("its time is over", err)
				for _, c := range waiting {
					refused("it has waited", <-c)
				}
				if d := time.Since(start); d < 5*time.Second || d > 7*time.Second {
					t.Errorf("they have asked for %v", d)
				}
				full.Store(false)
				w.Release(w.Acquire(bg, lock(c, "orders")))
				time.Sleep(5 * time.Minute)
				w.WantLocksGone()
			})
		})
	}
}

// A driver of somebody else may fail with an error of its own, which does not say
// what became of the request. Then the request may have been executed: who leaves
// does not leave a lock behind that nobody holds.
func TestAnErrorThatSaysNothingLeavesNoLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		ctx, cancel := context.WithCancel(bg)
		d := &locktest.Tap{Hook: func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if script != "lock.take" || ctx.Err() != nil {
				return next()
			}
			_, _ = next()
			cancel()
			return driver.Reply{}, errors.New("the connection ended")
		}}
		if h, err := w.Tapped(redlatch.Config{}, d).Lock("orders").Acquire(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, %v", h, err)
		}
		start := time.Now()
		w.Release(w.Acquire(bg, w.Client(redlatch.Config{}).Lock("orders")))
		if took := time.Since(start); took > time.Second {
			t.Errorf("the next one waited for %v", took)
		}
	})
}

// A lock with a long lease that was released in a long outage stayed for the rest
// of its lease: after two minutes nobody sent its release any more.
func TestAReleaseThatGetsNoAnswerIsSentUntilItDoes(t *testing.T) {
	for kind, lock := range locktest.TypesOfLock {
		locktest.InFakeTime(t, func(w *locktest.World) {
			h := w.Acquire(bg, locktest.With(lock(w.Client(redlatch.Config{}), "orders"), redlatch.Lease(time.Hour)))
			w.Server.SetError("LOADING Redis is loading the dataset in memory")
			w.WantErr(h.Release(bg), redlatch.ErrUnavailable)
			time.Sleep(20 * time.Minute)
			w.Server.SetError("")
			time.Sleep(61 * time.Second)
			synctest.Wait()
			if w.Server.Exists("orders") {
				t.Errorf("%s: the lock is left to its lease", kind)
			}
		})
	}
}
