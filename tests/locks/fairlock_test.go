package locks

import (
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
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestFairLockIsGivenInTheOrderOfAskingAcrossProcessesAndGoroutines(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		clients := []*redlatch.Client{w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})}
		h := w.Acquire(bg, clients[0].FairLock("orders"))
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
		if n := len(w.Queue("orders")); n != 60 {
			t.Fatalf("%d in the queue", n)
		}
		start := time.Now()
		w.Release(h)
		wg.Wait()
		if !slices.IsSorted(order) || len(order) != 60 {
			t.Errorf("order %v", order)
		}
		if d := time.Since(start); d > 100*time.Millisecond {
			t.Errorf("60 hand-offs took %v", d)
		}
		w.WantNothing()
	})
}

// They ask at the same time, over a driver that reorders what is in flight.
func TestGoroutinesOfOneProcessStandInTheQueueInTheOrderOfTheirCalls(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var n atomic.Int64
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.take" {
				time.Sleep(time.Duration(20-n.Add(1)%20) * time.Millisecond) // the later, the faster
			}
			return next()
		}})
		other := w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.FairLock("orders"))
		var order []int
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				h := w.Acquire(bg, c.FairLock("orders"))
				order = append(order, i)
				w.Release(h)
			})
			time.Sleep(time.Microsecond)
		}
		time.Sleep(time.Second)
		w.Release(h)
		wg.Wait()
		if !slices.IsSorted(order) {
			t.Errorf("order %v", order)
		}
	})
}

// Somebody whose request hangs at the entrance must not keep the others out.
func TestACallerWhoseRequestHangsKeepsNobodyFromTheQueue(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var hung atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.take" && hung.CompareAndSwap(false, true) {
				time.Sleep(2900 * time.Millisecond)
			}
			return next()
		}})
		first := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, c.FairLock("orders")) })
		time.Sleep(time.Millisecond)
		start := time.Now()
		h := w.Acquire(bg, c.FairLock("orders"))
		if d := time.Since(start); d > 1100*time.Millisecond {
			t.Errorf("kept out for %v", d)
		}
		w.Release(h)
		w.Release(<-first)
		w.WantNothing()
	})
}

func TestTryOfAFairLockNeverQueuesAndOvertakesNobody(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		_, err := c.FairLock("orders").TryAcquire(bg, 0)
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) || busy.Owner != h.ID() || busy.TTL <= 0 {
			t.Errorf("Try of a held lock: %v", err)
		}
		if _, err := c.FairLock("orders").TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Acquire with Wait(0): %v", err)
		}
		if ids := w.Queue("orders"); len(ids) > 0 {
			t.Errorf("Try has queued: %q", ids)
		}
		next := w.Waiting(bg, b.FairLock("orders"))
		// The lock is free, but it is the waiter's turn, who has not taken it yet.
		w.Server.Del("orders")
		for _, who := range []*redlatch.Client{a, b, c} {
			if _, err := who.FairLock("orders").TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("Try of a free lock for which somebody waits: %v", err)
			}
		}
		w.Release(w.Got(next)) // whom Try has told
		h2, err := c.FairLock("orders").TryAcquire(bg, 0)
		if err != nil {
			t.Fatal(err)
		}
		w.Release(h2)
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.WantNothing()
	})
}

func TestAFairLockIsReenteredWithoutQueueingAndReleasedOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		l := c.FairLock("orders")
		outer := w.Acquire(bg, l)
		next := w.Waiting(bg, other.FairLock("orders"))
		inner := w.Acquire(outer.Context(), l)
		if w.Count(inner) != "2" || inner.ID() != outer.ID() {
			t.Fatalf("count %s", w.Count(inner))
		}
		w.Release(outer)
		if w.Count(inner) != "1" || !locktest.NoneYet(next) {
			t.Fatalf("count %s", w.Count(inner))
		}
		if _, err := c.FairLock("orders", redlatch.NonReentrant()).Acquire(inner.Context()); !errors.Is(err, redlatch.ErrReentry) {
			t.Errorf("re-entry of a non-reentrant one: %v", err)
		}
		w.Release(inner)
		w.Release(w.Got(next))

		ctx := redlatch.WithOwner(bg)
		one, two := w.Acquire(ctx, l), w.Acquire(ctx, l)
		if w.Count(two) != "2" {
			t.Errorf("under WithOwner: count %s", w.Count(two))
		}
		w.Release(one)
		w.Release(two)
		w.WantNothing()
	})
}

func TestTheWatchdogKeepsAFairLockAndALeaseEndsInTime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.FairLock("orders"))
		next := w.Waiting(bg, other.FairLock("orders", redlatch.Lease(5*time.Second)))
		time.Sleep(10 * time.Minute) // longer than anybody's allowance
		if err := h.Err(); err != nil || !locktest.NoneYet(next) {
			t.Fatalf("after ten minutes: %v", err)
		}
		w.Release(h)
		leased := w.Got(next)
		if ttl := w.Server.TTL("orders"); ttl > 5*time.Second {
			t.Errorf("TTL %v", ttl)
		}
		if err := leased.Extend(bg, 8*time.Second); err != nil || w.Server.TTL("orders") < 7*time.Second {
			t.Errorf("Extend: %v, TTL %v", err, w.Server.TTL("orders"))
		}
		after := w.Waiting(bg, c.FairLock("orders"))
		h = w.Got(after)
		if leased.Err() == nil {
			t.Error("given away before the holder was told")
		}
		w.Release(h)
		w.WantErr(leased.Release(bg), redlatch.ErrLost)
		w.WantNothing()
	})
}

func TestMaxHoldEndsAHoldOfAFairLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{MaxHold: time.Minute}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.FairLock("orders"))
		next := w.Waiting(bg, other.FairLock("orders"))
		start := time.Now()
		w.Release(w.Got(next))
		if d := time.Since(start); d < 80*time.Second || d > 91*time.Second { // when its lease ends in Redis
			t.Errorf("held for %v", d)
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.WantNothing()
	})
}

func TestFairLockTokensRise(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders", redlatch.Fenced()))
		next := w.Waiting(bg, b.FairLock("orders", redlatch.Fenced()))
		if _, err := b.FairLock("orders", redlatch.Fenced()).TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Error(err)
		}
		w.Release(h)
		h2 := w.Got(next)
		if h.Token() != 1 || h2.Token() != 2 {
			t.Errorf("tokens %d and %d", h.Token(), h2.Token())
		}
		w.Release(h2)
	})
}

func TestForceReleaseOfAFairLockRevokesAndCallsTheNext(t *testing.T) {
	for _, whose := range []string{"own", "other's"} {
		t.Run(whose, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				forcer := other
				if whose == "own" {
					forcer = c
				}
				h := w.Acquire(bg, c.FairLock("orders"))
				next := w.Waiting(bg, other.FairLock("orders"))
				start := time.Now()
				if freed, err := admin.ForceRelease(bg, forcer.FairLock("orders")); err != nil || !freed {
					t.Fatalf("freed %v, %v", freed, err)
				}
				h2 := w.Got(next)
				if d := time.Since(start); d > 10*time.Millisecond {
					t.Errorf("it took %v", d)
				}
				var lost *redlatch.LostError
				if !errors.As(h.Err(), &lost) || lost.Reason != redlatch.LostRevoked {
					t.Errorf("the holder was told %v", h.Err())
				}
				w.Release(h2)
				w.WantNothing()
			})
		})
	}
}

func TestForceReleaseOfADeadHoldersFairLockCallsTheNext(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		w.Server.HSet("orders", wire.Owner(wire.NewClientID(), 7), "2")
		w.Server.SetTTL("orders", time.Hour)
		next := w.Waiting(bg, c.FairLock("orders"))
		start := time.Now()
		if freed, err := admin.ForceRelease(bg, c.FairLock("orders")); err != nil || !freed {
			t.Fatalf("freed %v, %v", freed, err)
		}
		w.Release(w.Got(next))
		if d := time.Since(start); d > 1010*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		time.Sleep(5 * time.Second) // the word to the holder, which it has not taken
		w.WantNothing()
	})
}

func TestWaitingForAFairLockOfTheOwnProcessIsReported(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var events []observe.SlowWaitEvent
		c := w.Client(redlatch.Config{SlowWait: 5 * time.Second}, observe.Hooks{SlowWait: func(e observe.SlowWaitEvent) { events = append(events, e) }})
		other := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.FairLock("orders"))
		foreign := w.Acquire(bg, other.FairLock("foreign"))
		next := w.Waiting(bg, c.FairLock("orders"))
		far := w.Waiting(bg, c.FairLock("foreign"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(events) != 1 || events[0].Name != "orders" || events[0].Waited < 5*time.Second || events[0].Waited > 5100*time.Millisecond ||
			!strings.Contains(events[0].WaitSite, "locktest/waiting.go") || !strings.Contains(events[0].HoldSite, "locktest/world.go") {
			t.Errorf("events %+v", events)
		}
		w.Release(h)
		w.Release(w.Got(next))
		w.Release(foreign)
		w.Release(w.Got(far))
		w.WantNothing()
	})
}

func TestTheLossOfAFairLockIsToldAtTheNextRenewal(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lost atomic.Int64
		c := w.Client(redlatch.Config{}, observe.Hooks{Lost: func(observe.LostEvent) { lost.Add(1) }})
		other := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.FairLock("orders"))
		next := w.Waiting(bg, other.FairLock("orders"))
		w.Server.Del("orders") // nobody tells the holder, but the next renewal does
		w.Release(w.Got(next))
		time.Sleep(11 * time.Second)
		if lost.Load() != 1 {
			t.Errorf("%d losses", lost.Load())
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.WantNothing()
	})
}

func TestADroppedHoldOfAFairLockIsReleased(t *testing.T) {
	dropped := make(chan observe.DroppedEvent, 1)
	w := locktest.InRealTime(t)
	c := w.Client(redlatch.Config{}, observe.Hooks{Dropped: func(e observe.DroppedEvent) { dropped <- e }})
	if _, err := c.FairLock("orders").Acquire(bg); err != nil {
		t.Fatal(err)
	}
	for {
		runtime.GC()
		select {
		case <-dropped:
			w.Release(w.Acquire(bg, c.FairLock("orders"))) // comes through only if it was released
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Keys, fields, channels and scores as Redisson writes them.
func TestTheQueueOfAFairLockIsRedissons(t *testing.T) {
	for name, tag := range map[string]string{"orders": "{orders}", "{shop}:orders": "{shop}:orders"} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a, b, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				published := w.Eavesdrop()
				h := w.Acquire(bg, a.FairLock(name, redlatch.Lease(10*time.Second)))
				if keys := w.Keys(); !slices.Equal(keys, []string{name}) || w.Count(h) != "1" {
					t.Fatalf("without waiters: keys %q, count %s", keys, w.Count(h))
				}
				time.Sleep(time.Second)
				start := time.Now().UnixMilli()
				nb := w.Waiting(bg, b.FairLock(name, redlatch.Lease(10*time.Second)))
				nc := w.Waiting(bg, c.FairLock(name))
				ids := w.Queue(name)
				if fmt.Sprint(ids) != fmt.Sprintf("[%s:1 %s:1]", b.ID(), c.ID()) {
					t.Fatalf("queue %q", ids)
				}
				keys := []string{name, "redisson_lock_queue:" + tag, "redisson_lock_timeout:" + tag, "redlatch_alive:" + tag}
				if got := w.Keys(); !slices.Equal(got, slices.Sorted(slices.Values(keys))) {
					t.Errorf("keys %q, want %q", got, keys)
				}
				for _, key := range keys[1:3] {
					if ttl := w.Server.TTL(key); ttl != 0 {
						t.Errorf("%s has a TTL of %v, Redisson's has none", key, ttl)
					}
				}
				if ttl := w.Server.TTL(keys[3]); ttl <= 6*time.Second || ttl > 12*time.Second {
					t.Errorf("%s has a TTL of %v", keys[3], ttl)
				}
				// score(last) = now + PTTL + 2 allowances + ½; score(first) = now + allowance
				live, _ := w.Server.SortedSet(keys[2])
				w.Server.Lock()
				scores := maps.Clone(live)
				w.Server.Unlock()
				if scores[ids[0]] != float64(start+300000) || scores[ids[1]] != float64(start+9000+600000)+0.5 {
					t.Errorf("scores %v, start %d", scores, start)
				}
				channels := w.Server.PubSubChannels("redisson*")
				slices.Sort(channels)
				want := []string{"redisson_lock__channel:" + tag + ":" + ids[0], "redisson_lock__channel:" + tag + ":" + ids[1]}
				slices.Sort(want)
				if !slices.Equal(channels, want) {
					t.Errorf("subscribed is %q, want %q", channels, want)
				}
				w.Release(h)
				hb := w.Got(nb)
				synctest.Wait()
				if got := published(); !slices.Equal(got, []string{"redisson_lock__channel:" + tag + ":" + ids[0] + " 0"}) {
					t.Errorf("published %q", got)
				}
				if after, _ := w.Server.ZScore(keys[2], ids[1]); after != scores[ids[1]]-300000 {
					t.Errorf("the next one's score is %.0f, was %.0f", after, scores[ids[1]])
				}
				w.Release(hb)
				w.Release(w.Got(nc))
				w.WantNothing()
			})
		})
	}
}
