package locks

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
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// javaBehind puts a waiter behind the last one as Redisson does, and returns what
// it is told to wait: less than nothing means without limit, for a message.
func javaBehind(w *locktest.World, name string, thread int) (j *locktest.JavaWaiter, wait time.Duration) {
	w.Helper()
	ids := w.Queue(name)
	_, timeouts, _ := locktest.FairKeys(name)
	tail, err := w.Server.ZScore(timeouts, ids[len(ids)-1])
	if err != nil {
		w.Fatal(err)
	}
	wait = time.Until(time.UnixMilli(int64(tail)))
	return w.JavaWaiter(name, thread, wait+5*time.Minute), wait
}

func TestWaitersOfADeadClientDelayTheQueueBySecondsNotMinutes(t *testing.T) {
	for name, alive := range map[string]time.Duration{"long before their turn": 10 * time.Second, "just before their turn": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				b := w.Mortal()
				h := w.Acquire(bg, a.FairLock("orders"))
				for range 3 {
					w.Waiting(bg, b.FairLock("orders"))
				}
				next := w.Waiting(bg, c.FairLock("orders"))
				behind := w.Waiting(bg, a.FairLock("orders"))
				_, timeouts, _ := locktest.FairKeys("orders")
				last := w.Queue("orders")[4]
				score, _ := w.Server.ZScore(timeouts, last)
				b.Dead.Store(true)
				time.Sleep(alive)
				start := time.Now()
				w.Release(h)
				h = w.Got(next)
				took := time.Since(start)
				if alive > 6*time.Second && took > time.Millisecond || took > 9*time.Second {
					t.Errorf("the next live one got the lock after %v", took)
				}
				// Redisson's arithmetic has forgotten the dead ones too.
				if after, _ := w.Server.ZScore(timeouts, last); after != score-4*300000 {
					t.Errorf("the one behind has the score %.0f, had %.0f", after, score)
				}
				w.Release(h)
				w.Release(w.Got(behind))
				b.Dead.Store(false)
				_ = b.Close()
				w.WantNothing()
			})
		})
	}
}

func TestALockOfADeadHolderPassesAfterItsTTL(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a := w.Mortal()
		b, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		w.Acquire(bg, a.FairLock("orders"))
		next := w.Waiting(bg, b.FairLock("orders"))
		last := w.Waiting(bg, c.FairLock("orders"))
		a.Dead.Store(true)
		start := time.Now()
		w.Release(w.Got(next))
		if took := time.Since(start); took > 30*time.Second+2*time.Millisecond {
			t.Errorf("the next one got the lock after %v", took)
		}
		w.Release(w.Got(last))
		w.WantNothing()
	})
}

// Nobody who lives is evicted for waiting longer than Redisson allows.
func TestLongWaitsKeepTheirPlaces(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Mortal(), w.Mortal()
		h := w.Acquire(bg, a.FairLock("orders"))
		var waits []<-chan locktest.Outcome
		for i := range 6 {
			waits = append(waits, w.Waiting(bg, []*locktest.Mortal{a, b}[i%2].FairLock("orders")))
		}
		for _, next := range waits {
			time.Sleep(4 * time.Minute)
			w.Release(h)
			h = w.Got(next)
		}
		w.Release(h)
		if a.Requeued()+b.Requeued() > 0 {
			t.Errorf("%d and %d waiters have lost their places", a.Requeued(), b.Requeued())
		}
		w.WantNothing()
	})
}

// Redisson judges by the score alone, and a holder may stay for longer than the
// first waiter's lasts.
func TestTheHeadOfTheQueueIsKeptFromRedissonsSweep(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		next := w.Waiting(bg, b.FairLock("orders"))
		_, timeouts, _ := locktest.FairKeys("orders")
		for range 20 {
			time.Sleep(time.Minute)
			score, _ := w.Server.ZScore(timeouts, w.Queue("orders")[0])
			if left := time.Until(time.UnixMilli(int64(score))); left < 149*time.Second || left > 331*time.Second {
				t.Fatalf("the head's score lasts for another %v", left)
			}
		}
		w.Release(h)
		w.Release(w.Got(next))
		w.WantNothing()
	})
}

// A waiter of Redisson that comes behind one whose score has passed is told to
// wait without limit, and is swept away, by anybody, when it is its turn: it
// would sleep for good.
func TestAWaiterOfRedissonBehindALongWaitIsNotForgotten(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		first, second := w.Waiting(bg, b.FairLock("orders")), w.Waiting(bg, c.FairLock("orders"))
		time.Sleep(11 * time.Minute)
		java1, wait1 := javaBehind(w, "orders", 1)
		time.Sleep(6 * time.Minute)
		java2, wait2 := javaBehind(w, "orders", 2)
		if wait1 < 0 || wait2 < 0 {
			t.Errorf("Redisson's waiters are told to wait for %v and %v", wait1, wait2)
		}
		w.Release(h)
		w.Release(w.Got(first))
		published := w.Eavesdrop()
		w.Release(w.Got(second))
		for _, j := range []*locktest.JavaWaiter{java1, java2} {
			if got, want := published(), "redisson_lock__channel:{orders}:"+j.Owner+" 0"; !slices.Equal(got, []string{want}) || !j.Take() {
				t.Fatalf("published %q, want %q, and its turn; queue %q", got, want, w.Queue("orders"))
			}
			j.Unlock()
		}
		time.Sleep(12 * time.Second)
		w.WantNothing()
	})
}

// A Redisson client sweeps our waiter away: it comes back, at the end.
func TestALiveWaiterThatWasEvictedLinesUpAgainAndTellsOfIt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		b := w.Mortal()
		h := w.Acquire(bg, a.FairLock("orders"))
		evicted := w.Waiting(bg, b.FairLock("orders"))
		other := w.Waiting(bg, c.FairLock("orders"))
		queue, timeouts, _ := locktest.FairKeys("orders")
		id, _ := w.Server.Lpop(queue)
		_, _ = w.Server.ZRem(timeouts, id)
		time.Sleep(3 * time.Second)
		if ids := w.Queue("orders"); len(ids) != 2 || ids[1] != id {
			t.Fatalf("queue %q, want %q at its end", ids, id)
		}
		if b.Requeued() != 1 {
			t.Errorf("%d events", b.Requeued())
		}
		w.Release(h)
		w.Release(w.Got(other))
		w.Release(w.Got(evicted))
		w.WantNothing()
	})
}

// A process that was paused for longer than the others wait for it.
func TestAClientThatWasThoughtDeadLinesUpAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		b := w.Mortal()
		h := w.Acquire(bg, a.FairLock("orders"))
		paused := w.Waiting(bg, b.FairLock("orders"))
		other := w.Waiting(bg, c.FairLock("orders"))
		b.Dead.Store(true)
		time.Sleep(9 * time.Second)
		if ids := w.Queue("orders"); len(ids) != 1 {
			t.Fatalf("queue %q", ids)
		}
		b.Dead.Store(false)
		time.Sleep(3 * time.Second)
		if ids := w.Queue("orders"); len(ids) != 2 || b.Requeued() != 1 {
			t.Fatalf("queue %q, %d events", ids, b.Requeued())
		}
		w.Release(h)
		w.Release(w.Got(other))
		w.Release(w.Got(paused))
		w.WantNothing()
	})
}

// At HEAD of Redisson such an entry blocks the lock for ever.
func TestAHeadWithoutAScoreIsSwept(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		queue, _, _ := locktest.FairKeys("orders")
		h := w.Acquire(bg, a.FairLock("orders"))
		next := w.Waiting(bg, b.FairLock("orders"))
		for _, remnant := range []string{"0f8fad5b-d9cb-469f-a165-70867728950e:1", a.ID() + ":77", "x"} {
			_, _ = w.Server.Lpush(queue, remnant)
		}
		w.Release(h)
		w.Release(w.Got(next))
		_, _ = w.Server.Lpush(queue, "0f8fad5b-d9cb-469f-a165-70867728950e:1")
		h, err := a.FairLock("orders").TryAcquire(bg, 0)
		if err != nil {
			t.Fatal(err)
		}
		w.Release(h)
		w.WantNothing()
	})
}

// Redis evicts keys under memory pressure, one at a time. Who waits lines up again
// at most once.
func TestAQueueThatLostOneOfItsKeysRecovers(t *testing.T) {
	queue, timeouts, alive := locktest.FairKeys("orders")
	for _, waiting := range []int{1, 6} {
		for _, key := range []string{queue, timeouts, alive} {
			t.Run(fmt.Sprint(waiting, " ", key), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					a, b, c := w.Client(redlatch.Config{}), w.Mortal(), w.Mortal()
					h := w.Acquire(bg, a.FairLock("orders"))
					var waits []<-chan locktest.Outcome
					for i := range waiting {
						waits = append(waits, w.Waiting(bg, []*locktest.Mortal{b, c}[i%2].FairLock("orders")))
					}
					w.Server.Del(key)
					time.Sleep(20 * time.Second)
					if ids := w.Queue("orders"); len(ids) != waiting {
						t.Errorf("queue %q", ids)
					}
					if n := b.Requeued() + c.Requeued(); n > waiting {
						t.Errorf("%d waiters lined up again %d times", waiting, n)
					}
					w.Release(h)
					start := time.Now()
					var wg sync.WaitGroup
					for _, c := range waits {
						wg.Go(func() { w.Release(w.Got(c)) })
					}
					wg.Wait()
					if took := time.Since(start); took > 100*time.Millisecond {
						t.Errorf("%d hand-offs took %v", waiting, took)
					}
					w.WantNothing()
				})
			})
		}
	}
}

func TestWaitersOfRedissonAreServedInTheirOrder(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		published := w.Eavesdrop()
		h := w.Acquire(bg, a.FairLock("orders"))
		java1 := w.JavaWaiter("orders", 1, 6*time.Minute)
		ours := w.Waiting(bg, b.FairLock("orders"))
		_, timeouts, _ := locktest.FairKeys("orders")
		ids := w.Queue("orders")
		s1, _ := w.Server.ZScore(timeouts, ids[0])
		if s2, _ := w.Server.ZScore(timeouts, ids[1]); s2 != s1+300000 {
			t.Errorf("scores %.0f and %.0f: not Redisson's chain", s1, s2)
		}
		java2 := w.JavaWaiter("orders", 2, 16*time.Minute)
		published()
		w.Release(h)
		if got, want := published(), "redisson_lock__channel:{orders}:"+java1.Owner+" 0"; !slices.Equal(got, []string{want}) {
			t.Errorf("published %q, want %q", got, want)
		}
		if !locktest.NoneYet(ours) || java2.Take() || !java1.Take() {
			t.Fatal("out of order")
		}
		time.Sleep(5 * time.Second)
		if !locktest.NoneYet(ours) {
			t.Fatal("two holders")
		}
		start := time.Now()
		java1.Unlock()
		h2 := w.Got(ours)
		if took := time.Since(start); took > time.Millisecond {
			t.Errorf("after Redisson's unlock it took %v", took)
		}
		published()
		w.Release(h2)
		if got, want := published(), "redisson_lock__channel:{orders}:"+java2.Owner+" 0"; !slices.Equal(got, []string{want}) {
			t.Errorf("published %q, want %q", got, want)
		}
		if !java2.Take() {
			t.Fatal("out of order")
		}
		java2.Unlock()
		time.Sleep(12 * time.Second) // Redisson does not know of one key, which ends by itself
		w.WantNothing()
	})
}

// A dead waiter of Redisson stays for as long as its score says: nobody of ours
// may judge it earlier.
func TestADeadWaiterOfRedissonIsSweptWhenItsScoreHasPassed(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Mortal()
		h := w.Acquire(bg, a.FairLock("orders"))
		start := time.Now()
		w.JavaWaiter("orders", 1, time.Minute)
		ours := w.Waiting(bg, b.FairLock("orders"))
		w.Release(h)
		published := w.Eavesdrop()
		time.Sleep(50 * time.Second)
		if !locktest.NoneYet(ours) {
			t.Fatal("overtaken")
		}
		// It is told that it is its turn each time that we look, and we look
		// neither rarely nor often: Redisson spins here.
		if n := len(published()); n < 15 || n > 40 {
			t.Errorf("told %d times in 50 s", n)
		}
		if n := b.Takes.Load(); n < 15 || n > 40 {
			t.Errorf("%d tries in 50 s", n)
		}
		h = w.Got(ours)
		if took := time.Since(start); took > 63*time.Second {
			t.Errorf("it took %v", took)
		}
		w.Release(h)
		w.WantNothing()
	})
}

// Messages come in floods, the lock does not.
func TestAFloodOfMessagesDoesNotMakeAWaiterSpin(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Mortal()
		h := w.Acquire(bg, a.FairLock("orders"))
		ours := w.Waiting(bg, b.FairLock("orders"))
		channel := "redisson_lock__channel:{orders}:" + w.Queue("orders")[0]
		before := b.Takes.Load()
		for range 10_000 {
			w.Server.Publish(channel, "0")
			time.Sleep(time.Millisecond)
		}
		if n := b.Takes.Load() - before; n > 10*40*6 { // ten seconds
			t.Errorf("%d tries in 10 s", n)
		}
		start := time.Now()
		w.Release(h)
		w.Release(w.Got(ours))
		if took := time.Since(start); took > 101*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		w.WantNothing()
	})
}

// Without messages the head finds out within a second, and the others are quiet.
func TestTheHeadOfTheQueuePollsEverySecond(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a := w.Client(redlatch.Config{})
		b, c := w.Mortal(), w.Mortal()
		h := w.Acquire(bg, a.FairLock("orders"))
		head := w.Waiting(bg, b.FairLock("orders"))
		tail := w.Waiting(bg, c.FairLock("orders"))
		time.Sleep(time.Second)
		nb, nc := b.Takes.Load(), c.Takes.Load()
		time.Sleep(60 * time.Second)
		if n := b.Takes.Load() - nb; n < 60 || n > 95 {
			t.Errorf("the head tried %d times a minute", n)
		}
		if n := c.Takes.Load() - nc; n < 24 || n > 40 {
			t.Errorf("the other tried %d times a minute", n)
		}
		w.Server.Del("orders") // nobody says a word
		start := time.Now()
		h2 := w.Got(head)
		if took := time.Since(start); took > time.Second {
			t.Errorf("the head found out after %v", took)
		}
		w.Release(h2)
		w.Release(w.Got(tail))
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.WantNothing()
	})
}

// A release tells the head and nobody else, and leaves the others asleep.
func TestAReleaseWakesTheHeadOnly(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a := w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		var crowd []*locktest.Mortal
		var waits []<-chan locktest.Outcome
		for range 20 {
			m := w.Mortal()
			crowd = append(crowd, m)
			waits = append(waits, w.Waiting(bg, m.FairLock("orders")))
		}
		published := w.Eavesdrop()
		synctest.Wait()
		before := make([]int64, len(crowd))
		for i, m := range crowd {
			before[i] = m.Takes.Load()
		}
		for i := range crowd {
			w.Release(h)
			h = w.Got(waits[i])
			if n := len(published()); n != 1 {
				t.Fatalf("%d messages", n)
			}
		}
		for i, m := range crowd {
			if n := m.Takes.Load() - before[i]; n != 0 { // it is given the lock
				t.Errorf("waiter %d tried %d times", i, n)
			}
		}
		w.Release(h)
		w.WantNothing()
	})
}

// A waiter of the same client sees the holder's id while its release is in
// flight: to release the id once more would overtake the release, which would find
// the lock gone.
func TestAReleaseInFlightIsNotOvertakenByItsOwnClient(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var releases atomic.Int64
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.release" && releases.Add(1) == 1 {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}})
		h := w.Acquire(bg, c.FairLock("orders"))
		next := w.Waiting(bg, c.FairLock("orders"))
		channel := "redisson_lock__channel:{orders}:" + w.Queue("orders")[0]
		released := locktest.Later(func() error { return h.Release(bg) })
		time.Sleep(time.Millisecond)
		w.Server.Publish(channel, "0") // it looks, and sees the holder
		if err := <-released; err != nil {
			t.Errorf("Release: %v", err)
		}
		w.Release(w.Got(next))
		if n := releases.Load(); n != 2 {
			t.Errorf("%d releases were sent, want 2", n)
		}
		w.WantNothing()
	})
}

// Redisson's delete() of a fair lock drops the queue and wakes nobody.
func TestTheWaitersOfADeletedFairLockLineUpAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Mortal()
		h := w.Acquire(bg, a.FairLock("orders"))
		var waits []<-chan locktest.Outcome
		for range 3 {
			waits = append(waits, w.Waiting(bg, b.FairLock("orders")))
		}
		queue, timeouts, _ := locktest.FairKeys("orders")
		for _, key := range []string{"orders", queue, timeouts} {
			w.Server.Del(key)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for _, c := range waits {
			wg.Go(func() { w.Release(w.Got(c)) })
		}
		wg.Wait()
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.WantNothing()
	})
}
