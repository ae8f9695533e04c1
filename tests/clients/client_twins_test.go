package clients

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// "x" and "{x}" have one queue, and one channel for each who waits there. Each
// lock is used by clients of its own: one client may not use both.
func TestAReleaseDoesNotGiveALockToWhoWaitsForItsTwin(t *testing.T) {
	for _, names := range [][2]string{{"x", "{x}"}, {"{x}", "x"}} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			a, b, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
			mine, twin := a.FairLock(names[0]), b.FairLock(names[1])
			for range 5 {
				h, other := w.Acquire(bg, mine), w.Acquire(bg, twin)
				next := w.Waiting(bg, c.FairLock(names[0]))
				time.Sleep(100 * time.Millisecond) // subscribed, and asked once more
				w.Release(other)
				time.Sleep(50 * time.Millisecond)
				if !locktest.NoneYet(next) || h.Err() != nil {
					t.Fatal("two have the lock")
				}
				if w.Server.Exists(names[1]) {
					t.Errorf("the free lock %q was given to who waits for %q", names[1], names[0])
				}
				w.Release(h)
				start := time.Now()
				h = w.Got(next)
				if took := time.Since(start); took > 0 {
					t.Errorf("given after %v", took)
				}
				w.Release(h)
			}
			w.WantNothing()
		})
	}
}

// Whoever may publish to a channel cannot give a lock: what gives it stands in a
// key.
func TestAForgedMessageGivesNoLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		next := w.Waiting(bg, b.FairLock("orders"))
		time.Sleep(100 * time.Millisecond)
		for _, message := range []string{"1", "1 orders", "orders", "", "4503599627370496", "0"} {
			if w.Server.Publish(wire.FairChannel("orders", w.Queue("orders")[0]), message) != 1 {
				t.Fatal("nobody listens")
			}
			time.Sleep(20 * time.Millisecond)
			if !locktest.NoneYet(next) {
				t.Fatalf("two have the lock after the message %q", message)
			}
		}
		w.Release(h)
		w.Release(w.Got(next))
		w.WantNothing()
	})
}

// A nonce is for one place in the queue: who lines up again has another one.
func TestANonceGivesALockOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		published := w.Eavesdrop()
		seen := map[string]bool{}
		for range 20 {
			h := w.Acquire(bg, a.FairLock("orders"))
			next := w.Waiting(bg, b.FairLock("orders"))
			w.Release(h)
			w.Release(w.Got(next))
			for _, m := range published() {
				if _, nonce, _ := strings.Cut(m, " "); nonce != "0" {
					if seen[nonce] || len(nonce) != 16 {
						t.Errorf("%q gives a lock a second time, or is no nonce", nonce)
					}
					seen[nonce] = true
				}
			}
		}
		if len(seen) != 20 {
			t.Errorf("%d nonces", len(seen))
		}
	})
}

// A client that uses both names of what they share is told, and so nobody waits
// for what is free, or gets permits that were given.
func TestAClientThatUsesTwinNamesIsTold(t *testing.T) {
	rate := ratelimit.Rate{Permits: 1, Interval: time.Second}
	used := map[string]func(c *redlatch.Client, name string) error{
		"fair locks": func(c *redlatch.Client, name string) error {
			return c.FairLock(name).Do(bg, func(context.Context) error { return nil })
		},
		"read-write locks": func(c *redlatch.Client, name string) error {
			return c.ReadWriteLock(name).PreferWriters().Read().Do(bg, func(context.Context) error { return nil })
		},
		"rate limiters": func(c *redlatch.Client, name string) error {
			_, err := ratelimit.New(c, name, ratelimit.Rate{}).TrySetRate(bg, rate)
			return err
		},
		"expirable semaphores": func(c *redlatch.Client, name string) error {
			_, err := semaphore.NewExpirable(c, name, 0).TrySetPermits(bg, 1)
			return err
		},
		"barriers": func(c *redlatch.Client, name string) error {
			_, err := barrier.New(c, name, 1).Await(bg)
			return err
		},
	}
	for what, use := range used {
		t.Run(what, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				for i, names := range [][2]string{{"x", "{x}"}, {"{y}", "y"}} {
					for range 2 {
						if err := use(c, names[0]); err != nil {
							t.Fatal(i, err)
						}
					}
					err := use(c, names[1])
					if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s %q and %q", what, names[0], names[1])) || redlatch.IsRetryable(err) {
						t.Errorf("%q after %q: %v", names[1], names[0], err)
					}
				}
				for _, name := range []string{"{x}:a", "a{x}", "xx", "{{x}}"} { // no twins of these
					if err := use(c, name); err != nil {
						t.Error(name, err)
					}
				}
			})
		})
	}
	t.Run("others share nothing that matters", func(t *testing.T) {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c := w.Client(redlatch.Config{})
			for _, name := range []string{"x", "{x}"} {
				w.Release(w.Acquire(bg, c.Lock(name)))
				w.Release(w.Acquire(bg, c.ReadWriteLock("rw"+name).Write()))
				w.Release(w.Acquire(bg, redisson.GroupLock(c, strings.ReplaceAll("g"+name, "g{", "{g"), []string{"v"})))
			}
		})
	})
}

// A message that asks a client to let go names the lock, and is obeyed for that
// alone.
func TestAMessageAboutALockDoesNotEndAHoldOfItsTwin(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for i, l := range []*redlatch.Lock{c.Lock("x"), c.FairLock("x"), c.ReadWriteLock("x").Write(), redisson.GroupLock(c, "x", []string{"v"})} {
			h := w.Acquire(bg, l)
			revoke := func(name string) {
				w.Server.HSet(wire.Prefix(wire.Revoke, name), h.ID(), "1")
				w.Server.Publish(wire.Control+":"+c.ID(), fmt.Sprintf(`{"op":"revoke","name":%q,"owner":%q,"from":"f","nonce":"1"}`, name, h.ID()))
				synctest.Wait()
			}
			revoke("{x}")
			if err := h.Err(); err != nil {
				t.Fatal(i, err)
			}
			revoke("x")
			w.WantErr(h.Err(), redlatch.ErrLost)
			_ = h.Release(bg)
		}
	})
}

func TestTwinFairLocksOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		a, b, c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{}), locktest.ClientOf(t, drivers.Rueidis.Open(t, drivers.Single(s.Addr())), redlatch.Config{}), locktest.ClientOf(t, drivers.Rueidis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		for range 10 {
			h, err := a.FairLock("x").Acquire(bg)
			if err != nil {
				t.Fatal(err)
			}
			other, err := b.FairLock("{x}").Acquire(bg)
			if err != nil {
				t.Fatal(err)
			}
			var released atomic.Bool
			next := locktest.Later(func() error {
				h, err := c.FairLock("x").Acquire(bg)
				if err != nil {
					return err
				}
				if !released.Load() {
					t.Error("two have the lock")
				}
				return h.Release(bg)
			})
			queued := func() bool { return s.MustDo("LLEN", "redisson_lock_queue:{x}") == int64(1) }
			if !locktest.Within(locktest.Generous, queued) {
				t.Fatal("nobody waits")
			}
			time.Sleep(20 * time.Millisecond) // it has subscribed
			if err := other.Release(bg); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
			if s.MustDo("EXISTS", "{x}") != int64(0) {
				t.Error("the free lock was given to who waits for its twin")
			}
			released.Store(true)
			if err := h.Release(bg); err != nil {
				t.Fatal(err)
			}
			if err := <-next; err != nil {
				t.Fatal(err)
			}
		}
	})
}
