package redlatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// Redisson sets the lease of all members at the end without looking whose they
// are.
func TestTheLeaseOfAMultiLockIsNotGivenToSomebodyElsesHold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		// Fenced, so that they are taken one by one.
		m := redlatch.MultiLock(c.FencedLock("a"), c.FencedLock("b"))
		busy := w.acquire(other.Lock("b"), bg)
		time.AfterFunc(400*time.Millisecond, func() { w.release(busy) })
		got := later(func() *redlatch.MultiHold { return w.acquireMulti(m, bg, redlatch.Lease(time.Second)) })
		time.Sleep(300 * time.Millisecond)
		if !w.server.Exists("a") {
			t.Fatal("a is not held")
		}
		w.server.Del("a")
		thief := w.acquire(other.Lock("a"), bg, redlatch.Lease(300*time.Millisecond))
		time.Sleep(150 * time.Millisecond) // b is there, and the lease of a would be raised
		if ttl := w.server.TTL("a"); w.count(thief) != "1" || ttl > 150*time.Millisecond {
			t.Errorf("somebody else's hold lasts for %v now", ttl)
		}
		w.release(thief)
		h := <-got // it began again
		for _, h := range h.Holds() {
			if w.count(h) != "1" {
				t.Errorf("%s is not held", h.Name())
			}
		}
		w.releaseMulti(h)
		time.Sleep(time.Minute)
		w.wantLocksGone()
	})
}

// redsync #186: a majority that was slow to answer is trusted from when it was
// asked, not from when it answered.
func TestTheValidityOfARedLockCountsFromTheFirstSend(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		slow := func(_ string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			defer time.Sleep(time.Second)
			return next()
		}
		m := p.tappedRed("a", map[int]func(string, []string, func() (redlatch.Reply, error)) (redlatch.Reply, error){0: slow, 1: slow, 2: slow})
		start := time.Now()
		h := p.acquireMulti(m, bg, redlatch.Lease(30*time.Second))
		if d := time.Since(start); d != time.Second {
			t.Fatalf("acquired after %v", d)
		}
		const margin = 10*time.Millisecond + 30*time.Second/50
		if end := h.Expires(); end.After(start.Add(30*time.Second - margin)) {
			t.Errorf("trusted until %v after the first request", end.Sub(start))
		}
		<-h.Context().Done()
		if d := time.Since(start); d > 30*time.Second-margin {
			t.Errorf("ended %v after the first request", d)
		}
		synctest.Wait()
		p.wantErr(h.Release(bg), redlatch.ErrLost)
		p.wantNothing()
	})
}

// A force release that frees nothing, here because it is executed twice, tells
// nobody: Redisson's of a group always does.
func TestAForceReleaseOfAGroupTellsOnlyWhatItFreed(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if s == "grouplock.force" {
				_, _ = next()
			}
			return next()
		}})
		sub := w.server.NewSubscriber()
		defer sub.Close()
		sub.Subscribe("redisson_lock__channel:{g}")
		told, done := 0, make(chan struct{})
		listener := later(func() struct{} {
			for {
				select {
				case <-sub.Messages():
					told++
				case <-done:
					return struct{}{}
				}
			}
		})
		for field, value := range held(javaA+":7", 1, time.Now().Add(time.Hour), "x", "y") {
			w.server.HSet("g", field, value)
		}
		w.server.SetTTL("g", time.Hour)
		if _, err := c.GroupLock("g", "y", "x").ForceRelease(bg); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		close(done)
		<-listener
		if told != 1 {
			t.Errorf("told %d times", told)
		}
		w.wantNobody("g", "x", "y")
	})
}
