package locks

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redisson #5761, #1763, #763: a release between the first try and the
// subscription was missed, and the waiter slept on beside a free lock.
func TestAReleaseBeforeTheSubscriptionIsNotMissed(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		other := w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.Lock("orders"))
		var once sync.Once
		d := &locktest.Tap{Subscribed: func(channel string, _ bool) {
			if channel == "redisson_lock__channel:{orders}" {
				once.Do(func() { w.Release(h) })
			}
		}}
		c := w.Tapped(redlatch.Config{}, d)
		start := time.Now()
		next := w.Acquire(bg, c.Lock("orders"))
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("the waiter slept for %v beside a free lock", d)
		}
		w.Release(next)
	})
}

// consul #7523: each release woke every waiter.
func TestAReleaseWakesOneWaiterOfAProcess(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var count locktest.Counter
		c, other := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: count.Hook}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.Lock("orders"))
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		got := make(chan *redlatch.Hold, 100)
		for range 100 {
			wg.Go(func() {
				if h, err := c.Lock("orders").Acquire(ctx); err == nil {
					got <- h
				}
			})
		}
		synctest.Wait()
		if n := count.Of("lock.take"); n > 2 {
			t.Errorf("100 waiters asked %d times, want twice: before and after they subscribed", n)
		}
		before := count.Of("lock.take")
		time.Sleep(10 * time.Minute)
		if n := count.Of("lock.take") - before; n > 400 {
			t.Errorf("they asked %d times in ten minutes, want once in about 2 s", n)
		}
		before = count.Of("lock.take")
		w.Release(h)
		first := <-got
		synctest.Wait()
		if n := count.Of("lock.take") - before; n != 1 {
			t.Errorf("the release woke %d waiters", n)
		}
		cancel()
		wg.Wait()
		w.Release(first)
	})
}

// redislock #21, #28, #74: without a deadline the wait was as long as the lease.
func TestAWaitWithoutADeadlineHasNoCap(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.Lock("orders"))
		var got [3]<-chan *redlatch.Hold // the head of the queue, and some behind it
		for i := range got {
			got[i] = locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, c.Lock("orders", redlatch.Lease(time.Second))) })
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		w.Release(h)
		for _, next := range got {
			w.Release(<-next)
		}
	})
}

// portalocker #136: a lost lock was a signal to its waiters.
func TestAWaiterHearsNothingOfAnothersLoss(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		waiting := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, c.Lock("orders")) })
		synctest.Wait()
		w.Server.Del("orders")
		<-h.Context().Done()
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.Release(<-waiting)
	})
}

// A lock that somebody has made persistent is not deleted by a question about it.
func TestAQuestionDoesNotEndALockWithoutATTL(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Client(redlatch.Config{}).Lock("orders")
		outer := w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Minute)))
		inner := w.Acquire(outer.Context(), locktest.With(l, redlatch.Lease(time.Second)))
		w.Server.SetTTL("orders", 0)
		w.Release(inner)
		if n := w.Count(outer); n != "1" {
			t.Errorf("count %q", n)
		}
		w.Release(outer)
	})
}

func TestAcquireEndsWithItsContextWhenItMeetsADebt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.release" {
				time.Sleep(10 * time.Second)
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		w.Server.HSet("orders", c.ID()+":999", "1")
		w.Server.SetTTL("orders", time.Minute)
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := c.Lock("orders").Acquire(ctx)
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("a context of 100 ms ended Acquire after %v: %v", took, err)
		}
		d.Off.Store(true)
		time.Sleep(time.Minute)
	})
}

func TestAWaitForOneselfIsReportedWithBothSites(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var got []observe.SlowWaitEvent
		c := w.Client(redlatch.Config{}, observe.Hooks{SlowWait: func(e observe.SlowWaitEvent) { got = append(got, e) }})
		h := w.Acquire(bg, c.Lock("orders"))
		_, err := c.Lock("orders").TryAcquire(bg, time.Minute) // forgot to pass h.Context()
		w.WantErr(err, redlatch.ErrBusy)
		synctest.Wait()
		if len(got) != 1 || got[0].Waited != 10*time.Second ||
			!strings.Contains(got[0].WaitSite, "wait_test.go") || !strings.Contains(got[0].HoldSite, "locktest/world.go") {
			t.Fatalf("got %+v", got)
		}
		w.Release(h)
	})
}

// Callers that wait after one another share an alarm, which stays set when one of
// them is let in. Each waits as long as it said, and is told of in time.
func TestAnAlarmOfAnEarlierWaiterEndsNoWait(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		slow := 0
		c := w.Client(redlatch.Config{SlowWait: 4 * time.Second}, observe.Hooks{SlowWait: func(observe.SlowWaitEvent) { slow++ }})
		l := c.Lock("orders")
		h := w.Acquire(bg, l)
		next := make(chan *redlatch.Hold)
		go func() { next <- w.AcquireWithin(bg, l, 3*time.Second) }()
		time.Sleep(time.Second)
		w.Release(h)
		h = <-next
		for _, d := range []time.Duration{time.Second, 2500 * time.Millisecond, 4 * time.Second, 25 * time.Second, time.Millisecond} {
			start, before := time.Now(), slow
			_, err := l.TryAcquire(bg, d)
			w.WantErr(err, redlatch.ErrBusy)
			if waited := time.Since(start); waited != d {
				t.Errorf("waited for %v, want %v", waited, d)
			}
			synctest.Wait() // events are told after one another
			if told := slow > before; told != (d > 4*time.Second) {
				t.Errorf("a wait for %v is told of: %v", d, told)
			}
		}
		w.Release(h)
	})
}

// A nested read needs no request, so nothing looked at its context.
func TestNothingIsAcquiredUnderAContextThatHasEnded(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for name, l := range map[string]*redlatch.Lock{
			"plain": c.Lock("a"), "fair": c.FairLock("b"), "write": c.ReadWriteLock("c").Write(), "read": c.ReadWriteLock("d").Read(),
			"group": redisson.GroupLock(c, "e", []string{"1", "2"}), "spin": redisson.SpinLock(c, "f", nil),
		} {
			h := w.Acquire(bg, l)
			for how, ctx := range map[string]context.Context{"not nested": bg, "nested": h.Context(), "under WithOwner": redlatch.WithOwner(bg)} {
				ended, cancel := context.WithCancelCause(ctx)
				why := errors.New("no longer wanted")
				cancel(why)
				for _, wait := range []time.Duration{time.Hour, 0} {
					if _, err := l.TryAcquire(ended, wait); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
						t.Errorf("%s, %s: %v", name, how, err)
					}
				}
			}
			w.Release(h)
		}
	})
}

func TestTryNeverOvertakesAndSaysWhoHasTheLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.Lock("orders"))
		time.Sleep(2 * time.Second)
		_, err := c.Lock("orders").TryAcquire(bg, 0)
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) || busy.Owner != h.ID() || busy.TTL < 27*time.Second || busy.TTL > 28*time.Second || busy.Name != "orders" {
			t.Fatalf("got %#v", busy)
		}
		waiting := locktest.Later(func() error {
			h, err := c.Lock("orders").Acquire(bg)
			if err == nil {
				time.Sleep(time.Second)
				err = h.Release(bg)
			}
			return err
		})
		synctest.Wait()
		w.Release(h)
		if _, err := c.Lock("orders").TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Fatalf("Try overtook a waiter of its own process: %v", err)
		}
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
	})
}

func TestAWaitEndsInTimeAndSaysWhy(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.Lock("orders"))
		for range 2 { // the head of the queue, and one behind it
			start := time.Now()
			_, err := c.Lock("orders").TryAcquire(bg, 1500*time.Millisecond)
			w.WantErr(err, redlatch.ErrBusy)
			if d := time.Since(start); d != 1500*time.Millisecond {
				t.Fatalf("waited %v", d)
			}
			go func() { _, _ = c.Lock("orders").Acquire(bg) }()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_, err := c.Lock("orders").Acquire(ctx)
		w.WantErr(err, redlatch.ErrBusy, context.DeadlineExceeded)
		w.Release(h)
	})
}

// Redisson waits without limit for a lock without a TTL. Nobody says so when it
// goes.
func TestALockWithoutATTLIsPolled(t *testing.T) {
	for name, of := range locktest.TypesOfLock {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				w.Server.HSet("orders", locktest.JavaOwner, "1")
				if name == "read" || name == "write" {
					w.Server.HSet("orders", "mode", "write")
				}
				got := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, of(c, "orders")) })
				time.Sleep(time.Minute)
				if !locktest.NoneYet(got) {
					t.Fatal("two holders")
				}
				w.Server.Del("orders")
				start := time.Now()
				w.Release(<-got)
				if took := time.Since(start); took > 2500*time.Millisecond {
					t.Errorf("found out after %v", took)
				}
				synctest.Wait()
				w.WantNoKeys()
			})
		})
	}
}
