package redlatch_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

func TestConcurrentReleasesOfANestCountRight(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		bad, wrong := 0, 0
		for range 500 {
			outer := w.acquire(l, bg)
			inner := w.acquire(l, outer.Context())
			hc := later(func() *redlatch.Hold { return w.acquire(l, bg) })
			synctest.Wait()
			e1 := later(func() error { return inner.Release(bg) })
			e2 := later(func() error { return outer.Release(bg) })
			h := <-hc
			err1, err2 := <-e1, <-e2
			if err1 != nil || err2 != nil {
				bad++
			}
			synctest.Wait()
			if n := w.count(h); n != "1" {
				wrong++
			}
			w.release(h)
		}
		if bad > 0 || wrong > 0 {
			t.Errorf("of 500: %d first releases failed, %d times Redis shows a wrong count", bad, wrong)
		}
		bad = 0
		for range 500 {
			outer := w.acquire(l, bg)
			inner := w.acquire(l, outer.Context())
			e1 := later(func() error { return inner.Release(bg) })
			e2 := later(func() error { return outer.Release(bg) })
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

func TestAnOutageIsRetryableAndNotTheCallersDeadline(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(5 * time.Second) // a driver that hangs
			return driver.Reply{}, errTapUnknown
		}}
		c := w.tapped(redlatch.Config{}, d)
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
		d.off.Store(true)
		time.Sleep(10 * time.Minute)
	})
}

func TestALeaseThatOverflowsIsRefused(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			n.Add(1)
			time.Sleep(time.Millisecond)
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		ctx, cancel := context.WithCancel(bg)
		done := later(func() error {
			h, err := c.Lock("orders").Acquire(ctx, redlatch.Lease(math.MaxInt64))
			if err == nil {
				w.release(h)
			}
			return err
		})
		time.Sleep(100 * time.Millisecond)
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "too long") || n.Load() > 0 {
				t.Errorf("%v, after %d requests", err, n.Load())
			}
		default:
			t.Errorf("Acquire spins: %d requests so far", n.Load())
		}
		cancel()
		synctest.Wait()
	})
}

// After two outages during one nest nobody renewed the lock any more.
func TestRenewalGoesOnAfterOutagesDuringANest(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var down atomic.Bool
		d := &tap{hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if down.Load() {
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}}
		l := w.tapped(redlatch.Config{OutageTimeout: time.Second}, d).Lock("orders")
		outer := w.acquire(l, bg)
		for range 3 {
			inner := w.acquire(l, outer.Context())
			down.Store(true)
			w.release(inner)
			if _, err := l.Acquire(outer.Context()); !errors.Is(err, redlatch.ErrUnavailable) {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			down.Store(false)
			time.Sleep(2 * time.Second)
			if n := w.count(outer); n != "1" {
				t.Errorf("one hold, Redis shows %s", n)
			}
		}
		time.Sleep(time.Minute)
		if err := outer.Err(); err != nil {
			t.Errorf("beside a healthy server: %v", err)
		}
		w.release(outer)
		w.wantNoKeys()
	})
}

// A nested release of unknown outcome had moved the lock to another id, and the
// outer one freed the old id.
func TestTheOuterReleaseFreesTheLockAfterAnUnknownInnerOne(t *testing.T) {
	for _, executed := range []bool{true, false} {
		inFakeTime(t, func(w *world) {
			var lose atomic.Bool
			d := &tap{hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				if lose.Load() && sets("1", s, args) {
					if executed {
						_, _ = next()
					}
					return driver.Reply{}, errTapUnknown
				}
				return next()
			}}
			l := w.tapped(redlatch.Config{}, d).Lock("orders")
			outer := w.acquire(l, bg)
			id, inner := outer.Owner(), w.acquire(l, outer.Context())
			lose.Store(true)
			w.release(inner)
			time.Sleep(5 * time.Second)
			if outer.Owner() != id {
				t.Errorf("the owner was %s and is %s", id, outer.Owner())
			}
			w.release(outer)
			w.wantNoKeys()
		})
	}
}

func TestTheReleaseOfAnInnerHoldWaitsForNobody(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var down atomic.Bool
		d := &tap{hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if down.Load() {
				time.Sleep(50 * time.Millisecond)
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}}
		l := w.tapped(redlatch.Config{}, d).Lock("orders")
		outer := w.acquire(l, bg)
		inner := w.acquire(l, outer.Context())
		down.Store(true)
		start := time.Now()
		w.release(inner)
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
		down.Store(false)
		time.Sleep(2 * time.Second)
		w.release(outer)
	})
}

// Redis may keep the lock for an hour, after an extension or a re-entry that nobody
// waited for: the next holder's watchdog must not have that.
func TestALongTTLThatMayComeIsNotPassedOn(t *testing.T) {
	const hour = "3600000"
	for _, how := range []string{"extension under way", "re-entry without answer"} {
		t.Run(how, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				d := &tap{hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					switch {
					case s != "lock.renew" || args[1] != hour:
						return next()
					case how == "extension under way":
						time.Sleep(50 * time.Millisecond)
						return next()
					}
					_, _ = next()
					return driver.Reply{}, errTapUnknown
				}}
				l := w.tapped(redlatch.Config{OutageTimeout: time.Second}, d).Lock("orders")
				outer := w.acquire(l, bg)
				if how == "extension under way" {
					inner := w.acquire(l, outer.Context(), redlatch.Lease(10*time.Second))
					go func() { _ = inner.Extend(bg, time.Hour) }()
					time.Sleep(time.Millisecond)
					w.release(inner)
				} else if _, err := l.Acquire(outer.Context(), redlatch.Lease(time.Hour)); err == nil {
					t.Error("the re-entry was answered")
				}
				next := later(func() *redlatch.Hold { return w.acquire(l, bg) })
				synctest.Wait()
				w.release(outer)
				h := <-next
				time.Sleep(time.Second)
				if ttl := w.server.TTL("orders"); ttl > 30*time.Second {
					t.Errorf("if this process dies, the watchdog hold of the next lasts %v", ttl)
				}
				w.release(h)
			})
		})
	}
}

// A lock without renewals shows the count, too, and is not extended for it.
func TestTheCountOfALeaseIsShown(t *testing.T) {
	inFakeTime(t, func(w *world) {
		l := w.client(redlatch.Config{}).Lock("orders")
		outer := w.acquire(l, bg, redlatch.Lease(time.Minute))
		inner := w.acquire(l, outer.Context(), redlatch.Lease(time.Second))
		if n := w.count(inner); n != "2" {
			t.Errorf("count %s", n)
		}
		time.Sleep(time.Second / 2)
		w.release(inner)
		if n, ttl := w.count(outer), w.server.TTL("orders"); n != "1" || ttl > time.Minute-time.Second/2 {
			t.Errorf("count %s, TTL %v", n, ttl)
		}
		w.release(outer)
	})
}

// A lock that somebody has made persistent is not deleted by a question about it.
func TestAQuestionDoesNotEndALockWithoutATTL(t *testing.T) {
	inFakeTime(t, func(w *world) {
		l := w.client(redlatch.Config{}).Lock("orders")
		outer := w.acquire(l, bg, redlatch.Lease(time.Minute))
		inner := w.acquire(l, outer.Context(), redlatch.Lease(time.Second))
		w.server.SetTTL("orders", 0)
		w.release(inner)
		if n := w.count(outer); n != "1" {
			t.Errorf("count %q", n)
		}
		w.release(outer)
	})
}

func TestAcquireEndsWithItsContextWhenItMeetsADebt(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.release" {
				time.Sleep(10 * time.Second)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		w.server.HSet("orders", c.ID()+":999", "1")
		w.server.SetTTL("orders", time.Minute)
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := c.Lock("orders").Acquire(ctx)
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("a context of 100 ms ended Acquire after %v: %v", took, err)
		}
		d.off.Store(true)
		time.Sleep(time.Minute)
	})
}

func TestWaitBoundsAReentry(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var slow atomic.Bool
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" && slow.Load() {
				time.Sleep(2900 * time.Millisecond)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		slow.Store(true)
		start := time.Now()
		_, err := l.Acquire(context.WithoutCancel(outer.Context()), redlatch.Wait(100*time.Millisecond))
		if took := time.Since(start); took > 200*time.Millisecond || !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Wait(100ms) ended after %v: %v", took, err)
		}
		slow.Store(false)
		time.Sleep(5 * time.Second)
		if n := w.count(outer); n != "1" {
			t.Errorf("one hold, Redis shows %s", n)
		}
		w.release(outer)
	})
}

func TestALeaseShorterThanARoundTripDoesNotSpin(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.take" {
				n.Add(1)
			}
			r, err := next()
			time.Sleep(12 * time.Millisecond)
			return r, err
		}}
		c := w.tapped(redlatch.Config{}, d)
		done := later(func() error { _, err := c.Lock("orders").Acquire(bg, redlatch.Lease(20*time.Millisecond)); return err })
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			if !errors.Is(err, redlatch.ErrUnavailable) || n.Load() > 50 {
				t.Errorf("%v, after %d takes", err, n.Load())
			}
		default:
			t.Errorf("Acquire has sent %d takes in a minute", n.Load())
		}
	})
}

func TestALongTTLIsNotPassedOn(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		inner := w.acquire(l, outer.Context(), redlatch.Lease(time.Hour))
		hc := later(func() *redlatch.Hold { return w.acquire(l, bg) })
		synctest.Wait()
		w.release(inner)
		w.release(outer)
		h := <-hc
		if ttl := w.server.TTL("orders"); ttl > 30*time.Second {
			t.Errorf("if this process dies, the watchdog hold of the next lasts %v", ttl)
		}
		w.release(h)
	})
}

func TestMaxHoldBoundsAReentry(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{MaxHold: time.Minute})
		l := c.Lock("orders")
		outer := w.acquire(l, bg, redlatch.Lease(10*time.Second))
		inner := w.acquire(l, outer.Context())
		time.Sleep(10 * time.Minute)
		if inner.Err() == nil {
			t.Error("the watchdog has kept a hold for 10 minutes, MaxHold is 1")
		}
		_ = inner.Release(bg)
		_ = outer.Release(bg)
	})
}

func TestMaxHoldOfANestedHoldLeavesTheOuterAlone(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{MaxHold: time.Minute})
		l := c.Lock("orders")
		outer := w.acquire(l, bg, redlatch.Lease(time.Hour))
		inner := w.acquire(l, outer.Context())
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		var lost *redlatch.LostError
		if !errors.As(inner.Err(), &lost) || lost.Reason != redlatch.LostMaxHold {
			t.Errorf("the inner hold: %v", inner.Err())
		}
		w.wantErr(inner.Release(bg), redlatch.ErrLost)
		if outer.Err() != nil || w.count(outer) != "1" {
			t.Errorf("the outer hold, with a lease of an hour: %v, count %s", outer.Err(), w.count(outer))
		}
		w.release(outer)
	})
}

func TestMaxHoldIsEachHoldsOwnUnderWithOwner(t *testing.T) {
	inFakeTime(t, func(w *world) {
		l := w.client(redlatch.Config{MaxHold: time.Minute}).Lock("orders")
		ctx := redlatch.WithOwner(bg)
		start := time.Now()
		first := w.acquire(l, ctx)
		time.Sleep(40 * time.Second)
		second := w.acquire(l, ctx)
		<-first.Context().Done()
		if took := time.Since(start); took != time.Minute || second.Err() != nil {
			t.Errorf("the first ended after %v; the second, 20 s old: %v", took, second.Err())
		}
		<-second.Context().Done()
		if took := time.Since(start); took != 100*time.Second {
			t.Errorf("the second ended after %v, want 100s", took)
		}
		w.wantErr(second.Release(bg), redlatch.ErrLost)
		w.wantErr(first.Release(bg), redlatch.ErrLost)
		synctest.Wait()
		if w.server.Exists("orders") {
			t.Error("the lock is still held")
		}
	})
}

func TestAnOwnerNestedInAHoldKeepsItsTurn(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		g := w.acquire(l, bg)
		sc := redlatch.WithOwner(g.Context())
		a1 := w.acquire(l, sc)
		a2 := w.acquire(l, sc)
		bc := later(func() *redlatch.Hold { return w.acquire(l, g.Context()) })
		synctest.Wait()
		w.release(a1)
		synctest.Wait()
		var b *redlatch.Hold
		select {
		case b = <-bc:
			if a2.Err() == nil {
				t.Error("b, nested in g, is live together with a2, which is under an owner nested in g")
			}
			w.release(a2)
		default:
			w.release(a2)
			b = <-bc
		}
		w.release(b)
		w.release(g)
	})
}

// A revocation is confirmed although the take it is about is still under way.
func TestARevocationEndsATakeUnderWay(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "lock.take" {
				time.Sleep(2 * time.Second) // a slow reply, in time
			}
			return r, err
		}}
		a, b := w.tapped(redlatch.Config{}, d), w.client(redlatch.Config{})
		hc := later(func() *redlatch.Hold { h, _ := a.Lock("orders").Acquire(bg); return h })
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		ok, err := b.Lock("orders").ForceRelease(bg)
		t.Log(ok, err, time.Since(start))
		h2 := w.acquire(b.Lock("orders"), bg)
		time.Sleep(time.Minute)
		select {
		case h := <-hc:
			t.Errorf("two holders; the revocation was confirmed: %v, %v", h.Err(), h2.Err())
		default:
		}
		w.release(h2)
		w.release(<-hc)
	})
}

// The first attempt of a re-entry comes late, when nobody asks any more: it shows
// one hold more than there is until the next renewal.
func TestALateReentryIsCorrectedByTheNextRenewal(t *testing.T) {
	inFakeTime(t, func(w *world) {
		ctx, cancel := context.WithCancel(bg)
		var n atomic.Int64
		d := &tap{}
		d.hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if sets("2", s, args) && n.Add(1) == 1 {
				late := d.again(s, args)
				time.AfterFunc(300*time.Millisecond, late)
				time.AfterFunc(time.Millisecond, cancel)
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}
		l := w.tapped(redlatch.Config{}, d).Lock("orders")
		outer := w.acquire(l, bg)
		if _, err := l.Acquire(outer.With(ctx)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(400 * time.Millisecond)
		if got := w.count(outer); got != "2" {
			t.Fatalf("Redis shows %s: nothing is tested", got)
		}
		time.Sleep(11 * time.Second)
		if got := w.count(outer); got != "1" {
			t.Errorf("one hold, Redis shows %s", got)
		}
		w.release(outer)
		w.wantNoKeys()
	})
}

// Requests that set the count and are under way at the same time may overtake each
// other.
func TestCountsThatOverlappedAreFollowedByTheTrueOne(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{}
		d.hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if sets("2", s, args) || sets("1", s, args) {
				time.Sleep(time.Duration(50+rand.IntN(100)) * time.Millisecond)
				defer time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
			}
			return next()
		}
		l := w.tapped(redlatch.Config{}, d).Lock("orders")
		outer := w.acquire(l, bg)
		for range 20 {
			for range 5 {
				inner := w.acquire(l, outer.Context())
				go func() { w.release(inner) }()
				time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			}
			last := w.acquire(l, outer.Context())
			time.Sleep(time.Second)
			if n := w.count(outer); n != "2" {
				t.Errorf("two holds, Redis shows %s", n)
			}
			w.release(last)
			time.Sleep(time.Second)
			if n := w.count(outer); n != "1" {
				t.Errorf("one hold, Redis shows %s", n)
			}
		}
		w.release(outer)
	})
}

func TestALossDuringAReentryIsErrLost(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if sets("2", s, args) {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{MaxHold: time.Second}, d)
		outer := w.acquire(c.Lock("orders"), bg)
		time.Sleep(980 * time.Millisecond)
		_, err := c.Lock("orders").Acquire(outer.Context())
		w.wantErr(err, redlatch.ErrLost)
	})
}

// A driver (or a hook of the user's go-redis client) that looks at its context
// after Run has returned.
func TestADriverMayKeepItsContext(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var kept context.Context
		d := &tap{seen: func(ctx context.Context) { kept = ctx }}
		c := w.tapped(redlatch.Config{}, d)
		w.release(w.acquire(c.Lock("orders"), bg))
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("panic: %v", r)
			}
		}()
		_ = kept.Value("trace")
	})
}
