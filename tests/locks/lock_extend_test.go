package locks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redsync #144, #158: an extension that failed for a passing reason was said to
// have found the lock taken.
func TestALostReplyToAnExtensionIsNoLoss(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down atomic.Bool
		d := &locktest.Tap{Hook: locktest.Failing(&down, locktest.ErrReplyLost)}
		c := w.Tapped(redlatch.Config{}, d)
		h := w.Acquire(bg, c.Lock("orders", redlatch.Lease(time.Minute)))
		expires := h.Expires()
		down.Store(true)
		err := h.Extend(bg, time.Hour)
		if !errors.Is(err, redlatch.ErrUnavailable) || errors.Is(err, redlatch.ErrLost) || !redlatch.IsRetryable(err) {
			t.Errorf("Extend: %v, want ErrUnavailable", err)
		}
		if h.Err() != nil || !h.Expires().Equal(expires) {
			t.Errorf("%v; trusted until %v, before until %v", h.Err(), h.Expires(), expires)
		}
		down.Store(false)
		if err := h.Extend(bg, time.Hour); err != nil || !h.Expires().After(expires) {
			t.Errorf("Extend: %v; trusted until %v", err, h.Expires())
		}
		w.Release(h)
	})
}

func TestExtendOnlyRaisesAndOnlyLeases(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders", redlatch.Lease(time.Minute)))
		if err := h.Extend(bg, time.Second); err != nil {
			t.Fatal(err)
		}
		if left := w.Server.TTL("orders"); left < 59*time.Second {
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
		w.Release(h)
		w.WantErr(h.Extend(bg, time.Minute), redlatch.ErrNotHeld)

		h = w.Acquire(bg, c.Lock("orders"))
		if err := h.Extend(bg, time.Minute); err == nil || !strings.Contains(err.Error(), "Lease") {
			t.Fatalf("Extend of a watchdog hold: %v", err)
		}
		w.Release(h)

		h = w.Acquire(bg, c.Lock("orders", redlatch.Lease(time.Minute)))
		w.Server.Del("orders")
		w.WantErr(h.Extend(bg, time.Minute), redlatch.ErrLost)
	})
}

// A context that knew the deadline of its hold ended a child's own time-out with
// it: the standard library makes no timer for a child that ends after its parent.
func TestExtendLeavesTheTimeoutsOfChildrenAlone(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		h := w.Acquire(bg, w.Client(redlatch.Config{}).Lock("orders", redlatch.Lease(10*time.Second)))
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
		w.Release(h)
	})
}

// The first attempt of a take comes late, when the hold has been extended.
func TestALateTakeDoesNotCutWhatAnExtensionHasGiven(t *testing.T) {
	for name, of := range locktest.TypesOfLock {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var take string
				var taken []string
				d := &locktest.Tap{}
				d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if strings.HasSuffix(s, ".take") {
						take, taken = s, slices.Clone(args)
					}
					return next()
				}
				h := w.Acquire(bg, locktest.With(of(w.Tapped(redlatch.Config{}, d), "orders"), redlatch.Lease(5*time.Second)))
				if err := h.Extend(bg, time.Hour); err != nil {
					t.Fatal(err)
				}
				d.Again(take, taken)()
				for _, key := range w.Keys() {
					if ttl := w.Server.TTL(key); time.Now().Add(ttl).Before(h.Expires()) {
						t.Errorf("%s lasts for %v, the hold is trusted for %v", key, ttl, time.Until(h.Expires()))
					}
				}
				w.Release(h)
				w.WantNoKeys()
			})
		})
	}
}
