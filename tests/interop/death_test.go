package interop

import (
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// inAfterLease checks that a waiter gets in when the lease in Redis has ended,
// or as early before that as is given, and not much later.
func (w *world) inAfterLease(c *waiting, early time.Duration) {
	w.t.Helper()
	asked := time.Now()
	ttl := w.ttl()
	if ttl <= 0 {
		w.t.Fatalf("%s: there is no lease to wait for: PTTL %v", c.what, ttl)
	}
	end := time.Now().Add(ttl)
	in := c.returns()
	if in.Before(asked.Add(ttl - early)) {
		w.t.Errorf("%s: in after %v, while the lease had %v left", c.what, in.Sub(asked), ttl)
	}
	if late := in.Sub(end); late > generous {
		w.t.Errorf("%s: in %v after the end of the lease", c.what, late)
	}
}

func TestJavaDiesGoGetsIn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.ownJava()
		w.javaLock("t1").take(0)
		waiter := w.goWaits()
		p.Kill()
		w.inAfterLease(waiter.waiting, 0)
		w.holds(waiter.hold.ID(), "1")
		w.release(waiter.hold)
		w.free()
	}, append([]string{peer.Fenced, peer.Spin}, plain...)...) // others have stories of their own
}

func TestGoDiesJavaGetsIn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("t1")
		h := w.goProcessHolds()
		waiter := w.javaWaits(j)
		h.kill()
		w.inAfterLease(waiter, 0)
		w.holds(w.javaOwner("t1"), "1")
		j.unlock()
		w.free()
	}, append([]string{peer.Fenced, peer.Spin}, plain...)...)
}

// A stopped Java process loses the lock, and learns of it when it unlocks.
func TestJavaStopsGoGetsIn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.ownJava()
		j := w.javaLock("t1")
		j.take(0)
		waiter := w.goWaits()
		if err := p.Pause(); err != nil {
			t.Fatal(err)
		}
		w.inAfterLease(waiter.waiting, 0)
		if err := p.Resume(); err != nil {
			t.Fatal(err)
		}
		j.refusesUnlock()
		w.holds(waiter.hold.ID(), "1")
		w.release(waiter.hold)
		w.free()
	})
}

// A stopped Go process loses the lock, and is told when it goes on.
func TestGoStopsJavaGetsIn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("t1")
		h := w.goProcessHolds()
		waiter := w.javaWaits(j)
		h.signal(t, syscall.SIGSTOP)
		w.inAfterLease(waiter, 0)
		h.signal(t, syscall.SIGCONT)
		if line := w.said(h); line != "lost" {
			t.Errorf("the Go process went on and said %q, want %q", line, "lost")
		}
		w.holds(w.javaOwner("t1"), "1")
		j.unlock()
		w.free()
	})
}

// A waiter that dies takes nothing with it and blocks nobody, unless there is a
// queue.
func TestDeadWaiters(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.ownJava()
		h := w.goHolds(redlatch.Lease(long))
		waiting := w.javaLock("t1")
		w.start("Java: lock", func() error { return waiting.Lock.Lock(w.ctx, 0) })
		g := w.goProcess(storyLimit)
		w.asleep(2)
		p.Kill()
		g.kill()
		w.holds(h.ID(), "1")
		w.release(h)
		w.free()
		w.java = nil // the dead one
		next := w.javaLock("t2")
		next.take(0)
		next.unlock()
		h = w.goHolds()
		w.release(h)
		w.free()
	}, peer.Plain, peer.Fenced, peer.Write)
}
