package interop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// Java's forceUnlock takes the lock from a Go holder, who learns of it at the
// next renewal at the latest; Java's waiter gets in at once.
func TestJavaForcesGo(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.goHolds()
		j := w.javaLock("t1")
		waiter := w.javaWaits(j)
		forced, err := w.javaLock("t2").ForceUnlock(w.ctx)
		if err != nil || !forced {
			t.Fatalf("Java: forceUnlock: %v, %v", forced, err)
		}
		w.inSoon(waiter)
		select {
		case <-h.Context().Done():
		case <-w.ctx.Done():
			t.Fatal("the Go holder was never told")
		}
		if cause := context.Cause(h.Context()); !errors.Is(cause, redlatch.ErrLost) {
			t.Errorf("Go: the cause is %v, want ErrLost", cause)
		}
		if err := h.Release(w.ctx); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("Go: Release: %v, want ErrLost", err)
		}
		w.holds(w.javaOwner("t1"), "1")
		j.unlock()
		w.free()
	})
}

// A Go holder that had to wait for the lock listens to it still, hears the
// message of Java's forceUnlock, and is told then: no renewal would have told
// this one.
func TestJavaForcesAListeningGo(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("t1")
		j.take(long)
		waiter := w.goWaits(redlatch.Lease(long))
		j.unlock()
		w.inSoon(waiter.waiting)
		h := waiter.hold

		if forced, err := j.ForceUnlock(w.ctx); err != nil || !forced {
			t.Fatalf("Java: forceUnlock: %v, %v", forced, err)
		}
		select {
		case <-h.Context().Done():
		case <-time.After(generous):
			t.Fatal("the Go holder was not told")
		}
		if cause := context.Cause(h.Context()); !errors.Is(cause, redlatch.ErrLost) {
			t.Errorf("Go: the cause is %v, want ErrLost", cause)
		}
		j.take(0)
		if err := h.Release(w.ctx); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("Go: Release: %v, want ErrLost", err)
		}
		w.holds(w.javaOwner("t1"), "1")
		j.unlock()
		w.free()
	}, append([]string{peer.Fenced, peer.Write}, plain...)...) // nobody tells a fair lock's holder
}

// Go's ForceRelease takes the lock from a Java holder, whose unlock throws, and
// wakes Java's waiter.
func TestGoForcesJava(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j, next := w.javaLock("t1"), w.javaLock("t2")
		j.take(long)
		waiter := w.javaWaits(next)
		forced, err := admin.ForceRelease(w.ctx, w.goLock())
		if err != nil || !forced {
			t.Fatalf("Go: ForceRelease: %v, %v", forced, err)
		}
		w.inSoon(waiter)
		w.holds(w.javaOwner("t2"), "1")
		j.refusesUnlock()
		w.holds(w.javaOwner("t2"), "1")
		next.unlock()
		w.free()
		if forced, err := admin.ForceRelease(w.ctx, w.goLock()); err != nil || forced {
			t.Errorf("Go: ForceRelease of a free lock: %v, %v, want false", forced, err)
		}
	}, exclusive...)
}
