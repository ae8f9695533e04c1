package clients

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// closeTimeout is the default of redlatch.Config.CloseTimeout.
const closeTimeout = 3 * time.Second

// ended is what the context of something held says that its client is shut down.
func ended(w *locktest.World, what string, ctx context.Context) {
	w.Helper()
	select {
	case <-ctx.Done():
	default:
		w.Errorf("%s: its context goes on", what)
		return
	}
	if cause := context.Cause(ctx); !errors.Is(cause, redlatch.ErrClosed) || errors.Is(cause, redlatch.ErrLost) {
		w.Errorf("%s: its context ended with %v, want ErrClosed", what, cause)
	}
}

// undisturbed is the context of something held while others may come to their end.
func undisturbed(w *locktest.World, what string, ctx context.Context) {
	w.Helper()
	if err := ctx.Err(); err != nil {
		w.Errorf("%s: its context has ended: %v", what, context.Cause(ctx))
	}
}

// A deploy that closed its client left the locks of its sections to their TTL: 30
// seconds of standstill.
func TestADeployHandsItsLocksOverAtOnce(t *testing.T) {
	for kind, lock := range locktest.TypesOfLock {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c, next := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				h := w.Acquire(bg, lock(c, "orders"))
				section := h.With(bg)
				other := lock(next, "orders")
				if kind == "read" {
					other = next.ReadWriteLock("orders").Write()
				}
				got := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, other) })
				time.Sleep(time.Second)
				down := locktest.Later(func() error { return c.Shutdown(bg) })
				time.Sleep(2 * time.Minute) // it may take its time: the lock is renewed
				undisturbed(w, "the section", section)
				if err := h.Err(); err != nil {
					t.Fatalf("the hold is over: %v", err)
				}
				select {
				case <-got:
					t.Fatal("somebody else has the lock while its section comes to its end")
				case err := <-down:
					t.Fatal("Shutdown did not wait for the section:", err)
				default:
				}
				start := time.Now()
				w.Release(h)
				after := <-got
				if d := time.Since(start); d > 3*time.Second || kind != "spin" && d > 10*time.Millisecond {
					t.Errorf("the next one got the lock %v after its release", d)
				}
				w.OK(<-down)
				if d := time.Since(start); kind != "spin" && d > 10*time.Millisecond {
					t.Errorf("Shutdown took %v more", d)
				}
				w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
				w.Release(after)
			})
		})
	}
}

// Who did not come to his end in time keeps his lock for what its TTL leaves: it
// is not given to others under him.
func TestAShutdownThatTakesTooLongLeavesTheLockToItsTTL(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		sem := w.Permits(c, 3)
		permit := w.Permit(sem)
		start := time.Now()
		told := locktest.Later(func() time.Duration { <-h.Context().Done(); return time.Since(start) })
		ctx, cancel := context.WithTimeoutCause(bg, time.Minute, redlatch.ErrClosed) // of another client, for one
		defer cancel()
		err := c.Shutdown(ctx)
		w.WantErr(err, context.DeadlineExceeded)
		if got := err.Error(); got != "redlatch: Shutdown: not released in time: 1 holds and 1 permits, left to their TTL, 0 calls of Semaphore.Do, and 0 releases that got no answer: context deadline exceeded: redlatch: client closed" {
			t.Error(got)
		}
		if at, d := <-told, time.Since(start); at != time.Minute || d != at+closeTimeout {
			t.Errorf("the section was told after %v, and Shutdown took %v", at, d)
		}
		w.WantErr(h.Err(), redlatch.ErrClosed)
		w.WantErr(permit.Err(), redlatch.ErrClosed)
		w.WantErr(h.Release(bg), redlatch.ErrClosed)
		if !w.Server.Exists("orders") {
			t.Error("Shutdown freed a lock under a running section")
		}
		w.OK(c.Shutdown(bg))
	})
}

func TestNothingIsAcquiredAfterShutdownHasBegun(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		outer := w.Acquire(bg, c.Lock("outer"))
		inner := w.Acquire(outer.Context(), c.Lock("outer"))
		shared := w.Acquire(bg, c.ReadWriteLock("shared").Read())
		w.Acquire(bg, other.Lock("busy"))
		sem, permits := w.Semaphore(c, 1), w.Permits(c, 1)
		w.OK(sem.Acquire(bg, 1))
		permit := w.Permit(permits)
		l := w.Latch(latch.New(c, "latch"), 2)
		limiter := ratelimit.New(c, "api", ratelimit.Rate{})
		w.SetRate(limiter, ratelimit.Rate{Permits: 1, Interval: time.Hour})
		w.TakeRate(limiter, 1)
		b := barrier.New(c, "meeting", 2)
		owner := redlatch.WithOwner(bg)
		owned := w.Acquire(owner, c.Lock("owned"))

		calls := map[string]func() error{
			"lock":      func() error { _, err := c.Lock("busy").Acquire(bg); return err },
			"local":     func() error { _, err := c.Lock("outer").Acquire(bg); return err },
			"nested":    func() error { _, err := c.Lock("outer").Acquire(outer.With(bg)); return err },
			"deeper":    func() error { _, err := c.Lock("outer").Acquire(inner.With(bg)); return err },
			"joined":    func() error { _, err := c.ReadWriteLock("shared").Read().Acquire(shared.With(bg)); return err },
			"owned":     func() error { _, err := c.Lock("owned").Acquire(owner); return err },
			"fair":      func() error { _, err := c.FairLock("busy fair").Acquire(bg); return err },
			"semaphore": func() error { return sem.Acquire(bg, 1) },
			"permit":    func() error { _, err := permits.Acquire(bg, 1); return err },
			"latch":     func() error { return l.Wait(bg) },
			"rate":      func() error { return limiter.Acquire(bg, 1) },
			"barrier":   func() error { _, err := b.Await(bg); return err },
			"free":      func() error { _, err := c.Lock("free").Acquire(bg); return err },
			"do":        func() error { return c.Lock("free").Do(bg, func(context.Context) error { panic("it ran") }) },
			"multi": func() error {
				_, err := redlatch.MultiLock(c.Lock("free"), c.Lock("free too")).Acquire(bg)
				return err
			},
		}
		w.Acquire(bg, other.FairLock("busy fair"))
		waiting := map[string]<-chan error{}
		for name, call := range calls {
			switch name {
			case "free", "do", "multi", "deeper", "joined", "owned":
			default:
				waiting[name] = locktest.Later(call)
			}
		}
		synctest.Wait()
		start := time.Now()
		down := locktest.Later(func() error { return c.Shutdown(bg) })
		for name, err := range waiting {
			if err := <-err; !errors.Is(err, redlatch.ErrClosed) {
				t.Errorf("%s: one that waited got %v", name, err)
			}
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, redlatch.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("it took %v to refuse all", d)
		}
		for _, key := range []string{"free", "free too"} {
			if w.Server.Exists(key) {
				t.Errorf("there is a key %q", key)
			}
		}
		for _, h := range []*redlatch.Hold{inner, outer, shared, owned} {
			undisturbed(w, h.Name(), h.Context()) // asked for only now
			w.OK(h.Err())
			w.Release(h)
		}
		select {
		case err := <-down:
			t.Fatal("Shutdown did not wait for a permit:", err)
		default:
		}
		undisturbed(w, "permit", permit.Context())
		w.OK(permit.Err())
		w.OK(permit.Release(bg))
		w.OK(<-down)
	})
}

// What a section does as it comes to its end is not refused: to release, to
// extend, to count, to ask.
func TestASectionMayFinishItsWorkDuringShutdown(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders", redlatch.Lease(10*time.Second)))
		sem, permits := w.Semaphore(c, 2), w.Permits(c, 3, redlatch.Lease(time.Minute))
		w.OK(sem.Acquire(bg, 2))
		leased, detached := w.Permit(permits), w.Permit(permits)
		id := w.Detach(detached)
		l := w.Latch(latch.New(c, "latch"), 2)
		limiter := ratelimit.New(c, "api", ratelimit.Rate{})
		w.SetRate(limiter, ratelimit.Rate{Permits: 3, Interval: time.Hour})
		w.TakeRate(limiter, 2)
		down := locktest.Later(func() error { return c.Shutdown(bg) })
		synctest.Wait()

		w.OK(h.Extend(bg, time.Minute))
		w.OK(leased.Extend(bg, 2*time.Minute))
		time.Sleep(30 * time.Second)
		w.OK(h.Err())
		undisturbed(w, "the section", h.Context())
		w.OK(sem.Release(bg, 1))
		_, err := sem.ReleaseIfExists(bg, 1)
		w.OK(err)
		w.OK(l.CountDown(bg))
		w.OK(limiter.Release(bg, 1))
		w.OK(permits.Release(bg, id))
		if n, err := sem.Available(bg); err != nil || n != 2 {
			t.Errorf("semaphore: %d, %v", n, err)
		}
		if n, err := l.Count(bg); err != nil || n != 1 {
			t.Errorf("latch: %d, %v", n, err)
		}
		if n, err := limiter.Available(bg); err != nil || n != 2 {
			t.Errorf("limiter: %d, %v", n, err)
		}
		if i, err := admin.LockInfo(bg, c.Lock("orders")); err != nil || len(i.Holders) != 1 {
			t.Errorf("Info: %+v, %v", i, err)
		}
		w.OK(leased.Release(bg))
		w.WantPermits(3, 0)
		w.Release(h)
		w.OK(<-down)
		w.WantErr(l.CountDown(bg), redlatch.ErrClosed)
		_, err = sem.Available(bg)
		w.WantErr(err, redlatch.ErrClosed)
	})
}

// The release had been sent as the last hold ended, and its first attempt did not
// arrive: with Close at that moment the lock stayed until its TTL.
func TestShutdownWaitsForTheOutcomeOfReleases(t *testing.T) {
	for _, what := range []string{"hold", "permit", "counted"} {
		for _, patient := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", what, patient), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					var failing atomic.Bool
					c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						if failing.Load() && (script == "lock.release" || script == "expirable.release" || script == "semaphore.exchange") {
							return driver.Reply{}, &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("loading")}
						}
						return next()
					}})
					release := map[string]func(ctx context.Context) error{}
					switch what {
					case "hold":
						release[what] = w.Acquire(bg, c.Lock("orders")).Release
					case "permit":
						release[what] = w.Permit(w.Permits(c, 1)).Release
					case "counted":
						sem := w.Semaphore(c, 1)
						w.OK(sem.Acquire(bg, 1))
						release[what] = func(ctx context.Context) error { return sem.Release(ctx, 1) }
					}
					failing.Store(true)
					ctx, cancel := context.WithCancel(bg)
					defer cancel()
					released := locktest.Later(func() error { return release[what](ctx) })
					time.Sleep(time.Second)
					if !patient {
						cancel()
						w.WantErr(<-released, context.Canceled)
					}
					down := locktest.Later(func() error { return c.Shutdown(bg) })
					time.Sleep(2 * time.Second)
					select {
					case err := <-down:
						t.Fatalf("Shutdown did not wait for a release: %v", err)
					default:
					}
					failing.Store(false)
					w.OK(<-down)
					if patient {
						w.OK(<-released)
					}
					if w.Server.Exists("orders") {
						t.Error("the lock is left to its TTL")
					}
					if what == "permit" {
						w.WantPermits(1, 0)
					}
					if n, _ := w.Server.Get(locktest.SemaphoreName); what == "counted" && n != "1" {
						t.Errorf("%s permits are there", n)
					}
				})
			})
		}
	}
}

func TestDoInAShutdownReturnsWhatItsFunctionDoes(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		sad := errors.New("stopped half-way")
		done := locktest.Later(func() error {
			return c.Lock("orders").Do(bg, func(ctx context.Context) error {
				<-ctx.Done()
				ended(w, "the section", ctx)
				w.OK(redlatch.HoldFrom(ctx).Err())
				return sad
			})
		})
		synctest.Wait()
		now, cancel := context.WithCancel(bg)
		cancel()
		w.OK(c.Shutdown(now))
		if err := <-done; err != sad { //nolint:errorlint // nothing is joined to it
			t.Errorf("Do returned %v", err)
		}
		if w.Server.Exists("orders") {
			t.Error("the lock is left to its TTL")
		}
	})
}

// A holder that loses its lock meanwhile is told so, and nobody waits for it.
func TestALossDuringShutdownIsTold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		down := locktest.Later(func() error { return c.Shutdown(bg) })
		synctest.Wait()
		w.Server.Del("orders")
		w.OK(<-down) // after the next renewal
		w.WantErr(h.Err(), redlatch.ErrLost)
		w.WantErr(h.Release(bg), redlatch.ErrLost)
	})
}

// Force release asks the client of a hold to let go; it must hear that until it is
// closed.
func TestAClientThatShutsDownStillHearsThatItIsToLetGo(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		down := locktest.Later(func() error { return c.Shutdown(bg) })
		time.Sleep(time.Second)
		start := time.Now()
		if was, err := admin.ForceRelease(bg, other.Lock("orders")); !was || err != nil {
			t.Fatalf("ForceRelease: %t, %v", was, err)
		}
		if d := time.Since(start); d > 100*time.Millisecond {
			t.Errorf("it took %v: the holder did not answer", d)
		}
		w.WantErr(h.Err(), redlatch.ErrLost)
		w.OK(<-down)
	})
}

// Close waits for a caller that is with the driver, and until then its holds are
// trusted.
func TestAClientThatClosesStillHearsThatItIsToLetGo(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		slow := &locktest.Tap{Keyed: func(script string, keys, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if script == "lock.take" && keys[0] == "slow" {
				time.Sleep(2 * time.Second)
			}
			return next()
		}}
		c, other := w.Tapped(redlatch.Config{}, slow), w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		late := locktest.Later(func() error {
			_, err := c.Lock("slow").Acquire(bg)
			return err
		})
		synctest.Wait()
		down := locktest.Later(c.Close)
		synctest.Wait()
		before, start := h.Err(), time.Now()
		was, err := admin.ForceRelease(bg, other.Lock("orders"))
		took, told := time.Since(start), h.Err()
		w.OK(<-down)
		w.WantErr(<-late, redlatch.ErrClosed)
		if before != nil || !was || err != nil || took > 100*time.Millisecond || !errors.Is(told, redlatch.ErrLost) {
			t.Errorf("the holder knows %v, is asked to let go for %v (%t, %v), and knows %v", before, took, was, err, told)
		}
	})
}

// Of several locks as one the context is its own.
func TestShutdownEndsTheContextOfSeveralLocksAsOne(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, far, farther := w.Client(redlatch.Config{CloseTimeout: 2 * time.Minute}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		multi := w.Acquire(bg, redlatch.MultiLock(c.Lock("a"), c.FairLock("b"), far.Lock("c")))
		red := w.Acquire(bg, redlatch.RedLock(c.Lock("d"), far.Lock("e"), farther.Lock("f")))
		synctest.Wait() // two were enough; now it has all
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		down := locktest.Later(func() error { return c.Shutdown(ctx) })
		time.Sleep(59 * time.Second)
		undisturbed(w, "multi", multi.Context())
		undisturbed(w, "red", red.Context())
		<-multi.Context().Done()
		<-red.Context().Done()
		ended(w, "multi", multi.Context())
		ended(w, "red", red.Context())
		time.Sleep(time.Minute)
		w.OK(multi.Err())
		w.OK(red.Err())
		w.Release(multi)
		w.Release(red)
		w.OK(<-down)
		w.OK(far.Shutdown(bg))
		w.OK(farther.Shutdown(bg))
		for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
			if w.Server.Exists(key) {
				t.Errorf("%q is left to its TTL", key)
			}
		}
	})
}

func TestCloseEndsAShutdown(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		first := locktest.Later(func() error { return c.Shutdown(bg) })
		second := locktest.Later(func() error { return c.Shutdown(bg) })
		synctest.Wait()
		w.OK(c.Close())
		w.OK(<-first)
		w.OK(<-second)
		w.WantErr(h.Err(), redlatch.ErrClosed)
		w.OK(c.Shutdown(bg))
		//nolint:staticcheck // that is the test
		if err := c.Shutdown(nil); err == nil {
			t.Error("a nil context was accepted")
		}
	})
}

// There may be nothing to wait for, and no time.
func TestShutdownOfAnIdleClientNeedsNoTime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		ctx, cancel := context.WithCancel(bg)
		cancel()
		for range 20 {
			c := w.Client(redlatch.Config{})
			w.Release(w.Acquire(bg, c.Lock("orders")))
			start := time.Now()
			w.OK(c.Shutdown(ctx))
			if d := time.Since(start); d > 0 {
				t.Fatalf("it took %v", d)
			}
		}
	})
}

// Whoever acquires something at that very moment either fails, and leaves nothing,
// or is told.
func TestAnAcquisitionThatMeetsShutdownLeavesNothing(t *testing.T) {
	for kind, lock := range locktest.TypesOfLock {
		for at := range 8 {
			locktest.InFakeTime(t, func(w *locktest.World) {
				slow := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					time.Sleep(2 * time.Millisecond)
					defer time.Sleep(2 * time.Millisecond)
					return next()
				}
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: slow})
				got := locktest.Later(func() locktest.Outcome {
					h, err := lock(c, "orders").Acquire(bg)
					return locktest.Outcome{Hold: h, Err: err}
				})
				time.Sleep(time.Duration(at) * time.Millisecond)
				down := locktest.Later(func() error { return c.Shutdown(bg) })
				o := <-got
				synctest.Wait()
				if o.Err != nil {
					w.WantErr(o.Err, redlatch.ErrClosed)
				} else {
					undisturbed(w, kind, o.Hold.Context())
					w.Release(o.Hold)
				}
				w.OK(<-down)
				time.Sleep(10 * time.Millisecond)
				if w.Server.Exists("orders") {
					t.Errorf("%s, %d ms: the lock is left to its TTL", kind, at)
				}
			})
		}
	}
}

// A release that got no answer for Config.OutageTimeout was nobody's business any
// more: Shutdown returned nil with time left, and the lock stayed for its TTL when
// the server was back.
func TestShutdownWaitsForReleasesThatGotNoAnswer(t *testing.T) {
	held := map[string]func(w *locktest.World, c *redlatch.Client) func(context.Context) error{
		"permit": func(w *locktest.World, c *redlatch.Client) func(context.Context) error {
			return w.Permit(w.Permits(c, 1)).Release
		},
		"several": func(w *locktest.World, c *redlatch.Client) func(context.Context) error {
			return w.Acquire(bg, redlatch.MultiLock(c.Lock("orders"), c.Lock("stock"))).Release
		},
	}
	for kind, lock := range locktest.TypesOfLock {
		held[kind] = func(w *locktest.World, c *redlatch.Client) func(context.Context) error {
			return w.Acquire(bg, lock(c, "orders")).Release
		}
	}
	for kind, hold := range held {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{WatchdogTimeout: 5 * time.Minute})
				release := hold(w, c)
				synctest.Wait()
				w.Server.SetError("LOADING Redis is loading the dataset in memory")
				down := locktest.Later(func() error {
					ctx, cancel := context.WithTimeout(bg, 2*time.Minute)
					defer cancel()
					return c.Shutdown(ctx)
				})
				w.WantErr(release(bg), redlatch.ErrUnavailable)
				time.Sleep(time.Minute)
				if !locktest.NoneYet(down) {
					w.Fatal("Shutdown returned when nobody knew whether what was held is free")
				}
				w.Server.SetError("")
				start := time.Now()
				w.OK(<-down)
				if d := time.Since(start); d > 3*time.Second {
					t.Errorf("Shutdown took %v more", d)
				}
				if w.Server.Exists("orders") || w.Server.Exists("stock") || w.Server.Exists(locktest.PoolTimes) {
					t.Errorf("left behind: %q", w.Keys())
				}
			})
		})
	}
}

// There may be too little time for that: then Shutdown says so.
func TestShutdownSaysWhatGotNoAnswer(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		w.Server.SetError("LOADING Redis is loading the dataset in memory")
		w.WantErr(h.Release(bg), redlatch.ErrUnavailable)
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		start := time.Now()
		err := c.Shutdown(ctx)
		w.WantErr(err, context.DeadlineExceeded)
		if got := err.Error(); got != "redlatch: Shutdown: not released in time: 0 holds and 0 permits, left to their TTL, 0 calls of Semaphore.Do, and 1 releases that got no answer: context deadline exceeded" {
			t.Error(got)
		}
		if d := time.Since(start); d != time.Minute+closeTimeout {
			t.Errorf("Shutdown took %v", d)
		}
	})
}

// What the server refuses for good no waiting changes. Its holder was told.
func TestShutdownDoesNotWaitForAReleaseThatIsRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		w.Server.SetError("NOPERM this user has no permissions")
		if err := h.Release(bg); err == nil {
			t.Error("released")
		}
		start := time.Now()
		w.OK(c.Shutdown(bg))
		if d := time.Since(start); d > 0 {
			t.Errorf("Shutdown took %v", d)
		}
	})
}

// Whoever did not come to his end in time had none left to release what he held
// when he was told: it was left to its TTL.
func TestWhoIsToldAtTheEndOfShutdownMayStillRelease(t *testing.T) {
	type held struct {
		context.Context

		release func(context.Context) error
	}
	kinds := map[string]func(w *locktest.World, c *redlatch.Client) held{
		"permit": func(w *locktest.World, c *redlatch.Client) held {
			p := w.Permit(w.Permits(c, 3))
			return held{p.Context(), p.Release}
		},
		"several": func(w *locktest.World, c *redlatch.Client) held {
			h := w.Acquire(bg, redlatch.MultiLock(c.Lock("orders"), c.Lock("stock")))
			return held{h.Context(), h.Release}
		},
		"counted": func(w *locktest.World, c *redlatch.Client) held {
			s := begin(w.Semaphore(c, 3), 1)
			return held{s, func(context.Context) error { s.finish <- nil; return <-s.done }}
		},
		"lease": func(w *locktest.World, c *redlatch.Client) held {
			h := w.Acquire(bg, c.Lock("orders", redlatch.Lease(time.Hour)))
			return held{h.Context(), h.Release}
		},
	}
	for kind, lock := range locktest.TypesOfLock {
		kinds[kind] = func(w *locktest.World, c *redlatch.Client) held {
			h := w.Acquire(bg, lock(c, "orders"))
			return held{h.Context(), h.Release}
		}
	}
	for kind, hold := range kinds {
		for _, before := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprintf("%s/%v", kind, before), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c := w.Client(redlatch.Config{})
					h := hold(w, c)
					ctx, cancel := context.WithTimeout(bg, before)
					defer cancel()
					start := time.Now()
					down := locktest.Later(func() error { return c.Shutdown(ctx) })
					<-h.Done()
					ended(w, kind, h)
					if d := time.Since(start); d != before {
						t.Errorf("told after %v", d)
					}
					time.Sleep(closeTimeout - 10*time.Millisecond)
					w.OK(h.release(bg))
					w.OK(<-down)
					if w.Server.Exists("orders") || w.Server.Exists("stock") {
						t.Errorf("left behind: %q", w.Keys())
					}
					switch kind {
					case "permit":
						w.WantPermits(3, 0)
					case "counted":
						wantSemaphore(w, "after Shutdown", "3")
					}
				})
			})
		}
	}
}
