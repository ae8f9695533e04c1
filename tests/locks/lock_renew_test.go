package locks

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redisson #7272: renewals went on after the unlock. Here one is in flight.
func TestNothingIsRenewedAfterARelease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var count locktest.Counter
		d := &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" {
				time.Sleep(2 * time.Second)
			}
			return count.Hook(s, args, next)
		}}
		c := w.Tapped(redlatch.Config{}, d)
		for _, wait := range []time.Duration{0, time.Second, 11 * time.Second, 13 * time.Second} {
			h := w.Acquire(bg, c.Lock("orders"))
			time.Sleep(wait)
			w.Release(h)
			time.Sleep(3 * time.Second) // what was in flight has come and gone
			before := count.Of("lock.renew")
			time.Sleep(10 * time.Minute)
			if n := count.Of("lock.renew") - before; n > 0 || w.Server.Exists("orders") {
				t.Errorf("released after %v: %d renewals since, exists %v", wait, n, w.Server.Exists("orders"))
			}
		}
	})
}

// redisson #2037: renewals went on for ever after the key had gone.
func TestNothingIsRenewedAfterALoss(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var count locktest.Counter
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: count.Hook})
		h := w.Acquire(bg, c.Lock("orders"))
		w.Server.Del("orders")
		<-h.Context().Done()
		synctest.Wait()
		before := count.Of("lock.renew")
		time.Sleep(10 * time.Minute)
		if n := count.Of("lock.renew") - before; n > 0 {
			t.Errorf("%d renewals after the loss", n)
		}
	})
}

// redisson #5697, #5698: renewals stopped, and nobody was told; rueidis #923:
// a renewed key was not always kept for the whole validity.
func TestEveryFailedRenewalIsAnEventAndTriedAgainSoon(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var failing atomic.Bool
		var mu sync.Mutex
		var tries []time.Time
		var failed atomic.Int64
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s != "lock.renew" {
				return next()
			}
			mu.Lock()
			tries = append(tries, time.Now())
			mu.Unlock()
			if failing.Load() {
				return driver.Reply{}, locktest.ErrReplyLost
			}
			r, err := next()
			if ttl := w.Server.TTL("orders"); ttl != 30*time.Second {
				t.Errorf("renewed for %v", ttl)
			}
			return r, err
		}}
		told := observe.Hooks{RenewFailed: func(e observe.RenewFailedEvent) {
			if e.Holds != 1 || !errors.Is(e.Err, locktest.ErrReplyLost) {
				t.Errorf("%+v", e)
			}
			failed.Add(1)
		}}
		c := w.Tapped(redlatch.Config{}, d, told)
		h := w.Acquire(bg, c.Lock("orders"))
		for range 3 {
			time.Sleep(time.Minute)
			synctest.Wait()
			mu.Lock()
			tries = nil
			mu.Unlock()
			failed.Store(0)
			failing.Store(true)
			time.Sleep(15 * time.Second)
			failing.Store(false)
			synctest.Wait()
			mu.Lock()
			if n := len(tries); n < 5 || failed.Load() != int64(n) {
				t.Errorf("%d tries and %d events of failure in 15 s, want as many of one as of the other", n, failed.Load())
			}
			for i := 1; i < len(tries); i++ {
				if d := tries[i].Sub(tries[i-1]); d > 1500*time.Millisecond {
					t.Errorf("tried again after %v", d)
				}
			}
			mu.Unlock()
		}
		if err := h.Err(); err != nil {
			t.Error(err)
		}
		w.Release(h)
	})
}

// redisson #6516, #6144: the renewal of a lock that had been re-entered failed.
func TestAReenteredHoldIsRenewed(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		holds := []*redlatch.Hold{w.Acquire(bg, l)}
		for range 3 {
			holds = append(holds, w.Acquire(holds[len(holds)-1].Context(), l))
		}
		for len(holds) > 0 { // from the outside in
			time.Sleep(2 * time.Minute)
			for _, h := range holds {
				if err := h.Err(); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := w.Count(holds[0]), fmt.Sprint(len(holds)); got != want {
				t.Errorf("count %s, want %s", got, want)
			}
			w.Release(holds[0])
			holds = holds[1:]
		}
	})
}

// redisson #6303: with thousands of locks the renewals came too late.
func TestThousandsOfHoldsAreRenewedInTime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		const holds = 1000
		var count locktest.Counter
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" {
				time.Sleep(20 * time.Millisecond) // a slow server
			}
			return count.Hook(s, args, next)
		}})
		var all []*redlatch.Hold
		for i := range holds {
			all = append(all, w.Acquire(bg, c.Lock(fmt.Sprint("orders:", i))))
		}
		time.Sleep(61 * time.Second) // six renewals of each
		for _, h := range all {
			if err := h.Err(); err != nil {
				t.Fatal(err)
			}
			if ttl := w.Server.TTL(h.Name()); ttl < 19*time.Second {
				t.Errorf("%s is kept for another %v", h.Name(), ttl)
			}
			w.Release(h)
		}
		if n := count.Of("lock.renew"); n < 6*holds/100 || n > 7*holds/100 {
			t.Errorf("%d requests to renew %d locks six times, want batches of 100", n, holds)
		}
	})
}

// A watchdog hold inside the hold of a short lease is renewed at the watchdog's
// pace, not at that of the lease.
func TestAWatchdogHoldInsideAShortLeaseIsRenewedAtItsOwnPace(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		renewals := 0
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" {
				renewals++
			}
			return next()
		}})
		outer := w.Acquire(bg, c.Lock("orders", redlatch.Lease(500*time.Millisecond)))
		inner := w.Acquire(outer.Context(), c.Lock("orders"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if renewals > 1 || inner.Err() != nil {
			t.Errorf("%d renewals in two seconds, want one each ten; %v", renewals, inner.Err())
		}
		w.Release(inner)
		_ = outer.Release(bg)
	})
}

func TestAHoldThatWasPassedOnIsRenewedAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.Acquire(bg, l)
		inner := w.Acquire(outer.Context(), locktest.With(l, redlatch.Lease(10*time.Second)))
		hc := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
		synctest.Wait()
		w.Release(outer)
		w.Release(inner)
		h := <-hc
		time.Sleep(2 * time.Minute)
		if err := h.Err(); err != nil {
			t.Errorf("a watchdog hold, server healthy: %v", err)
		}
		_ = h.Release(bg)
	})
}

func TestAWatchdogInsideAShortLeaseRenewsEachThirdOfItsOwn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var n atomic.Int64
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" {
				n.Add(1)
				time.Sleep(4 * time.Millisecond)
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		outer := w.Acquire(bg, locktest.With(l, redlatch.Lease(20*time.Millisecond)))
		inner := w.Acquire(outer.Context(), l)
		time.Sleep(time.Minute)
		t.Logf("%d renewals in a minute", n.Load())
		if n.Load() > 20 {
			t.Errorf("%d renewals in a minute", n.Load())
		}
		if err := inner.Err(); err != nil {
			t.Errorf("a watchdog hold, server healthy: %v", err)
		}
		_ = inner.Release(bg)
		_ = outer.Release(bg)
	})
}

func TestTheWatchdogKeepsAHoldForAsLongAsItLives(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		lowest := time.Hour
		for range 6000 {
			time.Sleep(100 * time.Millisecond)
			lowest = min(lowest, w.Server.TTL("orders"))
		}
		if h.Err() != nil || lowest < 19*time.Second || lowest > 20*time.Second {
			t.Fatalf("after ten minutes: err %v, lowest TTL %v; want renewals each third of 30s", h.Err(), lowest)
		}
		w.Release(h)
		if w.Server.Exists("orders") {
			t.Fatal("the key is still there after the release")
		}
	})
}

func TestAnotherTypeUnderOneKeyCostsItsNeighboursNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		var holds []*redlatch.Hold
		for _, name := range []string{"a", "b", "c"} {
			holds = append(holds, w.Acquire(bg, c.Lock(name)))
		}
		w.Server.Del("b")
		if err := w.Server.Set("b", "a string"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if holds[0].Err() != nil || holds[2].Err() != nil {
			t.Fatalf("neighbours lost: %v, %v", holds[0].Err(), holds[2].Err())
		}
		w.WantErr(holds[1].Err(), redlatch.ErrLost)
		w.Release(holds[0])
		w.Release(holds[2])
	})
}
