package redlatch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// A replay must raise the TTL too: it is trusted from its own send time.
func TestTheReplayOfAReentryIsNotTrustedLongerThanItsTTL(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if sets("2", s, args) {
				switch n.Add(1) {
				case 1:
					return driver.Reply{}, errTapUnknown
				case 2:
					_, _ = next()
					time.Sleep(5 * time.Second) // the reply is lost
					return driver.Reply{}, errTapUnknown
				}
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		outer := w.acquire(c.Lock("orders"), bg, redlatch.Lease(10*time.Second))
		inner := w.acquire(c.Lock("orders"), outer.Context(), redlatch.Lease(20*time.Second))
		trust, ttl := time.Until(inner.Expires()), w.server.TTL("orders")
		if trust > ttl {
			t.Errorf("trusted for another %v, but Redis gives the lock away in %v", trust, ttl)
		}
		other := w.client(redlatch.Config{})
		h := w.acquire(other.Lock("orders"), bg)
		if inner.Err() == nil {
			t.Error("two holders")
		}
		_ = inner.Release(bg)
		_ = outer.Release(bg)
		w.release(h)
	})
}

func TestSiblingsDoNotOverlapIfTheOuterIsReleasedWhileOneEnters(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if sets("3", s, args) {
				if n.Add(1) == 1 {
					time.Sleep(50 * time.Millisecond)
				}
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		g := w.acquire(l, bg)
		p := w.acquire(l, g.Context())
		detached := context.WithoutCancel(p.Context())
		type res struct {
			h   *redlatch.Hold
			err error
		}
		xc := later(func() res { h, err := l.Acquire(detached); return res{h, err} })
		time.Sleep(10 * time.Millisecond) // x is being entered
		pr := later(func() error { return p.Release(bg) })
		qc := later(func() res { h, err := l.Acquire(g.Context()); return res{h, err} })
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
			rc := later(func() res { h, err := l.Acquire(g.Context()); return res{h, err} })
			synctest.Wait()
			w.release(x.h)
			synctest.Wait()
			select {
			case r := <-rc:
				if r.h.Err() == nil && q.h.Err() == nil {
					t.Error("r and q, nested in the same hold, are both live")
				}
				w.release(r.h)
				w.release(q.h)
			default:
				w.release(q.h)
				w.release((<-rc).h)
			}
		default:
			w.release(x.h)
			w.release((<-qc).h)
		}
		t.Log(<-pr)
		w.release(g)
	})
}

func TestAnAcquisitionThatMeetsCloseReturnsNoUnwatchedHold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{timeout: 100 * time.Millisecond, hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "lock.take" {
				time.Sleep(50 * time.Millisecond)
			}
			return r, err
		}}
		c := w.tapped(redlatch.Config{}, d)
		var h *redlatch.Hold
		done := later(func() error { var err error; h, err = c.Lock("orders").Acquire(bg); return err })
		time.Sleep(10 * time.Millisecond)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			return // fine
		}
		ctx := h.Context()
		other := w.client(redlatch.Config{})
		h2 := w.acquire(other.Lock("orders"), bg)
		select {
		case <-ctx.Done():
		default:
			t.Error("Acquire returned a hold after Close; somebody else has the lock now and Done is not closed")
		}
		w.release(h2)
	})
}

func TestCloseEndsTheSubscriptionOfAContendedHold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{}
		c := w.tapped(redlatch.Config{}, d)
		other := w.client(redlatch.Config{})
		f := w.acquire(other.Lock("orders"), bg)
		hc := later(func() *redlatch.Hold { return w.acquire(c.Lock("orders"), bg) })
		time.Sleep(time.Second)
		w.release(f)
		h := <-hc
		_ = c.Close()
		_ = h.Release(bg)
		if n := d.subs.Load(); n != 0 {
			t.Errorf("%d subscriptions after Close", n)
		}
	})
}

func TestAHoldThatWasPassedOnIsRenewedAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		inner := w.acquire(l, outer.Context(), redlatch.Lease(10*time.Second))
		hc := later(func() *redlatch.Hold { return w.acquire(l, bg) })
		synctest.Wait()
		w.release(outer)
		w.release(inner)
		h := <-hc
		time.Sleep(2 * time.Minute)
		if err := h.Err(); err != nil {
			t.Errorf("a watchdog hold, server healthy: %v", err)
		}
		_ = h.Release(bg)
	})
}

func TestAWatchdogInsideAShortLeaseRenewsEachThirdOfItsOwn(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" {
				n.Add(1)
				time.Sleep(4 * time.Millisecond)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		outer := w.acquire(l, bg, redlatch.Lease(20*time.Millisecond))
		inner := w.acquire(l, outer.Context())
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

func TestContextsOfOneHoldMayBeAskedForConcurrently(t *testing.T) {
	w := realTime(t)
	c := w.client(redlatch.Config{})
	h := w.acquire(c.Lock("orders"), bg)
	ctx := h.Context()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			_ = h.Context()
		}
	}()
	for range 1000 {
		select {
		case <-ctx.Done():
		default:
		}
	}
	<-done
	w.release(h)
}

func TestTryUnderWithOwnerDoesNotWait(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		f := w.acquire(other.Lock("orders"), bg)
		ctx := redlatch.WithOwner(bg)
		hc := later(func() *redlatch.Hold { return w.acquire(c.Lock("orders"), ctx) })
		synctest.Wait()
		start := time.Now()
		tc := later(func() error {
			h, err := c.Lock("orders").Try(ctx)
			if h != nil {
				w.release(h)
			}
			return err
		})
		time.Sleep(time.Minute)
		select {
		case err := <-tc:
			w.wantErr(err, redlatch.ErrBusy)
		default:
			t.Errorf("Try has waited for %v", time.Since(start))
		}
		w.release(f)
		w.release(<-hc)
	})
}
