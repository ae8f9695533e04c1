package interop

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

func (w *world) goSemaphore() *semaphore.Semaphore { return semaphore.New(w.goClient(), w.name, 0) }

// available checks how many permits each side sees.
func (w *world) available(want int) {
	w.t.Helper()
	w.counts(want, map[string]func() (int, error){
		"Go":   func() (int, error) { return w.goSemaphore().Available(w.ctx) },
		"Java": w.javaSync("t1").count("available"),
	})
}

// What one side takes the other counts, and may give back.
func TestSemaphoreOfBoth(t *testing.T) { eachOf(t, peer.Semaphore, semaphoreOfBoth) }

func semaphoreOfBoth(t *testing.T, w *world) {
	s, j := w.goSemaphore(), w.javaSync("t1")
	w.is(s.TryAcquire(w.ctx, 1, 0), redlatch.ErrUninitialized)
	j.answers(false, "tryAcquire", 1)
	w.yes(s.TrySetPermits(w.ctx, 5))
	j.answers(false, "trySetPermits", 3)
	w.available(5)
	j.do("acquire", 2)
	w.available(3)
	w.is(s.TryAcquire(w.ctx, 4, 0), redlatch.ErrBusy)
	w.must(s.Acquire(w.ctx, 3))
	w.available(0)
	j.answers(false, "tryAcquire", 1)
	j.do("release", 3) // Go's
	w.available(3)
	w.must(s.Release(w.ctx, 2)) // Java's
	w.available(5)

	j.do("addPermits", -7)
	w.available(-2)
	j.answers(false, "tryAcquire", 1)
	w.is(s.TryAcquire(w.ctx, 1, 0), redlatch.ErrBusy)
	w.must(s.AddPermits(w.ctx, 6))
	w.available(4)
	if n := j.do("drain").Count; n != 4 {
		t.Errorf("Java drained %d permits, want 4", n)
	}
	w.available(0)
	w.must(s.AddPermits(w.ctx, -1))
	w.available(-1)
	if n, err := s.Drain(w.ctx); n != -1 || err != nil {
		t.Errorf("Go: Drain: %d, %v, want -1", n, err)
	}
	w.available(0)
	w.deletes(j)

	w.no(s.ReleaseIfExists(w.ctx, 1))
	w.no(s.Delete(w.ctx))
	j.answers(true, "trySetPermits", 1)
	w.no(s.TrySetPermits(w.ctx, 9))
	w.yes(s.ReleaseIfExists(w.ctx, 1))
	w.available(2)
	w.yes(s.Delete(w.ctx))
	j.do("release", 1) // makes it, as Redisson does
	w.available(1)
	w.yes(s.Delete(w.ctx))
	w.must(s.Release(w.ctx, 1)) // and so does Go
	w.available(1)
	w.deletes(j)

	numbered := semaphore.New(w.goClient(), w.name, 3)
	j.answers(true, "trySetPermits", 1)
	w.must(numbered.TryAcquire(w.ctx, 1, 0))
	w.is(numbered.TryAcquire(w.ctx, 1, 0), redlatch.ErrBusy) // Java has set the number
	w.deletes(j)
	w.must(numbered.TryAcquire(w.ctx, 2, 0)) // sets the number
	j.answers(false, "trySetPermits", 9)
	w.available(1)
	w.deletes(j)
}

// Who waits in Go for a semaphore that Java deletes is told that there is none, or
// sets it up again if it knows the number. Who waits in Java is told nothing, and
// goes on when there are permits.
func TestSemaphoreIsDeleted(t *testing.T) {
	eachOf(t, peer.Semaphore, func(t *testing.T, w *world) {
		s, j := w.goSemaphore(), w.javaSync("t1")
		w.yes(s.TrySetPermits(w.ctx, 0))
		java := w.javaSync("t2").waits(0, "acquire", 2)
		told := make(chan error, 1)
		lost := w.sleeps(1, "Go: acquire", func() error { told <- s.Acquire(w.ctx, 1); return nil })
		from := time.Now()
		j.answers(true, "delete")
		if took := lost.returns().Sub(from); took > generous {
			t.Errorf("who waits is told after %v that there is no semaphore", took)
		}
		w.is(<-told, redlatch.ErrUninitialized)
		w.free()
		java.open()
		w.must(s.Release(w.ctx, 2)) // makes one
		w.inSoon(java)
		w.available(0)

		setsUp := w.sleeps(0, "Go: acquire", func() error { return semaphore.New(w.goClient(), w.name, 3).Acquire(w.ctx, 1) })
		j.answers(true, "delete")
		setsUp.returns()
		w.available(2)
		w.deletes(j)
	})
}

// A semaphore with a TTL is gone for both when that is over, whoever gave it and
// used the semaphore.
func TestSemaphoreTTL(t *testing.T) {
	eachOf(t, peer.Semaphore, func(t *testing.T, w *world) {
		s, j := w.goSemaphore(), w.javaSync("t1")
		w.yes(s.TrySetPermitsFor(w.ctx, 3, long))
		j.do("acquire", 2)
		j.do("release", 1)
		if ttl := w.ttl(); ttl <= 0 {
			t.Errorf("after Java's use the semaphore has a TTL of %v", ttl)
		}
		if !w.newest() { // the rest is younger
			w.deletes(j)
			return
		}
		w.yes(s.Delete(w.ctx))
		j.answers(false, "releaseIfExists", 1)
		if !j.call("trySetPermits", peer.Call{N: 2, Lease: short}).OK {
			t.Error("Java did not set the permits")
		}
		j.answers(true, "releaseIfExists", 1)
		w.must(s.Acquire(w.ctx, 3))
		w.must(s.Release(w.ctx, 1))
		w.must(s.AddPermits(w.ctx, 1))
		if _, err := s.Drain(w.ctx); err != nil {
			t.Error(err)
		}
		if ttl := w.ttl(); ttl <= 0 || ttl > short {
			t.Errorf("after Go's use the semaphore has a TTL of %v", ttl)
		}
		w.eventually("the end of the semaphore", func() bool { return w.server.MustDo("EXISTS", w.name) == int64(0) })
		w.available(0)
	})
}

// Who waits goes on with the message, whatever made the permits, when there are
// as many as it wants.
func TestSemaphoreWakes(t *testing.T) { eachOf(t, peer.Semaphore, semaphoreWakes) }

func semaphoreWakes(_ *testing.T, w *world) {
	s, j, t2 := w.goSemaphore(), w.javaSync("t1"), w.javaSync("t2")

	waiter := j.waits(0, "acquire", 2)
	w.yes(s.TrySetPermits(w.ctx, 1))
	w.asleep(1)
	waiter.open()
	w.must(s.Release(w.ctx, 1))
	w.inSoon(waiter)
	waiter = j.waits(0, "acquire", 2)
	w.must(s.AddPermits(w.ctx, -3)) // a message that is no number of permits
	w.must(s.AddPermits(w.ctx, 5))
	w.inSoon(waiter)
	waiter = j.waits(0, "acquire", 1)
	w.yes(s.ReleaseIfExists(w.ctx, 1))
	w.inSoon(waiter)
	w.yes(s.Delete(w.ctx))

	// Who waits in Go asks at times, and may do so while Java has deleted the
	// semaphore and not yet set it up again: then it waits anew.
	var deleted atomic.Bool
	acquire := func(n int) *waiting {
		deleted.Store(false)
		return w.sleeps(0, "Go: acquire", func() error {
			err := s.Acquire(w.ctx, n)
			for errors.Is(err, redlatch.ErrUninitialized) && deleted.Load() {
				err = s.Acquire(w.ctx, n)
			}
			return err
		})
	}
	setAgain := func(permits int) {
		deleted.Store(true)
		t2.answers(true, "delete")
		t2.answers(true, "trySetPermits", permits)
	}
	w.yes(s.TrySetPermits(w.ctx, 0))
	waiter = acquire(1)
	setAgain(1)
	w.inSoon(waiter)
	waiter = acquire(2)
	setAgain(1)
	w.asleep(1)
	waiter.open()
	t2.do("release", 1)
	w.inSoon(waiter)
	waiter = acquire(2)
	t2.do("addPermits", -3)
	t2.do("addPermits", 5)
	w.inSoon(waiter)
	if w.newest() {
		waiter = acquire(1)
		t2.answers(true, "releaseIfExists", 1)
		w.inSoon(waiter)
	}
	w.deletes(j)
}

// One release wakes as many of both sides as it serves.
func TestSemaphoreWakesMany(t *testing.T) { eachOf(t, peer.Semaphore, semaphoreWakesMany) }

func semaphoreWakesMany(_ *testing.T, w *world) {
	s, releaser := w.goSemaphore(), w.javaSync("releaser")
	for _, release := range []func(){
		func() { w.must(s.Release(w.ctx, 6)) },
		func() { releaser.do("release", 6) },
	} {
		w.yes(s.TrySetPermits(w.ctx, 0))
		var all []*waiting
		for i := range 3 {
			all = append(all, w.javaSync("t"+strconv.Itoa(i)).waits(min(int64(i), 1), "acquire", 1))
			all = append(all, w.sleeps(1, "Go: acquire", func() error { return s.Acquire(w.ctx, 1) }))
		}
		release()
		w.inSoon(all...)
		w.available(0)
		w.yes(s.Delete(w.ctx))
	}
}

// A process whose goroutines pass the only permit on among them lets Java have its
// turns.
func TestSemaphoreTurns(t *testing.T) {
	eachOf(t, peer.Semaphore, func(t *testing.T, w *world) {
		s, j := w.goSemaphore(), w.javaSync("t1")
		w.yes(s.TrySetPermits(w.ctx, 1))
		stop := make(chan struct{})
		var all []*waiting
		for range 8 {
			all = append(all, w.start("Go: loop", func() error {
				for {
					select {
					case <-stop:
						return nil
					default:
					}
					if err := errors.Join(s.Acquire(w.ctx, 1), s.Release(w.ctx, 1)); err != nil {
						return err
					}
				}
			}))
		}
		for range 10 {
			w.inSoon(w.start("Java: acquire", func() error { _, err := j.try("acquire", peer.Call{N: 1}); return err }))
			j.do("release", 1)
		}
		close(stop)
		for _, c := range all {
			c.returns()
		}
		w.available(1)
		w.deletes(j)
	})
}

// Never more are inside than there are permits, and everybody gets in: also
// beside a process whose goroutines pass permits on.
func TestSemaphoreCrowd(t *testing.T) {
	eachOf(t, peer.Semaphore, func(t *testing.T, w *world) {
		const room, rounds = 2, 20
		w.yes(w.goSemaphore().TrySetPermits(w.ctx, room))
		c := w.guests(room)
		for i := range 2 {
			s := semaphore.New(w.anotherGo(), w.name, 0)
			for k := range 3 {
				c.member("Go "+strconv.Itoa(3*i+k), rounds, func() error { return s.Acquire(w.ctx, 1) }, func() error { return s.Release(w.ctx, 1) })
			}
		}
		for i := range 3 {
			j := w.javaSync("t" + strconv.Itoa(i))
			c.member("Java "+strconv.Itoa(i), rounds,
				func() error { _, err := j.try("acquire", peer.Call{N: 1}); return err },
				func() error { _, err := j.try("release", peer.Call{N: 1}); return err })
		}
		c.ends()
		w.available(room)
		w.deletes(w.javaSync("t1"))
	})
}
