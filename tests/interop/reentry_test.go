package interop

import (
	"errors"
	"maps"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// A nest of Go's holds blocks Java until its last release.
func TestGoReenters(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("t1")
		outer := w.goHolds()
		inner, err := w.goLock().Acquire(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.holds(outer.ID(), "2")
		if j.try(0, 0) {
			t.Fatal("Java got a lock that Go holds twice")
		}
		w.release(inner)
		w.eventually("one hold less", func() bool { return maps.Equal(w.fields(), w.hash(outer.ID(), "1")) })
		if j.try(0, 0) {
			t.Fatal("Java got a lock that Go still holds")
		}
		w.release(outer)
		w.free()
		j.take(0)
		j.unlock()
		w.free()
	}, reentrant...)
}

// A nest of Java's holds blocks Go until its last unlock.
func TestJavaReenters(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j, owner := w.javaLock("t1"), w.javaOwner("t1")
		refused := func(count int) {
			t.Helper()
			if n, err := j.HoldCount(w.ctx); err != nil || n != count {
				t.Errorf("Java: getHoldCount: %d, %v, want %d", n, err, count)
			}
			if _, err := w.goLock().TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("Go: Try: %v, want ErrBusy", err)
			}
			info, err := admin.LockInfo(w.ctx, w.goLock())
			if err != nil || len(info.Holders) != 1 || info.Holders[0].Count != count {
				t.Errorf("Go: Info: %+v, %v, want count %d", info, err, count)
			}
		}
		j.take(0)
		j.take(0)
		w.holds(owner, "2")
		refused(2)
		j.unlock()
		w.holds(owner, "1")
		refused(1)
		j.unlock()
		w.free()
		h := w.goHolds()
		w.release(h)
		w.free()
	}, reentrant...)
}

// Neither side enters a non-reentrant lock twice, and neither loses it by the
// attempt.
func TestNonReentrant(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.goHolds()
		if _, err := w.goLock().Acquire(h.Context()); !errors.Is(err, redlatch.ErrReentry) {
			t.Errorf("Go: re-entry: %v, want ErrReentry", err)
		}
		w.holds(h.ID(), "1")
		w.release(h)

		j, owner := w.javaLock("t1"), w.javaOwner("t1")
		j.take(0)
		var e *peer.Error
		if _, err := j.TryLock(w.ctx, 0, 0); !errors.As(err, &e) || e.Name != "IllegalMonitorStateException" {
			t.Errorf("Java: re-entry: %v, want an IllegalMonitorStateException", err)
		}
		w.holds(owner, "1")
		if _, err := w.goLock().TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Go: Try: %v, want ErrBusy", err)
		}
		j.unlock()
		w.free()
	}, peer.NonReentrant)
}
