package locks

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestMaxHoldBoundsAReentry(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{MaxHold: time.Minute})
		l := c.Lock("orders")
		outer := w.Acquire(bg, locktest.With(l, redlatch.Lease(10*time.Second)))
		inner := w.Acquire(outer.Context(), l)
		time.Sleep(10 * time.Minute)
		if inner.Err() == nil {
			t.Error("the watchdog has kept a hold for 10 minutes, MaxHold is 1")
		}
		_ = inner.Release(bg)
		_ = outer.Release(bg)
	})
}

func TestMaxHoldOfANestedHoldLeavesTheOuterAlone(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{MaxHold: time.Minute})
		l := c.Lock("orders")
		outer := w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Hour)))
		inner := w.Acquire(outer.Context(), l)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		var lost *redlatch.LostError
		if !errors.As(inner.Err(), &lost) || lost.Reason != redlatch.LostMaxHold {
			t.Errorf("the inner hold: %v", inner.Err())
		}
		w.WantErr(inner.Release(bg), redlatch.ErrLost)
		if outer.Err() != nil || w.Count(outer) != "1" {
			t.Errorf("the outer hold, with a lease of an hour: %v, count %s", outer.Err(), w.Count(outer))
		}
		w.Release(outer)
	})
}

func TestMaxHoldIsEachHoldsOwnUnderWithOwner(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Client(redlatch.Config{MaxHold: time.Minute}).Lock("orders")
		ctx := redlatch.WithOwner(bg)
		start := time.Now()
		first := w.Acquire(ctx, l)
		time.Sleep(40 * time.Second)
		second := w.Acquire(ctx, l)
		<-first.Context().Done()
		if took := time.Since(start); took != time.Minute || second.Err() != nil {
			t.Errorf("the first ended after %v; the second, 20 s old: %v", took, second.Err())
		}
		<-second.Context().Done()
		if took := time.Since(start); took != 100*time.Second {
			t.Errorf("the second ended after %v, want 100s", took)
		}
		w.WantErr(second.Release(bg), redlatch.ErrLost)
		w.WantErr(first.Release(bg), redlatch.ErrLost)
		synctest.Wait()
		if w.Server.Exists("orders") {
			t.Error("the lock is still held")
		}
	})
}

// redisson and the Redis documentation: a hung worker renews for ever.
func TestMaxHoldEndsAHungWorkersHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{MaxHold: 5 * time.Minute})
		h := w.Acquire(bg, c.Lock("orders"))
		next := locktest.Later(func() error { return c.Lock("orders").Do(bg, func(context.Context) error { return nil }) })
		start := time.Now()
		<-h.Context().Done()
		if d := time.Since(start); d < 5*time.Minute-time.Second || d > 5*time.Minute+time.Millisecond {
			t.Fatalf("ended after %v", d)
		}
		var lost *redlatch.LostError
		if !errors.As(h.Err(), &lost) || lost.Reason != redlatch.LostMaxHold {
			t.Fatalf("got %v", h.Err())
		}
		if err := <-next; err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 5*time.Minute+31*time.Second {
			t.Fatalf("the next waited until %v although nobody renews the lock any more", d)
		}
	})
}
