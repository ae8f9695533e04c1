package clients

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// away makes a client whose server answers nothing while down is set.
func away(w *locktest.World, down *atomic.Bool) *redlatch.Client {
	return w.Tapped(redlatch.Config{}, &locktest.Tap{Notes: true, Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if down.Load() {
			time.Sleep(100 * time.Millisecond)
			return driver.Reply{}, locktest.ErrReplyLost
		}
		return next()
	}})
}

// waits are calls that wait, by what they wait for.
func waits() map[string]func(ctx context.Context, c *redlatch.Client, wait time.Duration) error {
	acquire := func(lock func(c *redlatch.Client) *redlatch.Lock, opts ...redlatch.PlainOption) func(context.Context, *redlatch.Client, time.Duration) error {
		return func(ctx context.Context, c *redlatch.Client, wait time.Duration) error {
			if wait == forEver {
				_, err := locktest.With(lock(c), opts...).Acquire(ctx)
				return err
			}
			_, err := locktest.With(lock(c), opts...).TryAcquire(ctx, wait)
			return err
		}
	}
	plain := func(c *redlatch.Client) *redlatch.Lock { return c.Lock("lock") }
	return map[string]func(context.Context, *redlatch.Client, time.Duration) error{
		"lock":              acquire(plain),
		"lock with a lease": acquire(plain, redlatch.Lease(time.Minute)),
		"fair lock":         acquire(func(c *redlatch.Client) *redlatch.Lock { return c.FairLock("fair") }),
		"spin lock":         acquire(func(c *redlatch.Client) *redlatch.Lock { return redisson.SpinLock(c, "lock", nil) }),
		"group lock":        acquire(func(c *redlatch.Client) *redlatch.Lock { return redisson.GroupLock(c, "group", []string{"a", "b"}) }),
		"read lock":         acquire(func(c *redlatch.Client) *redlatch.Lock { return c.ReadWriteLock("rw").Read() }),
		"write lock":        acquire(func(c *redlatch.Client) *redlatch.Lock { return c.ReadWriteLock("rw").Write() }),
		"handed-over lock":  acquire(func(c *redlatch.Client) *redlatch.Lock { return c.Lock("own") }, redlatch.Lease(time.Minute)),
		"semaphore": func(ctx context.Context, c *redlatch.Client, wait time.Duration) error {
			if wait == forEver {
				return semaphore.New(c, "sem", 0).Acquire(ctx, 1)
			}
			return semaphore.New(c, "sem", 0).TryAcquire(ctx, 1, wait)
		},
		"expirable semaphore": func(ctx context.Context, c *redlatch.Client, wait time.Duration) error {
			_, err := semaphore.NewExpirable(c, "exp", 1).TryAcquire(ctx, 1, wait)
			return err
		},
		"rate limiter": func(ctx context.Context, c *redlatch.Client, wait time.Duration) error {
			return ratelimit.New(c, "rate", ratelimit.Rate{Permits: 1, Interval: 24 * time.Hour}).TryAcquire(ctx, 1, wait)
		},
		"latch": func(ctx context.Context, c *redlatch.Client, wait time.Duration) error {
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			return latch.New(c, "latch").Wait(ctx)
		},
	}
}

// Callers of one process that wait for the same thing ask one at a time. None of
// them waits for Config.OutageTimeout once more when the one before it has done
// so.
func TestCallersThatWaitForOneAnotherFailTogetherInAnOutage(t *testing.T) {
	ctx := context.Background()
	for name, wait := range waits() {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var down atomic.Bool
				other, c := w.Client(redlatch.Config{}), away(w, &down)
				if _, err := latch.New(other, "latch").TrySetCount(ctx, 1); err != nil {
					t.Fatal(err)
				}
				w.SetPermits(semaphore.New(other, "sem", 0), 0)
				w.OK(only(semaphore.NewExpirable(other, "exp", 1).Acquire(ctx, 1)))
				w.OK(ratelimit.New(other, "rate", ratelimit.Rate{Permits: 1, Interval: 24 * time.Hour}).Acquire(ctx, 1))
				held := []*redlatch.Hold{
					w.Acquire(ctx, other.Lock("lock")), w.Acquire(ctx, other.FairLock("fair")),
					w.Acquire(ctx, redisson.GroupLock(other, "group", []string{"a"})), w.Acquire(ctx, other.ReadWriteLock("rw").Write()),
				}
				own := w.Acquire(ctx, c.Lock("own"))
				var failed []<-chan error
				for range 5 {
					failed = append(failed, locktest.Later(func() error { return wait(ctx, c, forEver) }))
				}
				time.Sleep(time.Second)
				down.Store(true)
				since := time.Now()
				_ = own.Release(ctx) // it is passed on
				for i, f := range failed {
					if err := <-f; !errors.Is(err, redlatch.ErrUnavailable) {
						t.Errorf("caller %d: %v", i, err)
					}
				}
				if d := time.Since(since); d > 13*time.Second {
					t.Errorf("the last of 5 callers failed %v after the server had fallen silent", d)
				}
				down.Store(false)
				for _, h := range held {
					w.Release(h)
				}
			})
		})
	}
}

// A client of a cluster that has no kind of Pub/Sub asks for that first, and its
// outage may begin with this question.
func TestCallersFailTogetherWhoseClusterHasNeverAnswered(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Cluster: true, Notes: true, Hook: func(string, []string, func() (driver.Reply, error)) (driver.Reply, error) {
			return driver.Reply{}, errNoConnection
		}})
		var failed []<-chan error
		for range 3 {
			failed = append(failed, locktest.Later(func() error { _, err := c.Lock("x").Acquire(context.Background()); return err }))
		}
		since := time.Now()
		for i, f := range failed {
			if err := <-f; !errors.Is(err, redlatch.ErrUnavailable) {
				t.Errorf("caller %d: %v", i, err)
			}
		}
		if d := time.Since(since); d > 13*time.Second {
			t.Errorf("the last of 3 callers failed after %v", d)
		}
	})
}

var errNoConnection = &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("connection refused")}

// Whoever has been without an answer for Config.OutageTimeout fails, whoever asks
// for it at that moment.
func TestCallersThatComeOneByOneFailInTimeInAnOutage(t *testing.T) {
	ctx := context.Background()
	kinds := waits()
	kinds["count down"] = func(ctx context.Context, c *redlatch.Client, _ time.Duration) error {
		return latch.New(c, "latch").CountDown(ctx)
	}
	for name, wait := range kinds {
		most := 13 * time.Second
		if name == "count down" { // the last request of a session is waited for until it has failed by itself
			most += 5 * time.Second
		}
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Notes: true, Hook: func(string, []string, func() (driver.Reply, error)) (driver.Reply, error) {
					return driver.Reply{}, errNoConnection
				}})
				var lasted []<-chan time.Duration
				for range 10 {
					lasted = append(lasted, locktest.Later(func() time.Duration {
						start := time.Now()
						if err := wait(ctx, c, forEver); !errors.Is(err, redlatch.ErrUnavailable) {
							t.Error(err)
						}
						return time.Since(start)
					}))
					time.Sleep(1900 * time.Millisecond)
				}
				for i, l := range lasted {
					if d := <-l; d > most || d < 10*time.Second {
						t.Errorf("caller %d failed after %v", i, d)
					}
				}
			})
		})
	}
}

// One that comes when others have been without an answer for long does not fail
// with them.
func TestWhoComesDuringAnOutageWaitsForAllOfTheTimeOut(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"lock", "read lock", "latch", "rate limiter"} {
		wait := waits()[name]
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var down atomic.Bool
				other, c := w.Client(redlatch.Config{}), away(w, &down)
				if _, err := latch.New(other, "latch").TrySetCount(ctx, 1); err != nil {
					t.Fatal(err)
				}
				w.OK(ratelimit.New(other, "rate", ratelimit.Rate{Permits: 1, Interval: 24 * time.Hour}).Acquire(ctx, 1))
				held := []*redlatch.Hold{w.Acquire(ctx, other.Lock("lock")), w.Acquire(ctx, other.ReadWriteLock("rw").Write())}
				first := locktest.Later(func() error { return wait(ctx, c, forEver) })
				time.Sleep(time.Second)
				down.Store(true)
				time.Sleep(9 * time.Second)
				start := time.Now()
				if err := wait(ctx, c, forEver); !errors.Is(err, redlatch.ErrUnavailable) {
					t.Error(err)
				}
				if d := time.Since(start); d < 10*time.Second || d > 13*time.Second {
					t.Errorf("one that came 9 s after the server had fallen silent failed after %v", d)
				}
				if err := <-first; !errors.Is(err, redlatch.ErrUnavailable) {
					t.Error(err)
				}
				down.Store(false)
				for _, h := range held {
					w.Release(h)
				}
			})
		})
	}
}

// A request has the time of an attempt to be answered, however short the time-out
// is, and whoever waits for its turn waits for that.
func TestAShortTimeOutEndsNoCallThatIsAnswered(t *testing.T) {
	ctx := context.Background()
	kinds := map[string]func(ctx context.Context, c *redlatch.Client, wait time.Duration) error{
		"release": func(ctx context.Context, c *redlatch.Client, _ time.Duration) error {
			return semaphore.New(c, "sem", 0).Release(ctx, 1)
		},
		"add": func(ctx context.Context, c *redlatch.Client, _ time.Duration) error {
			return semaphore.New(c, "sem", 0).AddPermits(ctx, 1)
		},
		"count down": func(ctx context.Context, c *redlatch.Client, _ time.Duration) error {
			return latch.New(c, "counted").CountDown(ctx)
		},
	}
	for name, wait := range waits() {
		if !strings.HasSuffix(name, "lock") && !strings.HasPrefix(name, "lock") { // these are held, or stay held
			kinds[name] = wait
		}
	}
	for name, call := range kinds {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				other := w.Client(redlatch.Config{})
				w.SetPermits(semaphore.New(other, "sem", 0), 10)
				w.Permits(other, 10)
				w.SetRate(ratelimit.New(other, "rate", ratelimit.Rate{}), ratelimit.Rate{Permits: 10, Interval: time.Hour})
				w.Latch(latch.New(other, "counted"), 10)
				var down atomic.Bool
				c := w.Tapped(redlatch.Config{OutageTimeout: time.Millisecond}, &locktest.Tap{Notes: true, Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					time.Sleep(30 * time.Millisecond)
					if down.Load() {
						return driver.Reply{}, errNoConnection
					}
					return next()
				}})
				all := func(want error) {
					start := time.Now()
					var ended []<-chan error
					for range 3 {
						within, cancel := context.WithTimeout(ctx, time.Second)
						defer cancel()
						ended = append(ended, locktest.Later(func() error { return call(within, c, forEver) }))
					}
					for i, end := range ended {
						if err := <-end; want == nil && errors.Is(err, redlatch.ErrUnavailable) || want != nil && !errors.Is(err, want) {
							t.Errorf("caller %d, after %v: %v", i, time.Since(start), err)
						}
					}
					if d := time.Since(start); want != nil && d > 300*time.Millisecond {
						t.Errorf("the last failed after %v", d)
					}
				}
				all(nil)
				down.Store(true)
				all(redlatch.ErrUnavailable)
				down.Store(false)
			})
		})
	}
}

// A time-out that is to mean "for ever" is added to others, and that must not make
// one that is over.
func TestATimeOutForEverIsNotOverAtOnce(t *testing.T) {
	const ever = time.Duration(math.MaxInt64)
	ctx := context.Background()
	locktest.InFakeTime(t, func(w *locktest.World) {
		held := w.Acquire(ctx, w.Client(redlatch.Config{}).Lock("lock"))
		d := &locktest.Acker{Tap: locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(10 * time.Millisecond)
			return next()
		}}}
		d.Follow(1, 1)
		c := w.AckingWith(redlatch.Config{OutageTimeout: ever, AckTimeout: ever}, d)
		s := semaphore.NewExpirable(c, locktest.Pool, 1)
		p := w.Permit(s)
		w.OK(s.Release(ctx, p.ID()))
		_, err := c.Lock("lock").TryAcquire(ctx, 15*time.Millisecond)
		if w.WantErr(err, redlatch.ErrBusy); errors.Is(err, redlatch.ErrUnavailable) {
			t.Errorf("a server that answers is taken to be silent: %v", err)
		}
		w.Release(held)
	})
}

// A wait that is shorter than an attempt ends before that has failed. It is not
// told as that of a lock which somebody has: a job that is to run on one machine
// would believe that it runs on another.
func TestAShortWaitForASilentServerIsNotToldAsOneForAHeldLock(t *testing.T) {
	ctx := context.Background()
	for name, wait := range waits() {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var slow atomic.Bool
				slow.Store(true)
				for _, x := range []func(c *redlatch.Client) error{
					func(c *redlatch.Client) error { return wait(ctx, c, time.Second) },
					func(c *redlatch.Client) error {
						ctx, cancel := context.WithTimeout(ctx, time.Second)
						defer cancel()
						return wait(ctx, c, forEver)
					},
				} {
					// One of its own for each: what the last one has left behind is answered now and
					// then.
					c := w.Tapped(redlatch.Config{}, &locktest.Tap{Notes: true, Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						if slow.Load() {
							time.Sleep(5 * time.Second)
						}
						return next()
					}})
					call := func() error { return x(c) }
					first := locktest.Later(call)
					time.Sleep(time.Millisecond)
					for _, done := range []<-chan error{first, locktest.Later(call)} {
						if err := <-done; !errors.Is(err, redlatch.ErrUnavailable) || errors.Is(err, redlatch.ErrBusy) {
							t.Error(err)
						}
					}
					time.Sleep(time.Minute)
				}
				slow.Store(false)
				time.Sleep(time.Minute)
			})
		})
	}
}

// One request is lost, and another is answered meanwhile: nobody has told its
// caller that the lock is held.
func TestALostRequestIsNotToldAsAHeldLock(t *testing.T) {
	ctx := context.Background()
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Notes: true, Keyed: func(_ string, keys, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if keys[0] == "x" {
				time.Sleep(5 * time.Second)
			}
			return next()
		}})
		lost := locktest.Later(func() error { _, err := c.Lock("x").TryAcquire(ctx, time.Second); return err })
		time.Sleep(10 * time.Millisecond)
		if _, err := admin.LockInfo(ctx, c.Lock("y")); err != nil {
			t.Error(err)
		}
		if err := <-lost; !errors.Is(err, redlatch.ErrUnavailable) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	})
}

// The last request failed an hour ago. That says nothing of the server now,
// neither before it is asked again nor while it is about to answer.
func TestAnOldFailureIsNotToldToALaterCaller(t *testing.T) {
	ctx := context.Background()
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down, slow atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Notes: true, Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			switch {
			case down.Load():
				time.Sleep(100 * time.Millisecond)
				return driver.Reply{}, locktest.ErrReplyLost
			case slow.Load():
				time.Sleep(20 * time.Millisecond)
			}
			return next()
		}})
		down.Store(true)
		if _, err := admin.LockInfo(ctx, c.Lock("x")); !errors.Is(err, redlatch.ErrUnavailable) {
			t.Error(err)
		}
		down.Store(false)
		slow.Store(true)
		time.Sleep(time.Hour)
		ended, end := context.WithCancel(ctx)
		end()
		if err := latch.New(c, "latch").Wait(ended); !errors.Is(err, context.Canceled) || errors.Is(err, redlatch.ErrUnavailable) {
			t.Error("before it is asked:", err)
		}
		short, end := context.WithTimeout(ctx, 10*time.Millisecond)
		defer end()
		if err := latch.New(c, "latch").Wait(short); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redlatch.ErrUnavailable) {
			t.Error("while it is about to answer:", err)
		}
		time.Sleep(time.Minute)
	})
}
