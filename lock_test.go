package redlatch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

var bg = context.Background()

func TestTheWatchdogKeepsAHoldForAsLongAsItLives(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg)
		lowest := time.Hour
		for range 6000 {
			time.Sleep(100 * time.Millisecond)
			lowest = min(lowest, w.server.TTL("orders"))
		}
		if h.Err() != nil || lowest < 19*time.Second || lowest > 20*time.Second {
			t.Fatalf("after ten minutes: err %v, lowest TTL %v; want renewals each third of 30s", h.Err(), lowest)
		}
		w.release(h)
		if w.server.Exists("orders") {
			t.Fatal("the key is still there after the release")
		}
	})
}

func TestALeaseIsNotRenewed(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg, redlatch.Lease(10*time.Second))
		if left, want := time.Until(h.Expires()), 10*time.Second-210*time.Millisecond; left > want || left < want-10*time.Millisecond {
			t.Fatalf("trusted for %v, want %v", left, want)
		}
		<-h.Context().Done()
		if left := w.server.TTL("orders"); left <= 0 || left > 215*time.Millisecond {
			t.Fatalf("the holder was told with %v left in Redis, want the margin of 210ms", left)
		}
		w.wantErr(context.Cause(h.Context()), redlatch.ErrLost)
		w.wantErr(h.Release(bg), redlatch.ErrLost)
		w.wantErr(h.Release(bg), redlatch.ErrNotHeld)
	})
}

// A context that knew the deadline of its hold ended a child's own time-out with
// it: the standard library makes no timer for a child that ends after its parent.
func TestExtendLeavesTheTimeoutsOfChildrenAlone(t *testing.T) {
	inFakeTime(t, func(w *world) {
		h := w.acquire(w.client(redlatch.Config{}).Lock("orders"), bg, redlatch.Lease(10*time.Second))
		start := time.Now()
		child, stop := context.WithTimeout(h.Context(), 15*time.Second)
		defer stop()
		if err := h.Extend(bg, time.Minute); err != nil {
			t.Fatal(err)
		}
		<-child.Done()
		if took := time.Since(start); took != 15*time.Second || h.Err() != nil {
			t.Fatalf("a child with a time-out of 15s ended after %v; the hold: %v", took, h.Err())
		}
		w.release(h)
	})
}

// redisson #3854, #7254; rueidislock had two owners for 2.5 s.
func TestAHolderThatIsCutOffIsToldBeforeRedisGivesTheLockAway(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg)
		time.Sleep(14 * time.Second) // one renewal
		w.server.SetError("LOADING the server does not answer usefully")
		<-h.Context().Done()
		w.server.SetError("")
		if left := w.server.TTL("orders"); left <= 0 {
			t.Fatalf("told %v after the lock was free", -left)
		}
		var lost *redlatch.LostError
		if !errors.As(context.Cause(h.Context()), &lost) || lost.Reason != redlatch.LostExpired {
			t.Fatalf("cause %v, want LostExpired", context.Cause(h.Context()))
		}
	})
}

// redisson #2037: renewal went on although the key was gone.
func TestARenewalThatFindsTheLockGoneIsALoss(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var events int
		c := w.client(redlatch.Config{Events: redlatch.Events{Lost: func(e redlatch.LostEvent) {
			if e.Err.Reason != redlatch.LostGone {
				t.Errorf("reason %v", e.Err.Reason)
			}
			events++
		}}})
		h := w.acquire(c.Lock("orders"), bg)
		w.server.Del("orders")
		start := time.Now()
		<-h.Context().Done()
		synctest.Wait()
		if d := time.Since(start); d > 10*time.Second+time.Millisecond || events != 1 {
			t.Fatalf("told after %v by %d events, want one at the next renewal", d, events)
		}
		// redisson #3712: a new acquisition after a loss is renewed like any other.
		again := w.acquire(c.Lock("orders"), bg)
		time.Sleep(time.Minute)
		if again.Err() != nil {
			t.Fatal(again.Err())
		}
		w.release(again)
	})
}

func TestAnotherTypeUnderOneKeyCostsItsNeighboursNothing(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		var holds []*redlatch.Hold
		for _, name := range []string{"a", "b", "c"} {
			holds = append(holds, w.acquire(c.Lock(name), bg))
		}
		w.server.Del("b")
		if err := w.server.Set("b", "a string"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if holds[0].Err() != nil || holds[2].Err() != nil {
			t.Fatalf("neighbours lost: %v, %v", holds[0].Err(), holds[2].Err())
		}
		w.wantErr(holds[1].Err(), redlatch.ErrLost)
		w.release(holds[0])
		w.release(holds[2])
	})
}

func TestReentryCountsAndKeepsTheLockUntilTheLastRelease(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		inner := w.acquire(l, outer.Context())
		innermost := w.acquire(l, inner.With(bg))
		if got := w.count(outer); got != "3" {
			t.Fatalf("count %s, want 3", got)
		}
		w.release(outer) // the outer before the inner
		if got := w.count(inner); got != "2" {
			t.Fatalf("count %s, want 2", got)
		}
		_, err := other.Lock("orders").Try(bg)
		w.wantErr(err, redlatch.ErrBusy)
		w.release(innermost)
		w.release(inner)
		if w.server.Exists("orders") {
			t.Fatal("still held after the last release")
		}
	})
}

func TestAReleasedHoldsContextNeverReentersAnything(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		h := w.acquire(l, bg)
		ctx := context.WithoutCancel(h.Context()) // not done, but knows the hold
		w.release(h)
		_, err := l.Acquire(ctx)
		w.wantErr(err, redlatch.ErrNotHeld)
		if w.server.Exists("orders") {
			t.Fatal("Acquire touched Redis")
		}
	})
}

func TestReentryAfterAnUnseenLossIsErrLost(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		l := c.Lock("orders")
		h := w.acquire(l, bg)
		w.server.Del("orders")
		w.release(w.acquire(other.Lock("orders"), bg)) // somebody held it meanwhile
		_, err := l.Acquire(h.Context())
		w.wantErr(err, redlatch.ErrLost)
		w.wantErr(h.Err(), redlatch.ErrLost)
		if w.server.Exists("orders") {
			t.Fatal("the re-entry created a lock and hid the loss")
		}
	})
}

func TestTenGoroutinesUnderOneHoldNeverOverlap(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
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
				if got := w.count(h); got != "2" {
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
		w.release(outer)
	})
}

func TestSiblingsWaitingWhenTheOuterIsReleasedGetItsCause(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		first := w.acquire(l, outer.Context())
		second := later(func() error { _, err := l.Acquire(context.WithoutCancel(outer.Context())); return err })
		synctest.Wait()
		w.release(outer)
		w.wantErr(<-second, redlatch.ErrNotHeld)
		w.release(first)
		if w.server.Exists("orders") {
			t.Fatal("still held")
		}
	})
}

// A nested read needs no request, so nothing looked at its context.
func TestNothingIsAcquiredUnderAContextThatHasEnded(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		for name, l := range map[string]*redlatch.Lock{
			"plain": c.Lock("a"), "fair": c.FairLock("b"), "write": c.ReadWriteLock("c").Write(), "read": c.ReadWriteLock("d").Read(),
			"group": c.GroupLock("e", "1", "2"), "spin": c.SpinLock("f", nil),
		} {
			h := w.acquire(l, bg)
			for how, ctx := range map[string]context.Context{"not nested": bg, "nested": h.Context(), "under WithOwner": redlatch.WithOwner(bg)} {
				ended, cancel := context.WithCancelCause(ctx)
				why := errors.New("no longer wanted")
				cancel(why)
				for _, enter := range []func(context.Context, ...redlatch.Option) (*redlatch.Hold, error){l.Acquire, l.Try} {
					if _, err := enter(ended); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
						t.Errorf("%s, %s: %v", name, how, err)
					}
				}
			}
			w.release(h)
		}
	})
}

func TestUnderWithOwnerEverythingIsOneOwner(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		ctx := redlatch.WithOwner(bg)
		a := w.acquire(l, ctx)
		b := w.acquire(l, ctx)
		if a.Owner() != b.Owner() || w.count(a) != "2" {
			t.Fatalf("owners %s and %s, count %s", a.Owner(), b.Owner(), w.count(a))
		}
		_, err := l.Try(redlatch.WithOwner(bg))
		w.wantErr(err, redlatch.ErrBusy)
		w.release(a)
		w.release(b)
		again := w.acquire(l, ctx)
		w.release(again)
		_, err = c.NonReentrantLock("other").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.NonReentrantLock("other").Acquire(ctx)
		w.wantErr(err, redlatch.ErrReentry)
	})
}

func TestANonReentrantLockRefusesItsHolder(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.NonReentrantLock("orders")
		h := w.acquire(l, bg)
		_, err := l.Acquire(h.Context())
		w.wantErr(err, redlatch.ErrReentry)
		if got := w.count(h); got != "1" {
			t.Fatalf("count %s", got)
		}
		w.release(h)
		w.release(w.acquire(l, bg))
	})
}

func TestTryNeverOvertakesAndSaysWhoHasTheLock(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(other.Lock("orders"), bg)
		time.Sleep(2 * time.Second)
		_, err := c.Lock("orders").Try(bg)
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) || busy.Owner != h.Owner() || busy.TTL < 27*time.Second || busy.TTL > 28*time.Second || busy.Name != "orders" {
			t.Fatalf("got %#v", busy)
		}
		waiting := later(func() error {
			h, err := c.Lock("orders").Acquire(bg)
			if err == nil {
				time.Sleep(time.Second)
				err = h.Release(bg)
			}
			return err
		})
		synctest.Wait()
		w.release(h)
		if _, err := c.Lock("orders").Try(bg); !errors.Is(err, redlatch.ErrBusy) {
			t.Fatalf("Try overtook a waiter of its own process: %v", err)
		}
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
	})
}

func TestAWaitEndsInTimeAndSaysWhy(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(other.Lock("orders"), bg)
		for range 2 { // the head of the queue, and one behind it
			start := time.Now()
			_, err := c.Lock("orders").Acquire(bg, redlatch.Wait(1500*time.Millisecond))
			w.wantErr(err, redlatch.ErrBusy)
			if d := time.Since(start); d != 1500*time.Millisecond {
				t.Fatalf("waited %v", d)
			}
			go func() { _, _ = c.Lock("orders").Acquire(bg) }()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_, err := c.Lock("orders").Acquire(ctx)
		w.wantErr(err, redlatch.ErrBusy, context.DeadlineExceeded)
		w.release(h)
	})
}
