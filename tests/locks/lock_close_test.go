package locks

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestCloseEndsWaitersAndHoldsAndFreesNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		behind := locktest.Later(func() error { _, err := c.Lock("orders").Acquire(bg); return err })
		other := w.Client(redlatch.Config{})
		foreign := w.Acquire(bg, other.Lock("stock"))
		head := locktest.Later(func() error { _, err := c.Lock("stock").Acquire(bg); return err })
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		w.WantErr(<-behind, redlatch.ErrClosed)
		w.WantErr(<-head, redlatch.ErrClosed)
		w.WantErr(h.Err(), redlatch.ErrClosed)
		w.WantErr(context.Cause(h.Context()), redlatch.ErrClosed)
		if !w.Server.Exists("orders") {
			t.Fatal("Close freed a lock under a running section")
		}
		_, err := c.Lock("orders").Acquire(bg)
		w.WantErr(err, redlatch.ErrClosed)
		_, err = admin.LockInfo(bg, c.Lock("orders"))
		w.WantErr(err, redlatch.ErrClosed)
		w.Release(foreign)
		w.Release(w.Acquire(bg, other.Lock("orders"))) // after the TTL
	})
}

// Whatever callers of one process wait at for one another, Close ends the waiting
// at once.
func TestCloseEndsEveryWaitForTheSameProcess(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var slow atomic.Bool
		slowly := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if slow.Load() {
				time.Sleep(500 * time.Millisecond)
			}
			return next()
		}
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Timeout: 100 * time.Millisecond, Hook: slowly}) // callers send by themselves, and cannot leave
		rw := c.ReadWriteLock("rates")
		locks := map[string]*redlatch.Lock{
			"plain": c.Lock("orders"), "spin": redisson.SpinLock(c, "invoices", nil), "group": redisson.GroupLock(c, "stock", []string{"a"}), "write": rw.Write(), "read": rw.Read(),
			"fair": c.FairLock("tickets"),
		}
		ctx := map[string]context.Context{"nested": w.Acquire(bg, c.Lock("nested")).Context()}
		locks["nested"] = c.Lock("nested")
		for name, l := range locks {
			switch name {
			case "read": // behind the writer
			case "fair": // behind one who asks for a place in the queue
			case "nested":
				w.Acquire(ctx[name], l)
			default:
				w.Acquire(bg, l)
			}
			if ctx[name] == nil {
				ctx[name] = bg
			}
		}
		synctest.Wait()
		slow.Store(true)
		first := locktest.Later(func() error { _, err := locks["fair"].Acquire(bg); return err })
		synctest.Wait()
		start := time.Now()
		waiting := map[string]<-chan error{}
		for name, l := range locks {
			waiting[name] = locktest.Later(func() error {
				_, err := l.Acquire(ctx[name])
				if d := time.Since(start); d > 0 {
					t.Errorf("%s: waited for %v more", name, d)
				}
				return err
			})
		}
		synctest.Wait()
		closed := locktest.Later(c.Close)
		for name, err := range waiting {
			if err := <-err; !errors.Is(err, redlatch.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		slow.Store(false) // what the first one has got is released
		w.WantErr(<-first, redlatch.ErrClosed)
		w.OK(<-closed)
	})
}

// Close waited for callers of fair locks, and then as long again for requests.
func TestCloseTakesCloseTimeoutAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &locktest.Blockable{End: make(chan struct{})}
		c, err := redlatch.New(b, redlatch.Config{CloseTimeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		h, err := c.Lock("stock").Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		b.Blocked.Store(true)
		caller := locktest.Later(func() error { _, err := c.FairLock("orders").Acquire(bg); return err })
		ended, cancel := context.WithCancel(bg)
		cancel()
		released := locktest.Later(func() error { return h.Release(ended) })
		synctest.Wait()
		start := time.Now()
		if err := c.Close(); err == nil {
			t.Error("Close has waited for a driver that does not answer")
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("Close took %v, want CloseTimeout", took)
		}
		close(b.End)
		t.Log(<-caller, <-released)
		synctest.Wait()
	})
}

func TestAnAcquisitionThatMeetsCloseReturnsNoUnwatchedHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Timeout: 100 * time.Millisecond, Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "lock.take" {
				time.Sleep(50 * time.Millisecond)
			}
			return r, err
		}}
		c := w.Tapped(redlatch.Config{}, d)
		var h *redlatch.Hold
		done := locktest.Later(func() error { var err error; h, err = c.Lock("orders").Acquire(bg); return err })
		time.Sleep(10 * time.Millisecond)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			return // fine
		}
		ctx := h.Context()
		other := w.Client(redlatch.Config{})
		h2 := w.Acquire(bg, other.Lock("orders"))
		select {
		case <-ctx.Done():
		default:
			t.Error("Acquire returned a hold after Close; somebody else has the lock now and Done is not closed")
		}
		w.Release(h2)
	})
}

func TestCloseEndsTheSubscriptionOfAContendedHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{}
		c := w.Tapped(redlatch.Config{}, d)
		other := w.Client(redlatch.Config{})
		f := w.Acquire(bg, other.Lock("orders"))
		hc := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, c.Lock("orders")) })
		time.Sleep(time.Second)
		w.Release(f)
		h := <-hc
		_ = c.Close()
		_ = h.Release(bg)
		if n := d.Subs.Load(); n != 0 {
			t.Errorf("%d subscriptions after Close", n)
		}
	})
}
