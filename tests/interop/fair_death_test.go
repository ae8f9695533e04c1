package interop

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// silent is for how long a process of redlatch that says nothing keeps its places
// in the queue.
const silent = 6 * time.Second

// The lock of a dead holder passes to the head of the queue when its lease has
// ended, and from there on.
func TestFairJavaHolderDies(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.ownJava()
		w.javaLock("t1").take(0)
		w.java = nil // the shared one, from here on
		l := w.line()
		first := l.golang("g1", 1)
		second := l.java("t2", 2)
		p.Kill()
		w.inAfterLease(first, 0)
		w.inSoon(second)
		l.came("g1", "t2")
		w.free()
	}, peer.Fair)
}

func TestFairGoHolderDies(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.javaClient()
		h := w.goProcessHolds()
		l := w.line()
		first := l.java("t1", 1)
		second := l.golang("g1", 2)
		h.kill()
		w.inAfterLease(first, 0)
		w.inSoon(second)
		l.came("t1", "g1")
		w.free()
	}, peer.Fair)
}

// deadJavaWaiter lets a Java process die as the first of the queue, and returns
// when its time is over: some seconds after the lock's lease. The lock is free
// from here on.
func (w *world) deadJavaWaiter(m *monitor, behind func()) time.Time {
	w.t.Helper()
	p := w.ownJava()
	dead := w.javaLock("dead")
	owner := w.javaOwner("dead")
	began := time.Now()
	h := w.goHolds(redlatch.Lease(2 * short))
	w.start("Java: tryLock", func() error {
		_, err := dead.TryLock(w.ctx, short, long)
		return err
	})
	w.queued(1)
	over := w.score(owner)
	if over.Before(began.Add(short)) || time.Until(over) > 3*short {
		w.t.Errorf("Java's time is over in %v, but it waits for %v when the lease is over", time.Until(over), short)
	}
	p.Kill()
	w.java = nil
	behind()
	m.seen()
	w.release(h)
	if told, want := m.published(), wire.FairChannel(w.name, owner)+" 0"; len(told) == 0 || told[0] != want {
		w.t.Errorf("Go's release told %q, want %q", told, want)
	}
	return over
}

// A Java waiter that dies in the queue holds those behind it up until its time
// is over, and no longer: Go looks again by itself.
func TestFairJavaWaiterDies(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.line()
		var first, second *waiting
		over := w.deadJavaWaiter(newMonitor(w, "", nil), func() {
			first, second = l.golang("g1", 2), l.java("t1", 3)
		})
		first.returns()
		if late := time.Since(over); late < 0 || late > generous {
			t.Errorf("Go got in %v after the time of the dead one", late)
		}
		second.returns()
		l.came("g1", "t1")
		w.free()
	}, peer.Fair)
}

// If only Java waits behind it, Redisson's own sweep does as much.
func TestFairJavaSweepsItsDead(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.line()
		var first *waiting
		over := w.deadJavaWaiter(newMonitor(w, "", nil), func() { first = l.java("t1", 2) })
		first.returns()
		if late := time.Since(over); late < 0 || late > generous {
			t.Errorf("Java got in %v after the time of the dead one", late)
		}
		w.free()
	}, peer.Fair)
}

// A Go waiter that dies in the queue holds nobody up for longer than a few
// seconds, as long as a redlatch client looks at the queue.
func TestFairGoWaiterDies(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("holder")
		j.take(0)
		dead := w.goProcess(storyLimit)
		w.queued(1)
		dead.kill()
		l := w.line()
		first := l.java("t1", 2)
		second := l.golang("g1", 3)
		j.unlock()
		asked := time.Now()
		in := first.returns()
		if took := in.Sub(asked); took > generous { // much less than the time of the dead one
			t.Errorf("Java got in only after %v", took)
		}
		second.returns()
		l.came("t1", "g1")
		w.free()
	}, peer.Fair)
}

// Redisson does not know that a Go waiter is dead. If nobody else looks, those
// behind it wait until its time is over; one Try of Go is enough.
func TestFairOneGoTrySweepsItsDead(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("holder")
		j.take(0)
		dead := w.goProcess(storyLimit)
		owner := w.queued(1)
		dead.kill()
		died := time.Now()
		l := w.line()
		first := l.java("t1", 2)
		j.unlock()
		w.eventually("silence", func() bool { return time.Since(died) > silent+silent/10 })
		if q := w.queue(); len(q) != 2 || q[0] != owner {
			t.Errorf("the queue is %q, want %s and Java", q, owner)
		}
		first.open()
		if _, err := w.goLock().TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Go: Try: %v, want ErrBusy: it is Java's turn", err)
		}
		w.inSoon(first)
		w.free()
	}, peer.Fair)
}

// A Go waiter that is stopped is passed over, and lines up again when it goes on.
func TestFairGoWaiterStops(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("holder")
		j.take(0)
		stopped := w.goProcess(storyLimit)
		owner := w.queued(1)
		stopped.signal(t, syscall.SIGSTOP)
		l := w.line()
		l.next = make(chan struct{})
		first := l.golang("g1", 2)
		second := l.java("t1", 3)
		j.unlock()
		l.entered(1)
		stopped.signal(t, syscall.SIGCONT)
		if last := w.queued(2); last != owner {
			t.Errorf("the last in the queue is %s, want %s again", last, owner)
		}
		l.next <- struct{}{}
		first.returns()
		l.next <- struct{}{}
		second.returns()
		l.came("g1", "t1")
		if said := w.said(stopped); said != "held "+owner {
			t.Errorf("the process that goes on says %q, want %q", said, "held "+owner)
		}
		w.holds(owner, "1")
	}, peer.Fair)
}
