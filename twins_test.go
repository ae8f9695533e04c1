package redlatch_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
)

// "x" and "{x}" have one queue, and one channel for each who waits there. Each lock is
// used by clients of its own: one client may not use both.
func TestAReleaseDoesNotGiveALockToWhoWaitsForItsTwin(t *testing.T) {
	for _, names := range [][2]string{{"x", "{x}"}, {"{x}", "x"}} {
		inFakeTime(t, func(w *world) {
			a, b, c := w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.client(redlatch.Config{})
			mine, twin := a.FairLock(names[0]), b.FairLock(names[1])
			for range 5 {
				h, other := w.acquire(mine, bg), w.acquire(twin, bg)
				next := w.waiting(c.FairLock(names[0]), bg)
				time.Sleep(100 * time.Millisecond) // subscribed, and asked once more
				w.release(other)
				time.Sleep(50 * time.Millisecond)
				if !none(next) || h.Err() != nil {
					t.Fatal("two have the lock")
				}
				if w.server.Exists(names[1]) {
					t.Errorf("the free lock %q was given to who waits for %q", names[1], names[0])
				}
				w.release(h)
				start := time.Now()
				h = w.got(next)
				if took := time.Since(start); took > 0 {
					t.Errorf("given after %v", took)
				}
				w.release(h)
			}
			w.wantNothing()
		})
	}
}

// Whoever may publish to a channel cannot give a lock: what gives it stands in a key.
func TestAForgedMessageGivesNoLock(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(a.FairLock("orders"), bg)
		next := w.waiting(b.FairLock("orders"), bg)
		time.Sleep(100 * time.Millisecond)
		for _, message := range []string{"1", "1 orders", "orders", "", "4503599627370496", "0"} {
			if w.server.Publish(wire.FairChannel("orders", w.queue("orders")[0]), message) != 1 {
				t.Fatal("nobody listens")
			}
			time.Sleep(20 * time.Millisecond)
			if !none(next) {
				t.Fatalf("two have the lock after the message %q", message)
			}
		}
		w.release(h)
		w.release(w.got(next))
		w.wantNothing()
	})
}

// A nonce is for one place in the queue: who lines up again has another one.
func TestANonceGivesALockOnce(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		published := w.eavesdrop()
		seen := map[string]bool{}
		for range 20 {
			h := w.acquire(a.FairLock("orders"), bg)
			next := w.waiting(b.FairLock("orders"), bg)
			w.release(h)
			w.release(w.got(next))
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

// A client that uses both names of what they share is told, and so nobody waits for
// what is free, or gets permits that were given.
func TestAClientThatUsesTwinNamesIsTold(t *testing.T) {
	rate := redlatch.Rate{Permits: 1, Interval: time.Second}
	used := map[string]func(c *redlatch.Client, name string) error{
		"fair locks": func(c *redlatch.Client, name string) error {
			return c.FairLock(name).Do(bg, func(context.Context) error { return nil })
		},
		"read-write locks": func(c *redlatch.Client, name string) error {
			return c.ReadWriteLock(name).PreferWriters().Read().Do(bg, func(context.Context) error { return nil })
		},
		"rate limiters": func(c *redlatch.Client, name string) error {
			_, err := c.RateLimiter(name).TrySetRate(bg, rate)
			return err
		},
		"expirable semaphores": func(c *redlatch.Client, name string) error {
			_, err := c.ExpirableSemaphore(name).TrySetPermits(bg, 1)
			return err
		},
		"barriers": func(c *redlatch.Client, name string) error {
			_, err := c.Barrier(name, 1).Await(bg)
			return err
		},
	}
	for what, use := range used {
		t.Run(what, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				c := w.client(redlatch.Config{})
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
		inFakeTime(t, func(w *world) {
			c := w.client(redlatch.Config{})
			for _, name := range []string{"x", "{x}"} {
				w.release(w.acquire(c.Lock(name), bg))
				w.release(w.acquire(c.ReadWriteLock("rw"+name).Write(), bg))
				w.release(w.acquire(c.GroupLock(strings.ReplaceAll("g"+name, "g{", "{g"), "v"), bg))
			}
		})
	})
}

// A message that asks a client to let go names the lock, and is obeyed for that alone.
func TestAMessageAboutALockDoesNotEndAHoldOfItsTwin(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		for i, l := range []*redlatch.Lock{c.Lock("x"), c.FairLock("x"), c.ReadWriteLock("x").Write(), c.GroupLock("x", "v")} {
			h := w.acquire(l, bg)
			revoke := func(name string) {
				w.server.HSet(wire.Prefix(wire.Revoke, name), h.Owner(), "1")
				w.server.Publish(wire.Control+":"+c.ID(), fmt.Sprintf(`{"op":"revoke","name":%q,"owner":%q,"from":"f","nonce":"1"}`, name, h.Owner()))
				synctest.Wait()
			}
			revoke("{x}")
			if err := h.Err(); err != nil {
				t.Fatal(i, err)
			}
			revoke("x")
			w.wantErr(h.Err(), redlatch.ErrLost)
			_ = h.Release(bg)
		}
	})
}

func TestTwinFairLocksOnRealServers(t *testing.T) {
	onRealServers(t, func(t *testing.T, s *testserver.Server) {
		a, b, c := clientOf(t, connectGoredis(t, s.Addr()), redlatch.Config{}), clientOf(t, connectRueidis(t, s.Addr()), redlatch.Config{}), clientOf(t, connectRueidis(t, s.Addr()), redlatch.Config{})
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
			next := later(func() error {
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
			if !within(generous, queued) {
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
