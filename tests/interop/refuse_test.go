package interop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// What Go holds, Java does not get, and can neither unlock.
func TestGoHoldsJavaIsRefused(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("t1")
		h := w.goHolds()
		w.holds(h.ID(), "1")
		if j.try(0, 0) {
			t.Fatal("Java got a lock that Go holds")
		}
		j.refusesUnlock()
		w.holds(h.ID(), "1")
		if locked, err := j.IsLocked(w.ctx); err != nil || !locked {
			t.Errorf("Java: isLocked: %v, %v", locked, err)
		}
		if held, err := j.IsHeld(w.ctx); err != nil || held {
			t.Errorf("Java: isHeldByCurrentThread: %v, %v", held, err)
		}
		if ttl, err := j.RemainTTL(w.ctx); err != nil || ttl <= 0 || ttl > goWatchdog {
			t.Errorf("Java: remainTimeToLive: %v, %v, want within %v", ttl, err, goWatchdog)
		}
		w.release(h)
		w.free()
		j.take(0)
		w.holds(w.javaOwner("t1"), "1")
		j.unlock()
		w.free()
	}, exclusive...)
}

// What Java holds, Go does not get, and is told who has it.
func TestJavaHoldsGoIsRefused(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("t1")
		j.take(0)
		owner := w.javaOwner("t1")
		w.holds(owner, "1")

		_, err := w.goLock().TryAcquire(w.ctx, 0)
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) {
			t.Fatalf("Go: Try of a lock that Java holds: %v, want a BusyError", err)
		}
		if busy.Owner != owner || busy.TTL <= 0 || busy.TTL > javaWatchdog {
			t.Errorf("Go: busy: owner %q for %v, want %q for at most %v", busy.Owner, busy.TTL, owner, javaWatchdog)
		}
		w.holds(owner, "1")

		j.unlock()
		w.free()
		h := w.goHolds()
		w.holds(h.ID(), "1")
		w.release(h)
		w.free()
	}, exclusive...)
}

// Go sees by the client id who of the two holds a lock.
func TestInfoTellsJavaFromGo(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		lock := w.goLock()
		holder := func(lease time.Duration) admin.Holder {
			t.Helper()
			info, err := admin.LockInfo(w.ctx, lock)
			if err != nil || len(info.Holders) != 1 {
				t.Fatalf("Go: Info: %+v, %v, want one holder", info, err)
			}
			h := info.Holders[0]
			if info.TTL <= 0 || info.TTL > lease || h.TTL != info.TTL {
				t.Errorf("Go: Info: TTL %v, of the holder %v, want at most %v of both", info.TTL, h.TTL, lease)
			}
			h.TTL = 0
			return h
		}

		j := w.javaLock("t1")
		j.take(0)
		want := admin.Holder{Owner: w.javaOwner("t1"), Client: w.javaClient().UUID, Count: 1}
		if got := holder(javaWatchdog); got != want {
			t.Errorf("Go: Info of Java's hold: %+v, want %+v", got, want)
		}
		j.unlock()

		h := w.goHolds()
		want = admin.Holder{Owner: h.ID(), Client: w.goClient().ID(), Count: 1, Redlatch: true, Renewed: true}
		got := holder(goWatchdog)
		if got.By == "" || got.Since.IsZero() {
			t.Errorf("Go: Info does not say who it is, or since when: %+v", got)
		}
		got.By, got.Since = "", time.Time{}
		if got != want {
			t.Errorf("Go: Info of Go's hold: %+v, want %+v", got, want)
		}
		w.release(h)
		if info, err := admin.LockInfo(w.ctx, lock); err != nil || len(info.Holders) != 0 {
			t.Errorf("Go: Info of a free lock: %+v, %v", info, err)
		}
	})
}

// A wait has its time and no more.
func TestWaitTime(t *testing.T) {
	const wait = 2 * time.Second // a busy server has to answer in it
	each(t, func(t *testing.T, w *world) {
		timed := func(f func()) {
			t.Helper()
			from := time.Now()
			f()
			// A busy machine is late; a wait for the TTL would be later.
			if took := time.Since(from); took < wait-5*time.Millisecond || took > wait+generous {
				t.Errorf("the wait of %v took %v", wait, took)
			}
		}

		j := w.javaLock("t1")
		h := w.goHolds(redlatch.Lease(long))
		timed(func() {
			if j.try(wait, 0) {
				t.Error("Java got a lock that Go holds")
			}
		})
		w.holds(h.ID(), "1")
		w.release(h)

		j.take(long)
		owner := w.javaOwner("t1")
		timed(func() {
			if _, err := w.goLock().TryAcquire(w.ctx, wait); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("Go: Acquire with Wait: %v, want ErrBusy", err)
			}
		})
		timed(func() {
			ctx, cancel := context.WithTimeout(w.ctx, wait)
			defer cancel()
			_, err := w.goLock().Acquire(ctx)
			if !errors.Is(err, redlatch.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Go: Acquire with a deadline: %v, want ErrBusy and DeadlineExceeded", err)
			}
		})
		w.holds(owner, "1")
		j.unlock()
		w.free()
	}, exclusive...)
}
