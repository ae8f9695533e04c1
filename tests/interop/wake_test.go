package interop

import (
	"testing"

	"github.com/redlatch/redlatch"
)

// Java's waiter is woken by Go's release, not by the end of the lease.
func TestGoReleaseWakesJava(t *testing.T) { each(t, goReleaseWakesJava, listening...) }

func goReleaseWakesJava(_ *testing.T, w *world) {
	h := w.goHolds(redlatch.Lease(long))
	j := w.javaLock("t1")
	waiter := w.javaWaits(j)
	w.release(h)
	w.inSoon(waiter)
	w.holds(w.javaOwner("t1"), "1")
	j.unlock()
	w.free()
}

// Go's waiter is woken by Java's unlock.
func TestJavaUnlockWakesGo(t *testing.T) { each(t, javaUnlockWakesGo, listening...) }

func javaUnlockWakesGo(_ *testing.T, w *world) {
	j := w.javaLock("t1")
	j.take(long)
	waiter := w.goWaits()
	j.unlock()
	w.inSoon(waiter.waiting)
	w.holds(waiter.hold.ID(), "1")
	w.release(waiter.hold)
	w.free()
}

// The message that ends a nest of holds wakes, those before it do not.
func TestOnlyTheLastReleaseWakes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		outer := w.goHolds(redlatch.Lease(long))
		inner, err := w.goLock().Acquire(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		j := w.javaLock("t1")
		waiter := w.javaWaits(j)
		w.release(inner)
		w.asleep(1)
		waiter.open()
		w.release(outer)
		w.inSoon(waiter)

		j.take(long)
		goWaiter := w.goWaits()
		j.unlock()
		w.asleep(1)
		goWaiter.open()
		j.unlock()
		w.inSoon(goWaiter.waiting)
		w.release(goWaiter.hold)
		w.free()
	}, reentrantL...)
}
