package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
)

// stays checks that owner keeps the lock, without a break, for d.
func (w *world) stays(owner string, d time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		w.holds(owner, "1")
		if w.t.Failed() {
			return
		}
		select {
		case <-w.ctx.Done():
			w.t.Fatal("the story takes too long")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestGoWatchdogKeepsTheLockFromJava(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.goHolds()
		j := w.javaLock("t1")
		waiter := w.javaWaits(j)
		w.stays(h.ID(), goWatchdog+goWatchdog/2)
		waiter.open()
		if err := h.Err(); err != nil {
			t.Errorf("Go: the hold is over: %v", err)
		}
		w.release(h)
		w.inSoon(waiter)
		j.unlock()
		w.free()
	})
}

func TestJavaWatchdogKeepsTheLockFromGo(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.javaWatched(ownWatchdog)
		j := w.javaLock("t1")
		j.take(0)
		w.javaKeepsTheLock(j)
	})
}

// javaKeepsTheLock has Go wait until Java, whose watchdog renews the lock, unlocks
// it.
func (w *world) javaKeepsTheLock(j javaLock) {
	waiter := w.goWaits()
	w.stays(w.javaOwner("t1"), ownWatchdog+ownWatchdog/2)
	waiter.open()
	j.unlock()
	waiter.returns()
	w.release(waiter.hold)
	w.free()
}

// An explicit lease of Go is not renewed, and Go is told that it is over before
// Java gets the lock.
func TestGoLeaseEndsJavaGetsIn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("t1")
		h := w.goHolds(redlatch.Lease(short))
		waiter := w.javaWaits(j)
		w.stays(h.ID(), short/4)
		waiter.open()
		// Go releases what it no longer trusts: 10 ms + lease/50 before the end, and
		// the end is counted from when it sent its request.
		w.inAfterLease(waiter, short/3)
		if err := h.Err(); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("Go: Err after the lease: %v, want ErrLost", err)
		}
		<-h.Context().Done()
		if err := h.Release(w.ctx); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("Go: Release after the lease: %v, want ErrLost", err)
		}
		w.holds(w.javaOwner("t1"), "1") // the late release found nothing of its own
		j.unlock()
		w.free()
	})
}

// An explicit lease of Java is not renewed, although its process lives.
func TestJavaLeaseEndsGoGetsIn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("t1")
		j.take(short)
		waiter := w.goWaits()
		w.inAfterLease(waiter.waiting, 0)
		j.refusesUnlock()
		w.holds(waiter.hold.ID(), "1")
		w.release(waiter.hold)
		w.free()
	})
}
