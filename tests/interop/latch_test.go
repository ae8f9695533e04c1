package interop

import (
	"strconv"
	"testing"
	"time"

	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

func (w *world) goLatch() *latch.Latch { return latch.New(w.goClient(), w.name) }

// left checks what each side says of the latch's count.
func (w *world) left(want int) {
	w.t.Helper()
	w.counts(want, map[string]func() (int, error){
		"Go":   func() (int, error) { return w.goLatch().Count(w.ctx) },
		"Java": w.javaSync("t1").count("count"),
	})
}

// bothWait lets two of each side wait at the latch.
func (w *world) bothWait() []*waiting {
	w.t.Helper()
	l := w.goLatch()
	all := []*waiting{
		w.javaSync("waiter 1").waits(0, "await"),
		w.javaSync("waiter 2").waits(0, "await"),
	}
	for range 2 {
		all = append(all, w.sleeps(1, "Go: Wait", func() error { return l.Wait(w.ctx) }))
	}
	return all
}

// goOn checks that they all go on by the message.
func (w *world) goOn(all []*waiting) {
	w.t.Helper()
	w.inSoon(all...)
}

// Whoever counts down and whoever comes to 0: both sides go on, and can use the
// latch again.
func TestLatchOfBoth(t *testing.T) { eachOf(t, peer.Latch, latchOfBoth) }

func latchOfBoth(t *testing.T, w *world) {
	l, j := w.goLatch(), w.javaSync("t1")
	w.must(l.Wait(w.ctx)) // it was never set
	j.do("await")
	w.must(l.CountDown(w.ctx))
	j.do("countDown")
	w.free()
	for _, set := range []func(){
		func() { w.yes(l.TrySetCount(w.ctx, 3)) },
		func() { j.answers(true, "trySetCount", 3) },
	} {
		for _, last := range []func(){
			func() { w.must(l.CountDown(w.ctx)) },
			func() { j.do("countDown") },
		} {
			set()
			w.no(l.TrySetCount(w.ctx, 9))
			j.answers(false, "trySetCount", 9)
			all := w.bothWait()
			w.must(l.CountDown(w.ctx))
			w.left(2)
			j.do("countDown")
			w.left(1)
			w.asleep(2)
			for _, c := range all {
				c.open()
			}
			last()
			w.goOn(all)
			w.left(0)
			w.free()
		}
	}
	// Java may leave a key that says 0.
	j.answers(true, "trySetCount", 0)
	w.must(l.Wait(w.ctx))
	w.yes(l.TrySetCount(w.ctx, 1))
	w.left(1)
	w.must(l.CountDown(w.ctx))
	w.free()
}

// Go's delete wakes all. Java's wakes nobody: Go sees it with its next look, and
// Java when its time is over.
func TestLatchIsDeleted(t *testing.T) {
	eachOf(t, peer.Latch, func(t *testing.T, w *world) {
		l, j := w.goLatch(), w.javaSync("t1")
		j.answers(true, "trySetCount", 2)
		all := w.bothWait()
		w.yes(l.Delete(w.ctx))
		w.goOn(all)
		w.left(0)
		w.no(l.Delete(w.ctx))

		w.yes(l.TrySetCount(w.ctx, 2))
		waiter := w.sleeps(0, "Go: Wait", func() error { return l.Wait(w.ctx) })
		impatient := w.start("Java: await", func() error {
			_, err := w.javaSync("waiter 1").try("await", peer.Call{Wait: short})
			return err
		})
		w.asleep(2)
		w.deletes(j)
		from := time.Now()
		waiter.returns()
		if took := time.Since(from); took > generous {
			t.Errorf("Go saw the delete after %v", took)
		}
		impatient.returns()
	})
}

// Many count down at the same time, and each counts once.
func TestLatchCountsEach(t *testing.T) {
	eachOf(t, peer.Latch, func(t *testing.T, w *world) {
		const rounds, each = 3, 12
		m := newMonitor(w, "", nil)
		for round := range rounds {
			w.yes(w.goLatch().TrySetCount(w.ctx, 2*each))
			all := w.bothWait()
			m.seen()
			var down []*waiting
			for i := range each {
				j := w.javaSync("t" + strconv.Itoa(i%4))
				down = append(down,
					w.start("Go: CountDown", func() error { return w.goLatch().CountDown(w.ctx) }),
					w.start("Java: countDown", func() error { _, err := j.try("countDown", peer.Call{}); return err }))
			}
			for _, c := range down {
				c.returns()
			}
			w.goOn(all)
			if told := m.published(); len(told) != 1 {
				t.Errorf("in round %d Redis was told %q, want one message", round, told)
			}
			w.free()
		}
	})
}
