package locks

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/semaphore"
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

// One name may be held for long, or not so long, whatever is right for the others.
func TestTheMaxHoldOfANameGoesBeforeTheClients(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{MaxHold: time.Minute})
		long, short := redlatch.MaxHold(time.Hour), redlatch.MaxHold(10*time.Second)
		for name, x := range map[string]struct {
			acquire func() (*redlatch.Hold, error)
			lasts   time.Duration
		}{
			"the client's": {func() (*redlatch.Hold, error) { return c.Lock("a").Acquire(bg) }, time.Minute},
			"0":            {func() (*redlatch.Hold, error) { return c.Lock("b", redlatch.MaxHold(0)).Acquire(bg) }, time.Minute},
			"long":         {func() (*redlatch.Hold, error) { return c.Lock("c", long).Acquire(bg) }, time.Hour},
			"fair":         {func() (*redlatch.Hold, error) { return c.FairLock("d", short).Acquire(bg) }, 10 * time.Second},
			"read":         {func() (*redlatch.Hold, error) { return c.ReadWriteLock("e", long).Read().Acquire(bg) }, time.Hour},
			"several": {func() (*redlatch.Hold, error) {
				return redlatch.MultiLock(c.Lock("f", long), c.Lock("g", short)).Acquire(bg)
			}, 10 * time.Second},
			"permits": {func() (*redlatch.Hold, error) { return semaphore.NewExpirable(c, "h", 2, short).Acquire(bg, 2) }, 10 * time.Second},
		} {
			begun := time.Now()
			h, err := x.acquire()
			w.OK(err)
			<-h.Context().Done()
			var lost *redlatch.LostError
			if d := time.Since(begun); d != x.lasts || !errors.As(h.Err(), &lost) || lost.Reason != redlatch.LostMaxHold {
				t.Errorf("%s: %v after %v", name, h.Err(), d)
			}
			w.WantErr(h.Release(bg), redlatch.ErrLost)
		}
		for _, opts := range [][]redlatch.HoldOption{{redlatch.MaxHold(-1)}, {long, redlatch.Lease(time.Minute)}} {
			_, err := semaphore.NewExpirable(c, "i", 1, opts...).TryAcquire(bg, 1, 0)
			w.WantErr(err, redlatch.ErrInvalid)
		}
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
