package interop

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// A fleet shares a cluster: an old Redisson, which tells by classic Pub/Sub, a new
// one, by sharded, and one redlatch, by both.
type fleet struct{ older, newer *world }

// fleets tells the stories of all three. What redlatch and one of them do to each
// other is as without the third.
func fleets(t *testing.T, s stage) {
	t.Helper()
	s.goes = redlatch.PubSubBoth
	older := s.troupe(t, peer.Oldest, "goredis")
	s.sharded = true
	newer := s.troupe(t, peer.Newest, "goredis")
	older.gone = newer.gone
	newer.tell(t, wakes[:3]...)
	for _, story := range []struct {
		name, kind string
		tell       func(t *testing.T, f fleet)
	}{
		{"a lock", peer.Plain, goWakesTheDeaf},
		{"a queue", peer.Fair, queueOfTheFleet},
		{"readers", peer.Write, writerAmongTheFleet},
		{"a semaphore", peer.Semaphore, semaphoreOfTheFleet},
		{"a latch", peer.Latch, latchOfTheFleet},
	} {
		t.Run(story.name, func(t *testing.T) {
			tell(t, func(t *testing.T) *world { return older.world(t, story.kind) }, func(t *testing.T, w *world) {
				story.tell(t, fleet{w, newer.world(t, story.kind)})
			})
		})
	}
}

// bothSleep waits until one of each Redisson does.
func (f fleet) bothSleep(all ...*waiting) {
	f.older.t.Helper()
	f.older.asleep(1)
	f.newer.asleep(1)
	for _, c := range all {
		c.open()
	}
}

// inSoon is that of the world.
func (f fleet) inSoon(all ...*waiting) {
	f.older.t.Helper()
	f.older.inSoon(all...)
}

// Go's release wakes both; whoever of them gets the lock does not wake the other,
// until Go comes by.
func goWakesTheDeaf(t *testing.T, f fleet) {
	w := f.older
	h := w.goHolds(redlatch.Lease(long))
	locks := []javaLock{f.older.javaLock("t1"), f.newer.javaLock("t1")}
	var waiting [2]*waiting
	for i, j := range locks {
		waiting[i] = w.start("Java: lock", func() error { return j.Lock.Lock(w.ctx, long) })
	}
	f.bothSleep(waiting[:]...)
	w.release(h)
	first := 0
	select {
	case <-waiting[0].done:
	case <-waiting[1].done:
		first = 1
	case <-time.After(generous):
		t.Fatal("nobody was woken")
	}
	second := 1 - first
	waiting[first].returns()
	w.atRest(100 * time.Millisecond) // the other one has seen that, and sleeps again
	waiting[second].open()
	locks[first].unlock()
	w.atRest(100 * time.Millisecond)
	waiting[second].open()
	w.release(w.goHolds())
	f.inSoon(waiting[second])
	g := w.goWaits()
	for _, sharded := range []bool{false, true} {
		w.eventually("Go listens both ways", func() bool {
			return w.subscribers(sharded, channelOf(w.kind, w.name, "")) == 1
		})
	}
	locks[second].unlock()
	f.inSoon(g.waiting)
	w.release(g.hold)
	w.free()
}

// A queue in which each Redisson is behind and before a goroutine goes on by
// messages alone.
func queueOfTheFleet(_ *testing.T, f fleet) {
	older, newer := f.older.line(), f.newer.line()
	h := f.older.goHolds(redlatch.Lease(long))
	f.inSoonAfter(func() { f.older.release(h) },
		older.java("t1", 1), older.golang("g1", 2), newer.java("t2", 3), newer.golang("g2", 4), older.java("t3", 5))
	f.older.free()
}

// inSoonAfter is inSoon, from the time of what f does.
func (f fleet) inSoonAfter(do func(), all ...*waiting) {
	f.older.t.Helper()
	f.bothSleep(all...)
	do()
	f.inSoon(all...)
}

// Readers of both go on when a writer of Go leaves, and Go writes when the last of
// them does, whichever it is.
func writerAmongTheFleet(_ *testing.T, f fleet) {
	w := f.older
	for _, last := range []*world{f.older, f.newer} {
		writer := w.goTakes(peer.Write, redlatch.Lease(long))
		older, newer := f.older.javaSide("t1", peer.Read), f.newer.javaSide("t1", peer.Read)
		read := func(j javaLock) *waiting {
			return w.start("Java: lock to read", func() error { return j.Lock.Lock(w.ctx, long) })
		}
		f.inSoonAfter(func() { w.release(writer) }, read(older), read(newer))
		g := w.goWaits()
		if last == f.older {
			older, newer = newer, older
		}
		older.unlock()
		g.open()
		newer.unlock()
		f.inSoon(g.waiting)
		w.release(g.hold)
	}
	w.nothing()
}

func semaphoreOfTheFleet(_ *testing.T, f fleet) {
	w := f.older
	s, older, newer := w.goSemaphore(), f.older.javaSync("t1"), f.newer.javaSync("t1")
	w.yes(s.TrySetPermits(w.ctx, 0))
	f.inSoonAfter(func() { w.must(s.Release(w.ctx, 2)) }, older.waits(0, "acquire", 1), newer.waits(0, "acquire", 1))
	for _, j := range []javaSync{older, newer} {
		c := w.sleeps(0, "Go: acquire", func() error { return s.Acquire(w.ctx, 1) })
		j.do("release", 1)
		f.inSoon(c)
	}
	w.deletes(older)
}

// Go's count-down lets all go on; each Redisson's does so for Go.
func latchOfTheFleet(_ *testing.T, f fleet) {
	w := f.older
	l, older, newer := w.goLatch(), f.older.javaSync("t1"), f.newer.javaSync("t1")
	w.yes(l.TrySetCount(w.ctx, 3))
	older.do("countDown")
	newer.do("countDown")
	f.inSoonAfter(func() { w.must(l.CountDown(w.ctx)) }, older.waits(0, "await"), newer.waits(0, "await"),
		w.sleeps(1, "Go: Wait", func() error { return l.Wait(w.ctx) }))
	for _, j := range []javaSync{older, newer} {
		w.yes(l.TrySetCount(w.ctx, 1))
		c := w.sleeps(0, "Go: Wait", func() error { return l.Wait(w.ctx) })
		j.do("countDown")
		f.inSoon(c)
	}
	w.free()
}
