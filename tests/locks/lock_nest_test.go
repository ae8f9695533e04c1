package locks

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestConcurrentReleasesOfANestCountRight(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		bad, wrong := 0, 0
		for range 500 {
			outer := w.Acquire(bg, l)
			inner := w.Acquire(outer.Context(), l)
			hc := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
			synctest.Wait()
			e1 := locktest.Later(func() error { return inner.Release(bg) })
			e2 := locktest.Later(func() error { return outer.Release(bg) })
			h := <-hc
			err1, err2 := <-e1, <-e2
			if err1 != nil || err2 != nil {
				bad++
			}
			synctest.Wait()
			if n := w.Count(h); n != "1" {
				wrong++
			}
			w.Release(h)
		}
		if bad > 0 || wrong > 0 {
			t.Errorf("of 500: %d first releases failed, %d times Redis shows a wrong count", bad, wrong)
		}
		bad = 0
		for range 500 {
			outer := w.Acquire(bg, l)
			inner := w.Acquire(outer.Context(), l)
			e1 := locktest.Later(func() error { return inner.Release(bg) })
			e2 := locktest.Later(func() error { return outer.Release(bg) })
			for _, err := range []error{<-e1, <-e2} {
				if err != nil {
					bad++
					if bad == 1 {
						t.Log(err)
					}
				}
			}
		}
		if bad > 0 {
			t.Errorf("of 500: %d first releases failed", bad)
		}
	})
}

// After two outages during one nest nobody renewed the lock any more.
func TestRenewalGoesOnAfterOutagesDuringANest(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down atomic.Bool
		d := &locktest.Tap{Hook: locktest.Failing(&down, locktest.ErrReplyLost)}
		l := w.Tapped(redlatch.Config{OutageTimeout: time.Second}, d).Lock("orders")
		outer := w.Acquire(bg, l)
		for range 3 {
			inner := w.Acquire(outer.Context(), l)
			down.Store(true)
			w.Release(inner)
			if _, err := l.Acquire(outer.Context()); !errors.Is(err, redlatch.ErrUnavailable) {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			down.Store(false)
			time.Sleep(2 * time.Second)
			if n := w.Count(outer); n != "1" {
				t.Errorf("one hold, Redis shows %s", n)
			}
		}
		time.Sleep(time.Minute)
		if err := outer.Err(); err != nil {
			t.Errorf("beside a healthy server: %v", err)
		}
		w.Release(outer)
		w.WantNoKeys()
	})
}

// A nested release of unknown outcome had moved the lock to another id, and the
// outer one freed the old id.
func TestTheOuterReleaseFreesTheLockAfterALostReplyToTheInnerOne(t *testing.T) {
	for _, executed := range []bool{true, false} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			var lose atomic.Bool
			d := &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				if lose.Load() && locktest.Sets("1", s, args) {
					if executed {
						_, _ = next()
					}
					return driver.Reply{}, locktest.ErrReplyLost
				}
				return next()
			}}
			l := w.Tapped(redlatch.Config{}, d).Lock("orders")
			outer := w.Acquire(bg, l)
			id, inner := outer.ID(), w.Acquire(outer.Context(), l)
			lose.Store(true)
			w.Release(inner)
			time.Sleep(5 * time.Second)
			if outer.ID() != id {
				t.Errorf("the owner was %s and is %s", id, outer.ID())
			}
			w.Release(outer)
			w.WantNoKeys()
		})
	}
}

func TestTheReleaseOfAnInnerHoldWaitsForNobody(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down atomic.Bool
		d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if down.Load() {
				time.Sleep(50 * time.Millisecond)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}}
		l := w.Tapped(redlatch.Config{}, d).Lock("orders")
		outer := w.Acquire(bg, l)
		inner := w.Acquire(outer.Context(), l)
		down.Store(true)
		start := time.Now()
		w.Release(inner)
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
		down.Store(false)
		time.Sleep(2 * time.Second)
		w.Release(outer)
	})
}

// A lock without renewals shows the count, too, and is not extended for it.
func TestTheCountOfALeaseIsShown(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Client(redlatch.Config{}).Lock("orders")
		outer := w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Minute)))
		inner := w.Acquire(outer.Context(), locktest.With(l, redlatch.Lease(time.Second)))
		if n := w.Count(inner); n != "2" {
			t.Errorf("count %s", n)
		}
		time.Sleep(time.Second / 2)
		w.Release(inner)
		if n, ttl := w.Count(outer), w.Server.TTL("orders"); n != "1" || ttl > time.Minute-time.Second/2 {
			t.Errorf("count %s, TTL %v", n, ttl)
		}
		w.Release(outer)
	})
}

// What the documentation of Lease says: a nest has one lease in Redis, which ends
// for all of its holds.
func TestANestHasOneLease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Second)))
		inner := w.Acquire(outer.Context(), locktest.With(l, redlatch.Lease(time.Minute)))
		w.Release(inner)
		if left := time.Until(outer.Expires()); left < 58*time.Second {
			t.Errorf("the outer hold ends in %v, and not with the lease of the inner one", left)
		}
		inner = w.Acquire(outer.Context(), l)
		time.Sleep(time.Hour)
		if outer.Err() != nil || inner.Err() != nil {
			t.Errorf("outer: %v, inner: %v; want the watchdog to keep both", outer.Err(), inner.Err())
		}
		w.Release(inner)
		<-outer.Context().Done()
		if err := outer.Release(bg); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("without the watchdog the outer hold ended with %v", err)
		}

		read := c.ReadWriteLock("stock").Read()
		outer = w.Acquire(bg, locktest.With(read, redlatch.Lease(time.Second)))
		inner = w.Acquire(outer.Context(), read)
		time.Sleep(time.Minute)
		if outer.Err() == nil || inner.Err() != nil {
			t.Errorf("read holds: outer: %v, inner: %v; want each to have its own lease", outer.Err(), inner.Err())
		}
		_ = outer.Release(bg)
		w.Release(inner)
	})
}

// The first attempt of a re-entry comes late, when nobody asks any more: it shows
// one hold more than there is until the next renewal.
func TestALateReentryIsCorrectedByTheNextRenewal(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		ctx, cancel := context.WithCancel(bg)
		var n atomic.Int64
		d := &locktest.Tap{}
		d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if locktest.Sets("2", s, args) && n.Add(1) == 1 {
				late := d.Again(s, args)
				time.AfterFunc(300*time.Millisecond, late)
				time.AfterFunc(time.Millisecond, cancel)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}
		l := w.Tapped(redlatch.Config{}, d).Lock("orders")
		outer := w.Acquire(bg, l)
		if _, err := l.Acquire(outer.With(ctx)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(400 * time.Millisecond)
		if got := w.Count(outer); got != "2" {
			t.Fatalf("Redis shows %s: nothing is tested", got)
		}
		time.Sleep(11 * time.Second)
		if got := w.Count(outer); got != "1" {
			t.Errorf("one hold, Redis shows %s", got)
		}
		w.Release(outer)
		w.WantNoKeys()
	})
}

// Requests that set the count and are in flight at the same time may overtake each
// other.
func TestCountsThatOverlappedAreFollowedByTheTrueOne(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{}
		d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if locktest.Sets("2", s, args) || locktest.Sets("1", s, args) {
				time.Sleep(time.Duration(50+rand.IntN(100)) * time.Millisecond)
				defer time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
			}
			return next()
		}
		l := w.Tapped(redlatch.Config{}, d).Lock("orders")
		outer := w.Acquire(bg, l)
		for range 20 {
			for range 5 {
				inner := w.Acquire(outer.Context(), l)
				go func() { w.Release(inner) }()
				time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			}
			last := w.Acquire(outer.Context(), l)
			time.Sleep(time.Second)
			if n := w.Count(outer); n != "2" {
				t.Errorf("two holds, Redis shows %s", n)
			}
			w.Release(last)
			time.Sleep(time.Second)
			if n := w.Count(outer); n != "1" {
				t.Errorf("one hold, Redis shows %s", n)
			}
		}
		w.Release(outer)
	})
}
