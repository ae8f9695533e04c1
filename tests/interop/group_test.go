package interop

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

func (w *world) goGroup(values ...string) *redlatch.Lock {
	return redisson.GroupLock(w.goClient(), w.name, values)
}

func (w *world) javaGroup(thread string, values ...string) javaLock {
	w.t.Helper()
	return javaLock{w.javaClient().Thread(thread).Group(w.name, values...), w}
}

// goTakesGroup acquires values in Go, which must be possible at once.
func (w *world) goTakesGroup(values ...string) *redlatch.Hold {
	w.t.Helper()
	h, err := w.goGroup(values...).TryAcquire(w.ctx, generous)
	if err != nil {
		w.t.Fatalf("Go: acquire %q: %v", values, err)
	}
	return h
}

// What Go holds Java does not get, nor the other way round; values that nobody
// holds are free for both.
func TestGroupsExcludeEachOther(t *testing.T) {
	eachPair(t, peer.Group, func(t *testing.T, w *world) {
		h := w.goTakesGroup("a", "ü")
		if w.javaGroup("t1", "ü", "b").try(0, 0) {
			t.Error("Java: took a value that Go holds")
		}
		j := w.javaGroup("t1", "b", "c")
		j.take(0)
		if _, err := w.goGroup("c", "d").TryAcquire(w.ctx, 0); err == nil {
			t.Error("Go: took a value that Java holds")
		}
		info, err := admin.LockInfo(w.ctx, w.goGroup("a", "b"))
		if err != nil || len(info.Holders) != 2 || !info.Holders[0].Redlatch || info.Holders[1].Redlatch || info.Holders[1].Owner != w.javaOwner("t1") {
			t.Errorf("%+v, %v", info, err)
		}
		j.unlock()
		if err := h.Err(); err != nil {
			t.Errorf("Java's unlock of other values: %v", err)
		}
		w.release(h)
		w.free()
	})
}

// A release wakes who waits in the other language.
func TestGroupReleaseWakesTheOther(t *testing.T) { eachPair(t, peer.Group, groupReleaseWakesTheOther) }

func groupReleaseWakesTheOther(_ *testing.T, w *world) {
	h := w.goTakesGroup("a", "b")
	waits := w.javaWaits(w.javaGroup("t1", "b", "c"))
	w.release(h)
	w.inSoon(waits)
	g := &goWaiting{}
	lock := w.goGroup("c", "d")
	g.waiting = w.start("Go: acquire", func() (err error) {
		g.hold, err = lock.Acquire(w.ctx)
		return err
	})
	w.asleep(1)
	g.open()
	w.javaGroup("t1", "b", "c").unlock()
	w.inSoon(g.waiting)
	w.release(g.hold)
	w.free()
}

// Each side's watchdog keeps its own values, beside the other's, for longer than
// any lease; nobody cuts the hash's TTL.
func TestGroupWatchdogsSideBySide(t *testing.T) {
	eachPair(t, peer.Group, func(t *testing.T, w *world) {
		h := w.goTakesGroup("a")
		w.javaWatched(ownWatchdog) // less than Go's: it must not cut that
		j := w.javaGroup("t1", "b")
		j.take(0)
		for end := time.Now().Add(goWatchdog + 3*time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			if err := h.Err(); err != nil {
				t.Fatalf("Go: %v", err)
			}
			if ttl := w.ttl(); ttl <= ownWatchdog {
				t.Fatalf("TTL %v", ttl)
			}
			if _, err := w.goGroup("b").TryAcquire(w.ctx, 0); err == nil {
				t.Fatal("Go: took what Java's watchdog keeps")
			}
			if w.javaGroup("t2", "a").try(0, 0) {
				t.Fatal("Java: took what Go's watchdog keeps")
			}
		}
		w.release(h)
		j.unlock()
		w.free()
	})
}

// Java's forced unlock of a value is a loss for Go, of the whole hold; Go's is
// one for Java.
func TestGroupForce(t *testing.T) {
	eachPair(t, peer.Group, func(t *testing.T, w *world) {
		h := w.goTakesGroup("a", "b")
		if _, err := w.javaGroup("t1", "a").ForceUnlock(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.javaGroup("t2", "a").take(0)
		w.eventually("a loss", func() bool { return h.Err() != nil })
		w.eventually("b is free", func() bool { // whatever is left of the hold is released
			return !slices.ContainsFunc(slices.Collect(maps.Keys(w.fields())), func(f string) bool { return strings.Contains(f, h.ID()) })
		})
		if done, err := admin.ForceRelease(w.ctx, w.goGroup("a")); !done || err != nil {
			t.Error(done, err)
		}
		w.javaGroup("t2", "a").refusesUnlock()
		w.free()
	})
}

// A re-entry of each side shows in the other's count; the last release frees.
func TestGroupReentry(t *testing.T) {
	eachPair(t, peer.Group, func(t *testing.T, w *world) {
		h := w.goTakesGroup("a", "b")
		inner, err := w.goGroup("a", "b").Acquire(h.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.release(h)
		if w.javaGroup("t1", "a").try(0, 0) {
			t.Error("Java: took what an inner hold keeps")
		}
		w.release(inner)
		j := w.javaGroup("t1", "a", "b")
		j.take(0)
		j.take(0)
		j.unlock()
		if _, err := w.goGroup("a").TryAcquire(w.ctx, 0); err == nil {
			t.Error("Go: took what Java has entered twice")
		}
		j.unlock()
		w.free()
	})
}
