package redlatch_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// A mortal client is one whose process can vanish.
type mortal struct {
	*redlatch.Client
	dead   atomic.Bool
	takes  atomic.Int64
	events struct {
		sync.Mutex
		requeued []redlatch.RequeuedEvent
	}
}

func (w *world) mortal() *mortal {
	m := &mortal{}
	cfg := redlatch.Config{OutageTimeout: time.Hour, Events: redlatch.Events{Requeued: func(e redlatch.RequeuedEvent) {
		m.events.Lock()
		defer m.events.Unlock()
		m.events.requeued = append(m.events.requeued, e)
	}}}
	m.Client = w.tapped(cfg, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if m.dead.Load() {
			return driver.Reply{}, errTapUnknown
		}
		if s == "fairlock.take" {
			m.takes.Add(1)
		}
		return next()
	}})
	return m
}

func (m *mortal) requeued() int {
	synctest.Wait()
	m.events.Lock()
	defer m.events.Unlock()
	return len(m.events.requeued)
}

// A waiter of Redisson, put into the queue by hand.
type javaWaiter struct {
	w     *world
	name  string
	owner string
}

func (w *world) java(name string, thread int, allowance time.Duration) *javaWaiter {
	w.Helper()
	j := &javaWaiter{w, name, fmt.Sprintf("0f8fad5b-d9cb-469f-a165-70867728950e:%d", thread)}
	queue, timeouts, _ := fairKeys(name)
	_, _ = w.server.Push(queue, j.owner)
	_, _ = w.server.ZAdd(timeouts, float64(time.Now().Add(allowance).UnixMilli()), j.owner)
	return j
}

// javaBehind puts a waiter behind the last one as Redisson does, and returns what
// it is told to wait: less than nothing means without limit, for a message.
func (w *world) javaBehind(name string, thread int) (j *javaWaiter, wait time.Duration) {
	w.Helper()
	ids := w.queue(name)
	_, timeouts, _ := fairKeys(name)
	tail, err := w.server.ZScore(timeouts, ids[len(ids)-1])
	if err != nil {
		w.Fatal(err)
	}
	wait = time.Until(time.UnixMilli(int64(tail)))
	return w.java(name, thread, wait+5*time.Minute), wait
}

// take does what Redisson does when it is its turn, and says whether it was.
func (j *javaWaiter) take() bool {
	j.w.Helper()
	queue, timeouts, _ := fairKeys(j.name)
	ids := j.w.queue(j.name)
	if j.w.server.Exists(j.name) || len(ids) == 0 || ids[0] != j.owner {
		return false
	}
	_, _ = j.w.server.Lpop(queue)
	_, _ = j.w.server.ZRem(timeouts, j.owner)
	for _, id := range ids[1:] {
		score, _ := j.w.server.ZScore(timeouts, id)
		_, _ = j.w.server.ZAdd(timeouts, score-300000, id)
	}
	j.w.server.HSet(j.name, j.owner, "1")
	j.w.server.SetTTL(j.name, 30*time.Second)
	return true
}

func (j *javaWaiter) unlock() {
	j.w.server.Del(j.name)
	if ids := j.w.queue(j.name); len(ids) > 0 {
		j.w.server.Publish("redisson_lock__channel:{"+j.name+"}:"+ids[0], "0")
	}
}

func TestWaitersOfADeadClientDelayTheQueueBySecondsNotMinutes(t *testing.T) {
	for name, alive := range map[string]time.Duration{"long before their turn": 10 * time.Second, "just before their turn": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				a, c := w.client(redlatch.Config{}), w.client(redlatch.Config{})
				b := w.mortal()
				h := w.acquire(a.FairLock("orders"), bg)
				for range 3 {
					w.waiting(b.FairLock("orders"), bg)
				}
				next := w.waiting(c.FairLock("orders"), bg)
				behind := w.waiting(a.FairLock("orders"), bg)
				_, timeouts, _ := fairKeys("orders")
				last := w.queue("orders")[4]
				score, _ := w.server.ZScore(timeouts, last)
				b.dead.Store(true)
				time.Sleep(alive)
				start := time.Now()
				w.release(h)
				h = w.got(next)
				took := time.Since(start)
				if alive > 6*time.Second && took > time.Millisecond || took > 9*time.Second {
					t.Errorf("the next live one got the lock after %v", took)
				}
				// Redisson's arithmetic has forgotten the dead ones too.
				if after, _ := w.server.ZScore(timeouts, last); after != score-4*300000 {
					t.Errorf("the one behind has the score %.0f, had %.0f", after, score)
				}
				w.release(h)
				w.release(w.got(behind))
				b.dead.Store(false)
				_ = b.Close()
				w.wantNothing()
			})
		})
	}
}

func TestALockOfADeadHolderPassesAfterItsTTL(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a := w.mortal()
		b, c := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		w.acquire(a.FairLock("orders"), bg)
		next := w.waiting(b.FairLock("orders"), bg)
		last := w.waiting(c.FairLock("orders"), bg)
		a.dead.Store(true)
		start := time.Now()
		w.release(w.got(next))
		if took := time.Since(start); took > 30*time.Second+2*time.Millisecond {
			t.Errorf("the next one got the lock after %v", took)
		}
		w.release(w.got(last))
		w.wantNothing()
	})
}

// Nobody who lives is evicted for waiting longer than Redisson allows.
func TestLongWaitsKeepTheirPlaces(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.mortal(), w.mortal()
		h := w.acquire(a.FairLock("orders"), bg)
		var waits []<-chan outcome
		for i := range 6 {
			waits = append(waits, w.waiting([]*mortal{a, b}[i%2].FairLock("orders"), bg))
		}
		for _, next := range waits {
			time.Sleep(4 * time.Minute)
			w.release(h)
			h = w.got(next)
		}
		w.release(h)
		if a.requeued()+b.requeued() > 0 {
			t.Errorf("%d and %d waiters have lost their places", a.requeued(), b.requeued())
		}
		w.wantNothing()
	})
}

// Redisson judges by the score alone, and a holder may stay for longer than the
// first waiter's lasts.
func TestTheHeadOfTheQueueIsKeptFromRedissonsSweep(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(a.FairLock("orders"), bg)
		next := w.waiting(b.FairLock("orders"), bg)
		_, timeouts, _ := fairKeys("orders")
		for range 20 {
			time.Sleep(time.Minute)
			score, _ := w.server.ZScore(timeouts, w.queue("orders")[0])
			if left := time.Until(time.UnixMilli(int64(score))); left < 149*time.Second || left > 331*time.Second {
				t.Fatalf("the head's score lasts for another %v", left)
			}
		}
		w.release(h)
		w.release(w.got(next))
		w.wantNothing()
	})
}

// A waiter of Redisson that comes behind one whose score has passed is told to
// wait without limit, and is swept away, by anybody, when it is its turn: it
// would sleep for good.
func TestAWaiterOfRedissonBehindALongWaitIsNotForgotten(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b, c := w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(a.FairLock("orders"), bg)
		first, second := w.waiting(b.FairLock("orders"), bg), w.waiting(c.FairLock("orders"), bg)
		time.Sleep(11 * time.Minute)
		java1, wait1 := w.javaBehind("orders", 1)
		time.Sleep(6 * time.Minute)
		java2, wait2 := w.javaBehind("orders", 2)
		if wait1 < 0 || wait2 < 0 {
			t.Errorf("Redisson's waiters are told to wait for %v and %v", wait1, wait2)
		}
		w.release(h)
		w.release(w.got(first))
		published := w.eavesdrop()
		w.release(w.got(second))
		for _, j := range []*javaWaiter{java1, java2} {
			if got, want := published(), "redisson_lock__channel:{orders}:"+j.owner+" 0"; !slices.Equal(got, []string{want}) || !j.take() {
				t.Fatalf("published %q, want %q, and its turn; queue %q", got, want, w.queue("orders"))
			}
			j.unlock()
		}
		time.Sleep(12 * time.Second)
		w.wantNothing()
	})
}

// A Redisson client sweeps our waiter away: it comes back, at the end.
func TestALiveWaiterThatWasEvictedLinesUpAgainAndTellsOfIt(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, c := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		b := w.mortal()
		h := w.acquire(a.FairLock("orders"), bg)
		evicted := w.waiting(b.FairLock("orders"), bg)
		other := w.waiting(c.FairLock("orders"), bg)
		queue, timeouts, _ := fairKeys("orders")
		id, _ := w.server.Lpop(queue)
		_, _ = w.server.ZRem(timeouts, id)
		time.Sleep(3 * time.Second)
		if ids := w.queue("orders"); len(ids) != 2 || ids[1] != id {
			t.Fatalf("queue %q, want %q at its end", ids, id)
		}
		if b.requeued() != 1 {
			t.Errorf("%d events", b.requeued())
		}
		w.release(h)
		w.release(w.got(other))
		w.release(w.got(evicted))
		w.wantNothing()
	})
}

// A process that was paused for longer than the others wait for it.
func TestAClientThatWasThoughtDeadLinesUpAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, c := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		b := w.mortal()
		h := w.acquire(a.FairLock("orders"), bg)
		paused := w.waiting(b.FairLock("orders"), bg)
		other := w.waiting(c.FairLock("orders"), bg)
		b.dead.Store(true)
		time.Sleep(9 * time.Second)
		if ids := w.queue("orders"); len(ids) != 1 {
			t.Fatalf("queue %q", ids)
		}
		b.dead.Store(false)
		time.Sleep(3 * time.Second)
		if ids := w.queue("orders"); len(ids) != 2 || b.requeued() != 1 {
			t.Fatalf("queue %q, %d events", ids, b.requeued())
		}
		w.release(h)
		w.release(w.got(other))
		w.release(w.got(paused))
		w.wantNothing()
	})
}

// At HEAD of Redisson such an entry blocks the lock for ever.
func TestAHeadWithoutAScoreIsSwept(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		queue, _, _ := fairKeys("orders")
		h := w.acquire(a.FairLock("orders"), bg)
		next := w.waiting(b.FairLock("orders"), bg)
		for _, remnant := range []string{"0f8fad5b-d9cb-469f-a165-70867728950e:1", a.ID() + ":77", "x"} {
			_, _ = w.server.Lpush(queue, remnant)
		}
		w.release(h)
		w.release(w.got(next))
		_, _ = w.server.Lpush(queue, "0f8fad5b-d9cb-469f-a165-70867728950e:1")
		h, err := a.FairLock("orders").Try(bg)
		if err != nil {
			t.Fatal(err)
		}
		w.release(h)
		w.wantNothing()
	})
}

// Redis evicts keys under memory pressure, one at a time.
func TestAQueueThatLostOneOfItsKeysRecovers(t *testing.T) {
	queue, timeouts, alive := fairKeys("orders")
	for _, key := range []string{queue, timeouts, alive} {
		t.Run(key, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				a, b, c := w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.client(redlatch.Config{})
				h := w.acquire(a.FairLock("orders"), bg)
				var waits []<-chan outcome
				for i := range 6 {
					waits = append(waits, w.waiting([]*redlatch.Client{b, c}[i%2].FairLock("orders"), bg))
				}
				w.server.Del(key)
				time.Sleep(3 * time.Second)
				if ids := w.queue("orders"); len(ids) != 6 {
					t.Errorf("queue %q", ids)
				}
				w.release(h)
				start := time.Now()
				var wg sync.WaitGroup
				for _, c := range waits {
					wg.Go(func() { w.release(w.got(c)) })
				}
				wg.Wait()
				if took := time.Since(start); took > 100*time.Millisecond {
					t.Errorf("six hand-offs took %v", took)
				}
				w.wantNothing()
			})
		})
	}
}

func TestWaitersOfRedissonAreServedInTheirOrder(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		published := w.eavesdrop()
		h := w.acquire(a.FairLock("orders"), bg)
		java1 := w.java("orders", 1, 6*time.Minute)
		ours := w.waiting(b.FairLock("orders"), bg)
		_, timeouts, _ := fairKeys("orders")
		ids := w.queue("orders")
		s1, _ := w.server.ZScore(timeouts, ids[0])
		if s2, _ := w.server.ZScore(timeouts, ids[1]); s2 != s1+300000 {
			t.Errorf("scores %.0f and %.0f: not Redisson's chain", s1, s2)
		}
		java2 := w.java("orders", 2, 16*time.Minute)
		published()
		w.release(h)
		if got, want := published(), "redisson_lock__channel:{orders}:"+java1.owner+" 0"; !slices.Equal(got, []string{want}) {
			t.Errorf("published %q, want %q", got, want)
		}
		if !none(ours) || java2.take() || !java1.take() {
			t.Fatal("out of order")
		}
		time.Sleep(5 * time.Second)
		if !none(ours) {
			t.Fatal("two holders")
		}
		start := time.Now()
		java1.unlock()
		h2 := w.got(ours)
		if took := time.Since(start); took > time.Millisecond {
			t.Errorf("after Redisson's unlock it took %v", took)
		}
		published()
		w.release(h2)
		if got, want := published(), "redisson_lock__channel:{orders}:"+java2.owner+" 0"; !slices.Equal(got, []string{want}) {
			t.Errorf("published %q, want %q", got, want)
		}
		if !java2.take() {
			t.Fatal("out of order")
		}
		java2.unlock()
		time.Sleep(12 * time.Second) // Redisson does not know of one key, which ends by itself
		w.wantNothing()
	})
}

// A dead waiter of Redisson stays for as long as its score says: nobody of ours
// may judge it earlier.
func TestADeadWaiterOfRedissonIsSweptWhenItsScoreHasPassed(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.mortal()
		h := w.acquire(a.FairLock("orders"), bg)
		start := time.Now()
		w.java("orders", 1, time.Minute)
		ours := w.waiting(b.FairLock("orders"), bg)
		w.release(h)
		published := w.eavesdrop()
		time.Sleep(50 * time.Second)
		if !none(ours) {
			t.Fatal("overtaken")
		}
		// It is told that it is its turn each time that we look, and we look
		// neither rarely nor often: Redisson spins here.
		if n := len(published()); n < 15 || n > 40 {
			t.Errorf("told %d times in 50 s", n)
		}
		if n := b.takes.Load(); n < 15 || n > 40 {
			t.Errorf("%d tries in 50 s", n)
		}
		h = w.got(ours)
		if took := time.Since(start); took > 63*time.Second {
			t.Errorf("it took %v", took)
		}
		w.release(h)
		w.wantNothing()
	})
}

// Messages come in floods, the lock does not.
func TestAFloodOfMessagesDoesNotMakeAWaiterSpin(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.mortal()
		h := w.acquire(a.FairLock("orders"), bg)
		ours := w.waiting(b.FairLock("orders"), bg)
		channel := "redisson_lock__channel:{orders}:" + w.queue("orders")[0]
		before := b.takes.Load()
		for range 10_000 {
			w.server.Publish(channel, "0")
			time.Sleep(time.Millisecond)
		}
		if n := b.takes.Load() - before; n > 10*40*6 { // ten seconds
			t.Errorf("%d tries in 10 s", n)
		}
		start := time.Now()
		w.release(h)
		w.release(w.got(ours))
		if took := time.Since(start); took > 101*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		w.wantNothing()
	})
}

// Without messages the head finds out within a second, and the others are quiet.
func TestTheHeadOfTheQueuePollsEverySecond(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a := w.client(redlatch.Config{})
		b, c := w.mortal(), w.mortal()
		h := w.acquire(a.FairLock("orders"), bg)
		head := w.waiting(b.FairLock("orders"), bg)
		tail := w.waiting(c.FairLock("orders"), bg)
		time.Sleep(time.Second)
		nb, nc := b.takes.Load(), c.takes.Load()
		time.Sleep(60 * time.Second)
		if n := b.takes.Load() - nb; n < 60 || n > 95 {
			t.Errorf("the head tried %d times a minute", n)
		}
		if n := c.takes.Load() - nc; n < 24 || n > 40 {
			t.Errorf("the other tried %d times a minute", n)
		}
		w.server.Del("orders") // nobody says a word
		start := time.Now()
		h2 := w.got(head)
		if took := time.Since(start); took > time.Second {
			t.Errorf("the head found out after %v", took)
		}
		w.release(h2)
		w.release(w.got(tail))
		w.wantErr(h.Release(bg), redlatch.ErrLost)
		w.wantNothing()
	})
}

// A release tells the head and nobody else, and leaves the others asleep.
func TestAReleaseWakesTheHeadOnly(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a := w.client(redlatch.Config{})
		h := w.acquire(a.FairLock("orders"), bg)
		var crowd []*mortal
		var waits []<-chan outcome
		for range 20 {
			m := w.mortal()
			crowd = append(crowd, m)
			waits = append(waits, w.waiting(m.FairLock("orders"), bg))
		}
		published := w.eavesdrop()
		synctest.Wait()
		before := make([]int64, len(crowd))
		for i, m := range crowd {
			before[i] = m.takes.Load()
		}
		for i := range crowd {
			w.release(h)
			h = w.got(waits[i])
			if n := len(published()); n != 1 {
				t.Fatalf("%d messages", n)
			}
		}
		for i, m := range crowd {
			if n := m.takes.Load() - before[i]; n != 0 { // it is given the lock
				t.Errorf("waiter %d tried %d times", i, n)
			}
		}
		w.release(h)
		w.wantNothing()
	})
}

// A waiter of the same client sees the holder's id while its release is under
// way: to release the id once more would overtake the release, which would find
// the lock gone.
func TestAReleaseUnderWayIsNotOvertakenByItsOwnClient(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var releases atomic.Int64
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.release" && releases.Add(1) == 1 {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}})
		h := w.acquire(c.FairLock("orders"), bg)
		next := w.waiting(c.FairLock("orders"), bg)
		channel := "redisson_lock__channel:{orders}:" + w.queue("orders")[0]
		released := later(func() error { return h.Release(bg) })
		time.Sleep(time.Millisecond)
		w.server.Publish(channel, "0") // it looks, and sees the holder
		if err := <-released; err != nil {
			t.Errorf("Release: %v", err)
		}
		w.release(w.got(next))
		if n := releases.Load(); n != 2 {
			t.Errorf("%d releases were sent, want 2", n)
		}
		w.wantNothing()
	})
}
