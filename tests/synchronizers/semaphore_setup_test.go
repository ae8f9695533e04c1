package synchronizers

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A caller that carries the set-up needs no loop, neither at the first start nor
// when the server has lost its data under callers that wait; and what others have
// set up is left as it is.
func TestAFlushOrAFirstStartNeedsNoLoop(t *testing.T) {
	type carrier struct {
		acquire func(ctx context.Context) error
		try     func() error
		total   func() (int, error)
		change  func() error // to 7
	}
	for name, carry := range map[string]func(c *redlatch.Client, n int) carrier{
		"counted": func(c *redlatch.Client, n int) carrier {
			s := semaphore.New(c, locktest.Pool, n)
			nothing := func(context.Context) error { return nil }
			return carrier{
				func(ctx context.Context) error { return s.Do(ctx, 1, nothing) },
				func() error { _, err := s.TryDo(bg, 1, 0, nothing); return err },
				func() (int, error) { return s.Available(bg) },
				func() error { return s.AddPermits(bg, 4) },
			}
		},
		"permits": func(c *redlatch.Client, n int) carrier {
			s := semaphore.NewExpirable(c, locktest.Pool, n)
			return carrier{
				func(ctx context.Context) error {
					p, err := s.Acquire(ctx, 1)
					if err != nil {
						return err
					}
					return p.Release(bg)
				},
				func() error {
					p, err := s.TryAcquire(bg, 1, 0)
					if err != nil {
						return err
					}
					return p.Release(bg)
				},
				func() (int, error) { return s.Permits(bg) },
				func() error { return s.SetPermits(bg, 7) },
			}
		},
		"rate": func(c *redlatch.Client, n int) carrier {
			l := ratelimit.New(c, locktest.Pool, ratelimit.Rate{Permits: n, Interval: time.Second})
			return carrier{
				func(ctx context.Context) error { return l.Acquire(ctx, 1) },
				func() error { return l.TryAcquire(bg, 1, 0) },
				func() (int, error) {
					r, err := l.Config(bg)
					return r.Permits, err
				},
				func() error { return l.SetRate(bg, ratelimit.Rate{Permits: 7, Interval: time.Second}) },
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a, b := carry(w.Client(redlatch.Config{}), 3), carry(w.Client(redlatch.Config{}), 3)
				has := func(want int) {
					t.Helper()
					if n, err := a.total(); err != nil || n != want {
						t.Errorf("%d in all, %v, want %d", n, err, want)
					}
				}
				w.OK(a.try())
				has(3)
				w.OK(a.change())
				w.OK(b.try())
				has(7)
				for range 5 {
					w.Server.FlushAll()
					all := make([]<-chan error, 20)
					for i := range all {
						c := []carrier{a, b}[i%2]
						all[i] = locktest.Later(func() error { return c.acquire(bg) })
					}
					time.Sleep(time.Second)
					w.Server.FlushAll()
					for _, err := range all {
						w.OK(<-err)
					}
					w.OK(a.acquire(bg)) // or it was the last one whose set-up was lost
					has(3)
				}
				bad := carry(w.Client(redlatch.Config{}), -1)
				if bad.try() == nil || bad.acquire(bg) == nil {
					t.Error("a set-up that cannot be is accepted")
				}
			})
		})
	}
}

// What stands there and cannot be used is not set up over and over: the caller is
// told.
func TestASetUpThatDoesNotHelpIsTriedOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		w.Server.HSet(locktest.Pool, "type", "0")
		l := ratelimit.New(w.Client(redlatch.Config{}), locktest.Pool, ratelimit.Rate{Permits: 3, Interval: time.Second})
		start := time.Now()
		err := l.Acquire(bg, 1)
		w.WantErr(err, redlatch.ErrUninitialized)
		if !strings.Contains(err.Error(), "call SetRate") {
			t.Errorf("%v does not say what to call", err)
		}
		w.WantErr(l.TryAcquire(bg, 1, 0), redlatch.ErrUninitialized)
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("told after %v", d)
		}
		w.OK(l.SetRate(bg, ratelimit.Rate{Permits: 3, Interval: time.Second}))
		w.OK(l.Acquire(bg, 1))
		w.Server.Del(locktest.Pool)
		w.OK(w.Server.Set(locktest.Pool, "of somebody else"))
		if err := l.Acquire(bg, 1); driver.Failure(err).Code != "WRONGTYPE" {
			t.Errorf("%v, want WRONGTYPE", err)
		}
	})
	locktest.InFakeTime(t, func(w *locktest.World) { // it is over whenever it is asked
		short := ratelimit.Rate{Permits: 3, Interval: 10 * time.Millisecond, KeepAlive: 10 * time.Millisecond}
		l := ratelimit.New(w.ClientOver(20*time.Millisecond, redlatch.Config{}), locktest.Pool, short)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		w.WantErr(l.TryAcquire(ctx, 1, 0), redlatch.ErrUninitialized)
		w.WantErr(l.Acquire(ctx, 1), redlatch.ErrUninitialized)
	})
}

// A full server says that there are no permits, or no rate, and refuses to store
// any. Who comes while others have tried that for long does not fail with them,
// but when it has itself waited for as long as any call does.
func TestASetUpThatFailsForOthersIsTriedForAllOfTheTimeOut(t *testing.T) {
	for script, acquires := range map[string]func(c *redlatch.Client) func() error{
		"semaphore.set": func(c *redlatch.Client) func() error {
			s := semaphore.New(c, locktest.Pool, 3)
			return func() error { return s.Acquire(bg, 1) }
		},
		"expirable.try_set": func(c *redlatch.Client) func() error {
			s := semaphore.NewExpirable(c, locktest.Pool, 3)
			return func() error { _, err := s.Acquire(bg, 1); return err }
		},
		"ratelimiter.tryset": func(c *redlatch.Client) func() error {
			l := ratelimit.New(c, locktest.Pool, ratelimit.Rate{Permits: 3, Interval: time.Second})
			return func() error { return l.Acquire(bg, 1) }
		},
	} {
		t.Run(script, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var full atomic.Bool
				full.Store(true)
				acquire := acquires(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if full.Load() && s == script {
						const oom = "OOM command not allowed when used memory > 'maxmemory'."
						return driver.Reply{}, driver.ServerError(oom, errors.New(oom))
					}
					return next()
				}}))
				start := time.Now()
				first := locktest.Later(acquire)
				time.Sleep(9 * time.Second)
				second := locktest.Later(acquire)
				w.WantErr(<-first, redlatch.ErrUnavailable)
				if d := time.Since(start); d < 10*time.Second || d > 13*time.Second {
					t.Errorf("the first failed after %v", d)
				}
				w.WantErr(<-second, redlatch.ErrUnavailable)
				if d := time.Since(start) - 9*time.Second; d < 10*time.Second || d > 13*time.Second {
					t.Errorf("the second failed after %v", d)
				}
				third := locktest.Later(acquire)
				time.Sleep(9 * time.Second)
				full.Store(false)
				w.OK(<-third)
			})
		})
	}
}

// What the server has answered to others says nothing of a set-up that has come
// since.
func TestNobodyIsToldThatWhatHeHasSetUpIsNot(t *testing.T) {
	for name, kind := range map[string]struct {
		acquire func(c *redlatch.Client) error
		setUp   func(c *redlatch.Client) error
		script  string
	}{
		"counted": {
			func(c *redlatch.Client) error { return semaphore.New(c, locktest.Pool, 0).Acquire(bg, 1) },
			func(c *redlatch.Client) error {
				_, err := semaphore.New(c, locktest.Pool, 0).TrySetPermits(bg, 3)
				return err
			},
			"semaphore.exchange",
		},
		"permits": {
			func(c *redlatch.Client) error {
				_, err := semaphore.NewExpirable(c, locktest.Pool, 0).Acquire(bg, 1)
				return err
			},
			func(c *redlatch.Client) error {
				_, err := semaphore.NewExpirable(c, locktest.Pool, 0).TrySetPermits(bg, 3)
				return err
			},
			"expirable.take",
		},
		"rate": {
			func(c *redlatch.Client) error {
				return ratelimit.New(c, locktest.Pool, ratelimit.Rate{}).Acquire(bg, 1)
			},
			func(c *redlatch.Client) error {
				_, err := ratelimit.New(c, locktest.Pool, ratelimit.Rate{}).TrySetRate(bg, ratelimit.Rate{Permits: 3, Interval: time.Second})
				return err
			},
			"ratelimiter.take",
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				asked := 0
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					reply, err := next()
					if script == kind.script {
						asked++
						time.Sleep(50 * time.Millisecond) // on its way back
					}
					return reply, err
				}})
				early := locktest.Later(func() error { return kind.acquire(c) })
				time.Sleep(10 * time.Millisecond)
				w.OK(kind.setUp(c))
				late := locktest.Later(func() error { return kind.acquire(c) })
				w.WantErr(<-early, redlatch.ErrUninitialized)
				w.OK(<-late)
				if asked != 2 {
					t.Errorf("%d requests", asked)
				}
			})
		})
	}
}

// Nobody waits for ever for a semaphore that nobody has set up, or that is gone:
// each caller is told, or it is set up for all.
func TestNobodyWaitsForASemaphoreThatIsNotThere(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		without, with := semaphore.New(c, locktest.SemaphoreName, 0), semaphore.New(w.Client(redlatch.Config{}), locktest.SemaphoreName, 3)
		w.WantErr(without.Acquire(bg, 1), redlatch.ErrUninitialized)
		w.WantErr(without.TryAcquire(bg, 1, time.Hour), redlatch.ErrUninitialized)
		ran, err := without.TryDo(bg, 1, 0, func(context.Context) error { return nil })
		const says = `redlatch: not initialised: nobody has set how many permits semaphore "ports" has, or it was removed; call TrySetPermits, or give semaphore.New the number`
		if ran || err == nil || err.Error() != says {
			t.Errorf("%v, %q, want %q", ran, err, says)
		}
		if made, err := without.TrySetPermits(bg, 0); !made || err != nil {
			t.Errorf("TrySetPermits: %v, %v", made, err)
		}
		w.WantErr(with.TryAcquire(bg, 1, 0), redlatch.ErrBusy) // none is as good a number as three

		got := locktest.AcquiringPermits(bg, without, 1)
		if !locktest.NoneYet(got) {
			t.Fatal("nobody has released a permit")
		}
		if deleted, err := without.Delete(bg); !deleted || err != nil {
			t.Errorf("Delete: %v, %v", deleted, err)
		}
		start := time.Now()
		w.WantErr(<-got, redlatch.ErrUninitialized)
		if d := time.Since(start); d > 2400*time.Millisecond {
			t.Errorf("told after %v", d)
		}

		w.OK(without.Release(bg, 1)) // which makes it
		w.OK(with.Acquire(bg, 1))
		wantSemaphore(w, "released and acquired", "0")
		mine, theirs := locktest.AcquiringPermits(bg, semaphore.New(c, locktest.SemaphoreName, 2), 2), locktest.AcquiringPermits(bg, without, 1)
		w.Server.FlushAll()
		w.OK(<-mine)
		if !locktest.NoneYet(theirs) {
			t.Fatal("there were two")
		}
		w.OK(with.Release(bg, 1)) // held since before the flush: one on top
		w.OK(<-theirs)
		wantSemaphore(w, "in the end", "0")
	})
}

// A set-up that is repeated, or comes late, sets nothing up once more.
func TestASetUpOfWhichTheReplyIsLostIsMadeOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		sets := 0
		s := semaphore.New(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			reply, err := next()
			if script == "semaphore.set" {
				if sets++; sets == 1 {
					w.Server.Del(locktest.SemaphoreName) // by somebody else, before it is sent again
					return driver.Reply{}, locktest.ErrReplyLost
				}
			}
			return reply, err
		}}), locktest.SemaphoreName, 3)
		w.OK(s.Acquire(bg, 1))
		wantSemaphore(w, "after it", "2")
		if sets != 3 { // the first one, the same again, which does nothing, and another
			t.Errorf("%d requests", sets)
		}
	})
}

// A server that loses each set-up at once is not asked without a pause, and those
// who give up meanwhile leave nothing behind.
func TestASetUpThatDoesNotLastIsNoLoopWithoutAPause(t *testing.T) {
	for name, acquire := range map[string]func(c *redlatch.Client, ctx context.Context) error{
		"counted": func(c *redlatch.Client, ctx context.Context) error {
			return semaphore.New(c, locktest.Pool, 3).Acquire(ctx, 1)
		},
		"permits": func(c *redlatch.Client, ctx context.Context) error {
			_, err := semaphore.NewExpirable(c, locktest.Pool, 3).Acquire(ctx, 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var sets atomic.Int64
				d := &locktest.Tap{Redis: w.Driver()}
				d.Hook = func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					reply, err := next()
					if script == "semaphore.set" || script == "expirable.try_set" {
						w.Server.Del(locktest.Pool)
						if sets.Add(1) > 1000 {
							time.Sleep(time.Second) // so that the test ends
						}
					}
					return reply, err
				}
				ctx, cancel := context.WithTimeout(bg, 10*time.Second)
				defer cancel()
				w.WantErr(acquire(w.Tapped(redlatch.Config{}, d), ctx), context.DeadlineExceeded)
				if n := sets.Load(); n < 10 || n > 30 {
					t.Errorf("set up %d times in 10 s", n)
				}
			})
		})
	}
}
