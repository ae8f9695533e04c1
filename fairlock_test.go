package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// The keys of a fair lock, as Redisson names them, and ours.
func fairKeys(name string) (queue, timeouts, alive string) {
	return wire.Prefix(wire.LockQueue, name), wire.Prefix(wire.LockTimeout, name), wire.Prefix(wire.LockAlive, name)
}

// queue returns who waits for a fair lock, the first one first. The list and
// the sorted set must name the same waiters.
func (w *world) queue(name string) []string {
	w.Helper()
	synctest.Wait() // what the server returns is its own
	queue, timeouts, _ := fairKeys(name)
	var ids []string
	if w.server.Exists(queue) {
		ids, _ = w.server.List(queue)
	}
	scores := map[string]float64{}
	if w.server.Exists(timeouts) {
		scores, _ = w.server.SortedSet(timeouts)
	}
	w.server.Lock()
	ids, scores = slices.Clone(ids), maps.Clone(scores)
	w.server.Unlock()
	if !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(maps.Keys(scores))) {
		w.Fatalf("the list has %q, the sorted set %v", ids, scores)
	}
	return ids
}

// wantNothing checks that a fair lock has left nothing behind.
func (w *world) wantNothing() {
	w.Helper()
	synctest.Wait()
	if keys := w.server.Keys(); len(keys) > 0 {
		w.Errorf("left behind: %q", keys)
	}
	if channels := w.server.PubSubChannels("redisson*"); len(channels) > 0 {
		w.Errorf("still subscribed: %q", channels)
	}
}

// waiting starts an acquisition and returns when it stands in the queue.
func (w *world) waiting(l *redlatch.Lock, ctx context.Context, opts ...redlatch.Option) <-chan outcome {
	w.Helper()
	before := len(w.queue(l.Name()))
	c := later(func() outcome {
		h, err := l.Acquire(ctx, opts...)
		return outcome{h, err, time.Now()}
	})
	for range 100 { // the request may have to be repeated
		synctest.Wait()
		if len(w.queue(l.Name())) == before+1 {
			return c
		}
		time.Sleep(time.Millisecond)
	}
	w.Fatalf("in the queue: %q, before: %d", w.queue(l.Name()), before)
	return nil
}

func (w *world) got(c <-chan outcome) *redlatch.Hold {
	w.Helper()
	o := <-c
	if o.err != nil {
		w.Fatalf("Acquire: %v", o.err)
	}
	return o.hold
}

// none says that nothing was delivered yet.
func none[T any](c <-chan T) bool {
	synctest.Wait()
	return len(c) == 0
}

func TestFairLockIsGivenInTheOrderOfAskingAcrossProcessesAndGoroutines(t *testing.T) {
	inFakeTime(t, func(w *world) {
		clients := []*redlatch.Client{w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.client(redlatch.Config{})}
		h := w.acquire(clients[0].FairLock("orders"), bg)
		var order []int
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				h, err := clients[i*i%3].FairLock("orders").Acquire(bg)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				time.Sleep(time.Millisecond)
				if err := h.Release(bg); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if n := len(w.queue("orders")); n != 60 {
			t.Fatalf("%d in the queue", n)
		}
		start := time.Now()
		w.release(h)
		wg.Wait()
		if !slices.IsSorted(order) || len(order) != 60 {
			t.Errorf("order %v", order)
		}
		if d := time.Since(start); d > 100*time.Millisecond {
			t.Errorf("60 hand-offs took %v", d)
		}
		w.wantNothing()
	})
}

// They ask at the same time, over a driver that reorders what is under way.
func TestGoroutinesOfOneProcessStandInTheQueueInTheOrderOfTheirCalls(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.take" {
				time.Sleep(time.Duration(20-n.Add(1)%20) * time.Millisecond) // the later, the faster
			}
			return next()
		}})
		other := w.client(redlatch.Config{})
		h := w.acquire(other.FairLock("orders"), bg)
		var order []int
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				h := w.acquire(c.FairLock("orders"), bg)
				order = append(order, i)
				w.release(h)
			})
			time.Sleep(time.Microsecond)
		}
		time.Sleep(time.Second)
		w.release(h)
		wg.Wait()
		if !slices.IsSorted(order) {
			t.Errorf("order %v", order)
		}
	})
}

// Somebody whose request hangs at the entrance must not keep the others out.
func TestACallerWhoseRequestHangsKeepsNobodyFromTheQueue(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var hung atomic.Bool
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.take" && hung.CompareAndSwap(false, true) {
				time.Sleep(2900 * time.Millisecond)
			}
			return next()
		}})
		first := later(func() *redlatch.Hold { return w.acquire(c.FairLock("orders"), bg) })
		time.Sleep(time.Millisecond)
		start := time.Now()
		h := w.acquire(c.FairLock("orders"), bg)
		if d := time.Since(start); d > 1100*time.Millisecond {
			t.Errorf("kept out for %v", d)
		}
		w.release(h)
		w.release(<-first)
		w.wantNothing()
	})
}

func TestTryOfAFairLockNeverQueuesAndOvertakesNobody(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b, c := w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(a.FairLock("orders"), bg)
		_, err := c.FairLock("orders").Try(bg)
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) || busy.Owner != h.Owner() || busy.TTL <= 0 {
			t.Errorf("Try of a held lock: %v", err)
		}
		if _, err := c.FairLock("orders").Acquire(bg, redlatch.Wait(0)); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Acquire with Wait(0): %v", err)
		}
		if ids := w.queue("orders"); len(ids) > 0 {
			t.Errorf("Try has queued: %q", ids)
		}
		next := w.waiting(b.FairLock("orders"), bg)
		// The lock is free, but it is the waiter's turn, who has not taken it yet.
		w.server.Del("orders")
		for _, who := range []*redlatch.Client{a, b, c} {
			if _, err := who.FairLock("orders").Try(bg); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("Try of a free lock for which somebody waits: %v", err)
			}
		}
		w.release(w.got(next)) // whom Try has told
		h2, err := c.FairLock("orders").Try(bg)
		if err != nil {
			t.Fatal(err)
		}
		w.release(h2)
		w.wantErr(h.Release(bg), redlatch.ErrLost)
		w.wantNothing()
	})
}

func TestAFairLockIsReenteredWithoutQueueingAndReleasedOnce(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		l := c.FairLock("orders")
		outer := w.acquire(l, bg)
		next := w.waiting(other.FairLock("orders"), bg)
		inner := w.acquire(l, outer.Context())
		if w.count(inner) != "2" || inner.Owner() != outer.Owner() {
			t.Fatalf("count %s", w.count(inner))
		}
		w.release(outer)
		if w.count(inner) != "1" || !none(next) {
			t.Fatalf("count %s", w.count(inner))
		}
		if _, err := c.NonReentrantFairLock("orders").Acquire(inner.Context()); !errors.Is(err, redlatch.ErrReentry) {
			t.Errorf("re-entry of a non-reentrant one: %v", err)
		}
		w.release(inner)
		w.release(w.got(next))

		ctx := redlatch.WithOwner(bg)
		one, two := w.acquire(l, ctx), w.acquire(l, ctx)
		if w.count(two) != "2" {
			t.Errorf("under WithOwner: count %s", w.count(two))
		}
		w.release(one)
		w.release(two)
		w.wantNothing()
	})
}

func TestTheWatchdogKeepsAFairLockAndALeaseEndsInTime(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(c.FairLock("orders"), bg)
		next := w.waiting(other.FairLock("orders"), bg, redlatch.Lease(5*time.Second))
		time.Sleep(10 * time.Minute) // longer than anybody's allowance
		if err := h.Err(); err != nil || !none(next) {
			t.Fatalf("after ten minutes: %v", err)
		}
		w.release(h)
		leased := w.got(next)
		if ttl := w.server.TTL("orders"); ttl > 5*time.Second {
			t.Errorf("TTL %v", ttl)
		}
		if err := leased.Extend(bg, 8*time.Second); err != nil || w.server.TTL("orders") < 7*time.Second {
			t.Errorf("Extend: %v, TTL %v", err, w.server.TTL("orders"))
		}
		after := w.waiting(c.FairLock("orders"), bg)
		h = w.got(after)
		if leased.Err() == nil {
			t.Error("given away before the holder was told")
		}
		w.release(h)
		w.wantErr(leased.Release(bg), redlatch.ErrLost)
		w.wantNothing()
	})
}

func TestMaxHoldEndsAHoldOfAFairLock(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{MaxHold: time.Minute}), w.client(redlatch.Config{})
		h := w.acquire(c.FairLock("orders"), bg)
		next := w.waiting(other.FairLock("orders"), bg)
		start := time.Now()
		w.release(w.got(next))
		if d := time.Since(start); d < 80*time.Second || d > 91*time.Second { // when its lease ends in Redis
			t.Errorf("held for %v", d)
		}
		w.wantErr(h.Release(bg), redlatch.ErrLost)
		w.wantNothing()
	})
}

func TestFairLockTokensRise(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(a.FairLock("orders"), bg, redlatch.Fenced())
		next := w.waiting(b.FairLock("orders"), bg, redlatch.Fenced())
		if _, err := b.FairLock("orders").Try(bg, redlatch.Fenced()); !errors.Is(err, redlatch.ErrBusy) {
			t.Error(err)
		}
		w.release(h)
		h2 := w.got(next)
		if h.Token() != 1 || h2.Token() != 2 {
			t.Errorf("tokens %d and %d", h.Token(), h2.Token())
		}
		w.release(h2)
	})
}

func TestForceReleaseOfAFairLockRevokesAndCallsTheNext(t *testing.T) {
	for _, whose := range []string{"own", "other's"} {
		t.Run(whose, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
				forcer := other
				if whose == "own" {
					forcer = c
				}
				h := w.acquire(c.FairLock("orders"), bg)
				next := w.waiting(other.FairLock("orders"), bg)
				start := time.Now()
				if freed, err := forcer.FairLock("orders").ForceRelease(bg); err != nil || !freed {
					t.Fatalf("freed %v, %v", freed, err)
				}
				h2 := w.got(next)
				if d := time.Since(start); d > 10*time.Millisecond {
					t.Errorf("it took %v", d)
				}
				var lost *redlatch.LostError
				if !errors.As(h.Err(), &lost) || lost.Reason != redlatch.LostRevoked {
					t.Errorf("the holder was told %v", h.Err())
				}
				w.release(h2)
				w.wantNothing()
			})
		})
	}
}

func TestForceReleaseOfADeadHoldersFairLockCallsTheNext(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		w.server.HSet("orders", wire.Owner(wire.NewClientID(), 7), "2")
		w.server.SetTTL("orders", time.Hour)
		next := w.waiting(c.FairLock("orders"), bg)
		start := time.Now()
		if freed, err := c.FairLock("orders").ForceRelease(bg); err != nil || !freed {
			t.Fatalf("freed %v, %v", freed, err)
		}
		w.release(w.got(next))
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		time.Sleep(5 * time.Second) // the word to the holder, which it has not taken
		w.wantNothing()
	})
}

func TestWaitingForAFairLockOfTheOwnProcessIsReported(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var events []redlatch.SlowWaitEvent
		c := w.client(redlatch.Config{SlowWait: 5 * time.Second, Events: redlatch.Events{SlowWait: func(e redlatch.SlowWaitEvent) { events = append(events, e) }}})
		other := w.client(redlatch.Config{})
		h := w.acquire(c.FairLock("orders"), bg)
		foreign := w.acquire(other.FairLock("foreign"), bg)
		next := w.waiting(c.FairLock("orders"), bg)
		far := w.waiting(c.FairLock("foreign"), bg)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(events) != 1 || events[0].Name != "orders" || events[0].Waited < 5*time.Second || events[0].Waited > 5100*time.Millisecond ||
			!strings.Contains(events[0].WaitSite, "fairlock_test.go") || !strings.Contains(events[0].HoldSite, "util_test.go") {
			t.Errorf("events %+v", events)
		}
		w.release(h)
		w.release(w.got(next))
		w.release(foreign)
		w.release(w.got(far))
		w.wantNothing()
	})
}

func TestTheLossOfAFairLockIsToldAtTheNextRenewal(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var lost atomic.Int64
		c := w.client(redlatch.Config{Events: redlatch.Events{Lost: func(redlatch.LostEvent) { lost.Add(1) }}})
		other := w.client(redlatch.Config{})
		h := w.acquire(c.FairLock("orders"), bg)
		next := w.waiting(other.FairLock("orders"), bg)
		w.server.Del("orders") // nobody tells the holder, but the next renewal does
		w.release(w.got(next))
		time.Sleep(11 * time.Second)
		if lost.Load() != 1 {
			t.Errorf("%d losses", lost.Load())
		}
		w.wantErr(h.Release(bg), redlatch.ErrLost)
		w.wantNothing()
	})
}

func TestADroppedHoldOfAFairLockIsReleased(t *testing.T) {
	dropped := make(chan redlatch.DroppedEvent, 1)
	w := realTime(t)
	c := w.client(redlatch.Config{Events: redlatch.Events{Dropped: func(e redlatch.DroppedEvent) { dropped <- e }}})
	if _, err := c.FairLock("orders").Acquire(bg); err != nil {
		t.Fatal(err)
	}
	for {
		runtime.GC()
		select {
		case <-dropped:
			w.release(w.acquire(c.FairLock("orders"), bg)) // comes through only if it was released
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// eavesdrop returns a function that returns what has been published on Redisson's
// channels since it was called last.
func (w *world) eavesdrop() (published func() []string) {
	sub := w.server.NewSubscriber()
	sub.Psubscribe("redisson*")
	over := make(chan struct{})
	var mu sync.Mutex
	var all []string
	go func() {
		for {
			select {
			case m := <-sub.Pmessages():
				mu.Lock()
				all = append(all, m.Channel+" "+m.Message)
				mu.Unlock()
			case <-over:
				return
			}
		}
	}()
	w.Cleanup(func() {
		close(over)
		sub.Close()
	})
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		got := all
		all = nil
		return got
	}
}

// Keys, fields, channels and scores as Redisson writes them.
func TestTheQueueOfAFairLockIsRedissons(t *testing.T) {
	for name, tag := range map[string]string{"orders": "{orders}", "{shop}:orders": "{shop}:orders"} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				a, b, c := w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.client(redlatch.Config{})
				published := w.eavesdrop()
				h := w.acquire(a.FairLock(name), bg, redlatch.Lease(10*time.Second))
				if keys := w.server.Keys(); !slices.Equal(keys, []string{name}) || w.count(h) != "1" {
					t.Fatalf("without waiters: keys %q, count %s", keys, w.count(h))
				}
				time.Sleep(time.Second)
				start := time.Now().UnixMilli()
				nb := w.waiting(b.FairLock(name), bg, redlatch.Lease(10*time.Second))
				nc := w.waiting(c.FairLock(name), bg)
				ids := w.queue(name)
				if fmt.Sprint(ids) != fmt.Sprintf("[%s:1 %s:1]", b.ID(), c.ID()) {
					t.Fatalf("queue %q", ids)
				}
				keys := []string{name, "redisson_lock_queue:" + tag, "redisson_lock_timeout:" + tag, "redlatch_alive:" + tag}
				if got := w.server.Keys(); !slices.Equal(got, slices.Sorted(slices.Values(keys))) {
					t.Errorf("keys %q, want %q", got, keys)
				}
				for _, key := range keys[1:3] {
					if ttl := w.server.TTL(key); ttl != 0 {
						t.Errorf("%s has a TTL of %v, Redisson's has none", key, ttl)
					}
				}
				if ttl := w.server.TTL(keys[3]); ttl <= 6*time.Second || ttl > 12*time.Second {
					t.Errorf("%s has a TTL of %v", keys[3], ttl)
				}
				// score(first) = now + PTTL + allowance; score(next) = score(tail) + allowance
				live, _ := w.server.SortedSet(keys[2])
				w.server.Lock()
				scores := maps.Clone(live)
				w.server.Unlock()
				if first := int64(scores[ids[0]]); first != start+9000+300000 || int64(scores[ids[1]]) != first+300000 {
					t.Errorf("scores %v, start %d", scores, start)
				}
				channels := w.server.PubSubChannels("redisson*")
				slices.Sort(channels)
				want := []string{"redisson_lock__channel:" + tag + ":" + ids[0], "redisson_lock__channel:" + tag + ":" + ids[1]}
				slices.Sort(want)
				if !slices.Equal(channels, want) {
					t.Errorf("subscribed is %q, want %q", channels, want)
				}
				w.release(h)
				hb := w.got(nb)
				synctest.Wait()
				if got := published(); !slices.Equal(got, []string{"redisson_lock__channel:" + tag + ":" + ids[0] + " 0"}) {
					t.Errorf("published %q", got)
				}
				if after, _ := w.server.ZScore(keys[2], ids[1]); after != scores[ids[1]]-300000 {
					t.Errorf("the next one's score is %.0f, was %.0f", after, scores[ids[1]])
				}
				w.release(hb)
				w.release(w.got(nc))
				w.wantNothing()
			})
		})
	}
}
