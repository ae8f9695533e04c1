package redlatch_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

func TestExtendOnlyRaisesAndOnlyLeases(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg, redlatch.Lease(time.Minute))
		if err := h.Extend(bg, time.Second); err != nil {
			t.Fatal(err)
		}
		if left := w.server.TTL("orders"); left < 59*time.Second {
			t.Fatalf("Extend shortened the TTL to %v", left)
		}
		time.Sleep(50 * time.Second)
		if err := h.Extend(bg, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		if h.Err() != nil {
			t.Fatalf("lost in spite of Extend: %v", h.Err())
		}
		w.release(h)
		w.wantErr(h.Extend(bg, time.Minute), redlatch.ErrNotHeld)

		h = w.acquire(c.Lock("orders"), bg)
		if err := h.Extend(bg, time.Minute); err == nil || !strings.Contains(err.Error(), "Lease") {
			t.Fatalf("Extend of a watchdog hold: %v", err)
		}
		w.release(h)

		h = w.acquire(c.Lock("orders"), bg, redlatch.Lease(time.Minute))
		w.server.Del("orders")
		w.wantErr(h.Extend(bg, time.Minute), redlatch.ErrLost)
	})
}

// redisson and the Redis documentation: a hung worker renews for ever.
func TestMaxHoldEndsAHungWorkersHold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{MaxHold: 5 * time.Minute})
		h := w.acquire(c.Lock("orders"), bg)
		next := later(func() error { return c.Lock("orders").Do(bg, func(context.Context) error { return nil }) })
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

func TestTheHoldsContextOutlivesTheAcquireContext(t *testing.T) {
	inFakeTime(t, func(w *world) {
		type key struct{}
		c := w.client(redlatch.Config{})
		ctx, cancel := context.WithCancelCause(context.WithValue(bg, key{}, "value"))
		h := w.acquire(c.Lock("orders"), ctx)
		cancel(errors.New("the caller has left"))
		held := h.Context()
		if held.Err() != nil || context.Cause(held) != nil || held.Value(key{}) != "value" {
			t.Fatalf("err %v, cause %v, value %v", held.Err(), context.Cause(held), held.Value(key{}))
		}
		if _, ok := held.Deadline(); ok {
			t.Fatal("a watchdog hold has a deadline, which callees would copy")
		}
		both := h.With(ctx)
		if both.Err() == nil {
			t.Fatal("With does not end with its context")
		}
		child, stop := context.WithCancel(held)
		defer stop()
		w.server.Del("orders")
		<-child.Done()
		w.wantErr(context.Cause(child), redlatch.ErrLost)
		w.wantErr(context.Cause(held), redlatch.ErrLost)
	})
}

func TestWithEndsWithTheHold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg)
		ctx := h.With(bg)
		w.release(h)
		if ctx.Err() == nil {
			t.Fatal("With is not done after the release")
		}
		<-ctx.Done()
		w.wantErr(context.Cause(ctx), redlatch.ErrNotHeld)
	})
}

func TestDoCannotForgetToRelease(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		boom := errors.New("boom")
		w.wantErr(l.Do(bg, func(context.Context) error { return boom }), boom)
		func() {
			defer func() { _ = recover() }()
			_ = l.Do(bg, func(context.Context) error { panic(boom) })
		}()
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = l.Do(bg, func(context.Context) error { runtime.Goexit(); return nil })
		})
		wg.Wait()
		if w.server.Exists("orders") {
			t.Fatal("still held")
		}
		err := l.Do(bg, func(ctx context.Context) error {
			w.server.Del("orders")
			<-ctx.Done()
			return nil
		})
		w.wantErr(err, redlatch.ErrLost)
		err = l.Do(bg, func(ctx context.Context) error {
			return l.Do(ctx, func(context.Context) error { return boom }) // re-enters
		})
		w.wantErr(err, boom)
	})
}

// authgear-server #5721, ncps #913: Unlock with a cancelled context did nothing.
func TestReleaseWorksOnAContextThatHasEnded(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		ctx, cancel := context.WithCancel(bg)
		h := w.acquire(c.Lock("orders"), ctx)
		cancel()
		if err := h.Release(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		synctest.Wait()
		if w.server.Exists("orders") {
			t.Fatal("the lock was left to its TTL")
		}
	})
}

func TestADroppedHoldIsReportedAndReleased(t *testing.T) {
	dropped := make(chan redlatch.DroppedEvent, 1)
	w := realTime(t)
	c := w.client(redlatch.Config{Events: redlatch.Events{Dropped: func(e redlatch.DroppedEvent) { dropped <- e }}})
	if _, err := c.Lock("orders").Acquire(bg); err != nil { // line of the acquisition
		t.Fatal(err)
	}
	for end := time.Now().Add(generous); ; {
		if time.Now().After(end) {
			t.Fatal("nobody noticed that the hold was dropped")
		}
		runtime.GC()
		select {
		case e := <-dropped:
			if !strings.Contains(e.Site, "hold_test.go") {
				t.Fatalf("site %q", e.Site)
			}
			h := w.acquire(c.Lock("orders"), bg) // comes through only if it was released
			w.release(h)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestCloseEndsWaitersAndHoldsAndFreesNothing(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg)
		behind := later(func() error { _, err := c.Lock("orders").Acquire(bg); return err })
		other := w.client(redlatch.Config{})
		foreign := w.acquire(other.Lock("stock"), bg)
		head := later(func() error { _, err := c.Lock("stock").Acquire(bg); return err })
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		w.wantErr(<-behind, redlatch.ErrClosed)
		w.wantErr(<-head, redlatch.ErrClosed)
		w.wantErr(h.Err(), redlatch.ErrClosed)
		w.wantErr(context.Cause(h.Context()), redlatch.ErrClosed)
		if !w.server.Exists("orders") {
			t.Fatal("Close freed a lock under a running section")
		}
		_, err := c.Lock("orders").Acquire(bg)
		w.wantErr(err, redlatch.ErrClosed)
		_, err = c.Lock("orders").Info(bg)
		w.wantErr(err, redlatch.ErrClosed)
		w.release(foreign)
		w.release(w.acquire(other.Lock("orders"), bg)) // after the TTL
	})
}

func TestAWaitForOneselfIsReportedWithBothSites(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var got []redlatch.SlowWaitEvent
		c := w.client(redlatch.Config{Events: redlatch.Events{SlowWait: func(e redlatch.SlowWaitEvent) { got = append(got, e) }}})
		h := w.acquire(c.Lock("orders"), bg)
		_, err := c.Lock("orders").Acquire(bg, redlatch.Wait(time.Minute)) // forgot to pass h.Context()
		w.wantErr(err, redlatch.ErrBusy)
		synctest.Wait()
		if len(got) != 1 || got[0].Waited != 10*time.Second ||
			!strings.Contains(got[0].WaitSite, "hold_test.go") || !strings.Contains(got[0].HoldSite, "util_test.go") {
			t.Fatalf("got %+v", got)
		}
		w.release(h)
	})
}

// A watchdog hold inside the hold of a short lease is renewed at the watchdog's
// pace, not at that of the lease.
func TestAWatchdogHoldInsideAShortLeaseIsRenewedAtItsOwnPace(t *testing.T) {
	inFakeTime(t, func(w *world) {
		renewals := 0
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" {
				renewals++
			}
			return next()
		}})
		outer := w.acquire(c.Lock("orders"), bg, redlatch.Lease(500*time.Millisecond))
		inner := w.acquire(c.Lock("orders"), outer.Context())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if renewals > 1 || inner.Err() != nil {
			t.Errorf("%d renewals in two seconds, want one each ten; %v", renewals, inner.Err())
		}
		w.release(inner)
		_ = outer.Release(bg)
	})
}

// Close waited for callers of fair locks, and then as long again for requests.
func TestCloseTakesCloseTimeoutAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &blockable{end: make(chan struct{})}
		c, err := redlatch.New(b, redlatch.Config{CloseTimeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		h, err := c.Lock("stock").Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		b.blocked.Store(true)
		caller := later(func() error { _, err := c.FairLock("orders").Acquire(bg); return err })
		ended, cancel := context.WithCancel(bg)
		cancel()
		released := later(func() error { return h.Release(ended) })
		synctest.Wait()
		start := time.Now()
		if err := c.Close(); err == nil {
			t.Error("Close has waited for a driver that does not answer")
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("Close took %v, want CloseTimeout", took)
		}
		close(b.end)
		t.Log(<-caller, <-released)
		synctest.Wait()
	})
}
