package locks

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redisson #1824, redis-py #656: only the thread that had locked could unlock.
func TestAHoldIsNobodysThread(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		h := <-locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
		// The goroutine that acquired is no owner, and neither is this one.
		if _, err := l.TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Try: %v", err)
		}
		inner := <-locktest.Later(func() *redlatch.Hold { return w.Acquire(h.Context(), l) })
		if err := <-locktest.Later(func() error { return inner.Release(bg) }); err != nil {
			t.Error(err)
		}
		if err := <-locktest.Later(func() error { return h.Release(bg) }); err != nil {
			t.Error(err)
		}
		if w.Server.Exists("orders") {
			t.Error("still held")
		}
	})
}

func TestWaitBoundsAReentry(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var slow atomic.Bool
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" && slow.Load() {
				time.Sleep(2900 * time.Millisecond)
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		outer := w.Acquire(bg, l)
		slow.Store(true)
		start := time.Now()
		_, err := l.TryAcquire(context.WithoutCancel(outer.Context()), 100*time.Millisecond)
		if took := time.Since(start); took > 200*time.Millisecond || !errors.Is(err, redlatch.ErrUnavailable) {
			t.Errorf("Wait(100ms) ended after %v: %v", took, err)
		}
		slow.Store(false)
		time.Sleep(5 * time.Second)
		if n := w.Count(outer); n != "1" {
			t.Errorf("one hold, Redis shows %s", n)
		}
		w.Release(outer)
	})
}

func TestALossDuringAReentryIsErrLost(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if locktest.Sets("2", s, args) {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{MaxHold: time.Second}, d)
		outer := w.Acquire(bg, c.Lock("orders"))
		time.Sleep(980 * time.Millisecond)
		_, err := c.Lock("orders").Acquire(outer.Context())
		w.WantErr(err, redlatch.ErrLost)
	})
}

// A replay must raise the TTL too: it is trusted from its own send time.
func TestALostReplyToAReentryIsNotTrustedLongerThanItsTTL(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var n atomic.Int64
		d := &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if locktest.Sets("2", s, args) {
				switch n.Add(1) {
				case 1:
					return driver.Reply{}, locktest.ErrReplyLost
				case 2:
					_, _ = next()
					time.Sleep(5 * time.Second) // the reply is lost
					return driver.Reply{}, locktest.ErrReplyLost
				}
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		outer := w.Acquire(bg, c.Lock("orders", redlatch.Lease(10*time.Second)))
		inner := w.Acquire(outer.Context(), c.Lock("orders", redlatch.Lease(20*time.Second)))
		trust, ttl := time.Until(inner.Expires()), w.Server.TTL("orders")
		if trust > ttl {
			t.Errorf("trusted for another %v, but Redis gives the lock away in %v", trust, ttl)
		}
		other := w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.Lock("orders"))
		if inner.Err() == nil {
			t.Error("two holders")
		}
		_ = inner.Release(bg)
		_ = outer.Release(bg)
		w.Release(h)
	})
}

func TestSiblingsDoNotOverlapIfTheOuterIsReleasedWhileOneEnters(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var n atomic.Int64
		d := &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if locktest.Sets("3", s, args) {
				if n.Add(1) == 1 {
					time.Sleep(50 * time.Millisecond)
				}
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		g := w.Acquire(bg, l)
		p := w.Acquire(g.Context(), l)
		detached := context.WithoutCancel(p.Context())
		type res struct {
			h   *redlatch.Hold
			err error
		}
		xc := locktest.Later(func() res { h, err := l.Acquire(detached); return res{h, err} })
		time.Sleep(10 * time.Millisecond) // x is being entered
		pr := locktest.Later(func() error { return p.Release(bg) })
		qc := locktest.Later(func() res { h, err := l.Acquire(g.Context()); return res{h, err} })
		x := <-xc
		if x.err != nil {
			t.Fatal(x.err)
		}
		synctest.Wait()
		select {
		case q := <-qc:
			if q.err == nil && q.h.Err() == nil && x.h.Err() == nil {
				t.Error("q, a sibling of p, is in while x, nested in p, is live")
			}
			rc := locktest.Later(func() res { h, err := l.Acquire(g.Context()); return res{h, err} })
			synctest.Wait()
			w.Release(x.h)
			synctest.Wait()
			select {
			case r := <-rc:
				if r.h.Err() == nil && q.h.Err() == nil {
					t.Error("r and q, nested in the same hold, are both live")
				}
				w.Release(r.h)
				w.Release(q.h)
			default:
				w.Release(q.h)
				w.Release((<-rc).h)
			}
		default:
			w.Release(x.h)
			w.Release((<-qc).h)
		}
		t.Log(<-pr)
		w.Release(g)
	})
}

func TestReentryCountsAndKeepsTheLockUntilTheLastRelease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.Acquire(bg, l)
		inner := w.Acquire(outer.Context(), l)
		innermost := w.Acquire(inner.With(bg), l)
		if got := w.Count(outer); got != "3" {
			t.Fatalf("count %s, want 3", got)
		}
		w.Release(outer) // the outer before the inner
		if got := w.Count(inner); got != "2" {
			t.Fatalf("count %s, want 2", got)
		}
		_, err := other.Lock("orders").TryAcquire(bg, 0)
		w.WantErr(err, redlatch.ErrBusy)
		w.Release(innermost)
		w.Release(inner)
		if w.Server.Exists("orders") {
			t.Fatal("still held after the last release")
		}
	})
}

func TestAReleasedHoldsContextNeverReentersAnything(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		h := w.Acquire(bg, l)
		ctx := context.WithoutCancel(h.Context()) // not done, but knows the hold
		w.Release(h)
		_, err := l.Acquire(ctx)
		w.WantErr(err, redlatch.ErrNotHeld)
		if w.Server.Exists("orders") {
			t.Fatal("Acquire touched Redis")
		}
	})
}

func TestReentryAfterAnUnseenLossIsErrLost(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		l := c.Lock("orders")
		h := w.Acquire(bg, l)
		w.Server.Del("orders")
		w.Release(w.Acquire(bg, other.Lock("orders"))) // somebody held it meanwhile
		_, err := l.Acquire(h.Context())
		w.WantErr(err, redlatch.ErrLost)
		w.WantErr(h.Err(), redlatch.ErrLost)
		if w.Server.Exists("orders") {
			t.Fatal("the re-entry created a lock and hid the loss")
		}
	})
}

func TestTenGoroutinesUnderOneHoldNeverOverlap(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.Acquire(bg, l)
		inside, most := 0, 0
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				h, err := l.Acquire(outer.Context())
				if err != nil {
					t.Error(err)
					return
				}
				inside++
				most = max(most, inside)
				if got := w.Count(h); got != "2" {
					t.Errorf("count %s, want the depth of the nest, 2", got)
				}
				time.Sleep(time.Second)
				inside--
				if err := h.Release(bg); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most != 1 {
			t.Fatalf("%d siblings inside at once", most)
		}
		w.Release(outer)
	})
}

func TestSiblingsWaitingWhenTheOuterIsReleasedGetItsCause(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.Acquire(bg, l)
		first := w.Acquire(outer.Context(), l)
		second := locktest.Later(func() error { _, err := l.Acquire(context.WithoutCancel(outer.Context())); return err })
		synctest.Wait()
		w.Release(outer)
		w.WantErr(<-second, redlatch.ErrNotHeld)
		w.Release(first)
		if w.Server.Exists("orders") {
			t.Fatal("still held")
		}
	})
}

// Whoever has a lock, by a context or as an owner, is refused it at once, whatever
// its type is; whoever has not, is not.
func TestEveryTypeOfLockIsNonReentrantOnDemand(t *testing.T) {
	for kind, of := range locktest.MemberKinds {
		if kind == "non-re-entry" {
			continue
		}
		locktest.InFakeTime(t, func(w *locktest.World) {
			c := w.Client(redlatch.Config{})
			l, strict := of(c, "orders"), locktest.With(of(c, "orders"), redlatch.NonReentrant())
			for _, held := range []*redlatch.Lock{l, strict} {
				h := w.Acquire(bg, held)
				owner := redlatch.WithOwner(bg)
				start := time.Now()
				_, err := strict.Acquire(h.Context())
				w.WantErr(err, redlatch.ErrReentry)
				_, err = strict.TryAcquire(h.Context(), time.Minute)
				w.WantErr(err, redlatch.ErrReentry)
				if d := time.Since(start); d > time.Millisecond {
					t.Errorf("%s: refused after %v", kind, d)
				}
				w.Release(h)
				h = w.Acquire(owner, held)
				start = time.Now()
				_, err = strict.Acquire(owner)
				w.WantErr(err, redlatch.ErrReentry)
				if d := time.Since(start); d > time.Millisecond {
					t.Errorf("%s: an owner is refused after %v", kind, d)
				}
				if h.Err() != nil {
					t.Errorf("%s: %v", kind, h.Err())
				}
				w.Release(h)
				w.Release(w.Acquire(owner, strict))
			}
			w.Settle()
			w.WantLocksGone()
		})
	}
}

func TestANonReentrantLockRefusesItsHolder(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders", redlatch.NonReentrant())
		h := w.Acquire(bg, l)
		_, err := l.Acquire(h.Context())
		w.WantErr(err, redlatch.ErrReentry)
		if got := w.Count(h); got != "1" {
			t.Fatalf("count %s", got)
		}
		w.Release(h)
		w.Release(w.Acquire(bg, l))
	})
}

// In Redisson a re-entry, and the unlock that ends it, set the TTL, also to a
// shorter one.
func TestAReentryCutsNothingShort(t *testing.T) {
	for name, of := range locktest.TypesOfLock {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				l := of(w.Client(redlatch.Config{}), "orders")
				outer := w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Hour)))
				want := func(when string) {
					t.Helper()
					if ttl := w.Server.TTL("orders"); time.Now().Add(ttl).Before(outer.Expires()) {
						t.Errorf("%s: the lock lasts for %v, the outer hold is trusted for %v", when, ttl, time.Until(outer.Expires()))
					}
				}
				for _, opts := range [][]redlatch.PlainOption{{redlatch.Lease(time.Second)}, nil} {
					inner := w.Acquire(outer.Context(), locktest.With(l, opts...))
					want("re-entered")
					w.Release(inner)
					want("left again")
				}
				w.Release(outer)
				w.WantNoKeys()
			})
		})
	}
}
