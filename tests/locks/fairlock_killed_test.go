package locks

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A cable is a process's way to the server.
type cable struct {
	*redlatch.Client
	w   *locktest.World
	p   *faultnet.Proxy
	cut atomic.Bool
}

// cabled returns a client whose connections can be cut.
func cabled(w *locktest.World, e observe.Hooks) *cable {
	w.Helper()
	c := &cable{w: w}
	c.p = faultnet.New(func(ctx context.Context) (net.Conn, error) {
		if c.cut.Load() {
			return nil, net.ErrClosed
		}
		return w.Dial(ctx)
	})
	w.Cleanup(c.p.Close)
	w.Cleanup(func() { c.cut.Store(false) }) // or the client would not end
	c.Client = w.ClientWith(w.DriverBy(c.p.Dial), redlatch.Config{OutageTimeout: time.Hour}, e)
	return c
}

// pull cuts it, as the death of the process does: the server notices at once.
func (c *cable) pull() {
	c.w.Helper()
	synctest.Wait()
	time.Sleep(3 * time.Second) // it has asked again since it listens
	c.cut.Store(true)
	c.p.BreakAll()
	synctest.Wait()
}

// soon returns the hold that comes, for as long as a test that fails can wait.
func soon(w *locktest.World, c <-chan locktest.Outcome) *redlatch.Hold {
	w.Helper()
	for end := time.Now().Add(20 * time.Second); locktest.NoneYet(c); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			w.Fatal("the lock did not come")
		}
	}
	return w.Got(c)
}

// A process that is killed closes its connections, so the server knows that its
// waiters hear nothing: nobody waits until they have been silent for six seconds.
func TestAKilledWaiterStopsNobody(t *testing.T) {
	for name, next := range map[string]func(w *locktest.World, ctx context.Context, c *redlatch.Client, h *redlatch.Hold) <-chan locktest.Outcome{
		"another waits behind it": func(w *locktest.World, ctx context.Context, c *redlatch.Client, h *redlatch.Hold) <-chan locktest.Outcome {
			next := w.Waiting(ctx, c.FairLock("orders"))
			w.Release(h)
			return next
		},
		"another comes when the lock is free": func(w *locktest.World, ctx context.Context, c *redlatch.Client, h *redlatch.Hold) <-chan locktest.Outcome {
			w.Release(h)
			return locktest.Later(func() locktest.Outcome {
				h, err := c.FairLock("orders").Acquire(ctx)
				return locktest.Outcome{Hold: h, Err: err}
			})
		},
		"another tries": func(w *locktest.World, ctx context.Context, c *redlatch.Client, h *redlatch.Hold) <-chan locktest.Outcome {
			w.Release(h)
			return locktest.Later(func() locktest.Outcome {
				h, err := c.FairLock("orders").TryAcquire(bg, 0)
				return locktest.Outcome{Hold: h, Err: err}
			})
		},
		"the holder is killed with it": func(w *locktest.World, ctx context.Context, c *redlatch.Client, _ *redlatch.Hold) <-chan locktest.Outcome {
			next := w.Waiting(ctx, c.FairLock("orders"))
			w.Server.Del("orders") // the end of its TTL
			return next
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				b := cabled(w, observe.Hooks{})
				h := w.Acquire(bg, a.FairLock("orders"))
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				for range 3 {
					w.Waiting(ctx, b.FairLock("orders"))
				}
				b.pull()
				start := time.Now()
				w.Release(soon(w, next(w, ctx, c, h)))
				most := 2 * time.Millisecond
				if name == "the holder is killed with it" {
					most = 2500 * time.Millisecond // nobody tells the next one
				}
				if took := time.Since(start); took > most {
					t.Errorf("the next live one got the lock after %v", took)
				}
				start = time.Now()
				w.Release(w.Acquire(bg, c.FairLock("orders")))
				if took := time.Since(start); took > 2*time.Millisecond {
					t.Errorf("the one after that got the lock after %v", took)
				}
				b.cut.Store(false)
				cancel()
				time.Sleep(20 * time.Second) // what it gives back
				w.WantNothing()
			})
		})
	}
}

// A waiter that subscribes again cannot be told that it has the lock, and others
// pass it meanwhile. Its place stays.
func TestAWaiterThatReconnectsHasItsPlaceStill(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, c, d := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		var requeued atomic.Int64
		b := cabled(w, observe.Hooks{Requeued: func(observe.RequeuedEvent) { requeued.Add(1) }})
		h := w.Acquire(bg, a.FairLock("orders"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		first := w.Waiting(ctx, b.FairLock("orders"))
		ids := w.Queue("orders")
		second := w.Waiting(ctx, c.FairLock("orders"))
		last := w.Waiting(ctx, d.FairLock("orders"))
		b.pull()
		w.Release(h)
		h = soon(w, second)
		if got := w.Queue("orders"); len(got) != 2 || got[0] != ids[0] {
			t.Errorf("queue %q, want %q first", got, ids[0])
		}
		b.cut.Store(false)
		time.Sleep(3 * time.Second)
		w.Release(h)
		h = soon(w, first)
		if !locktest.NoneYet(last) || requeued.Load() > 0 {
			t.Errorf("the last one has the lock, or %d have lost their places", requeued.Load())
		}
		w.Release(h)
		w.Release(soon(w, last))
		w.WantNothing()
	})
}

// A waiter that hears nothing takes a lock that is free when it looks again.
func TestAWaiterThatHearsNothingTakesAFreeLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a := w.Client(redlatch.Config{})
		b := cabled(w, observe.Hooks{})
		h := w.Acquire(bg, a.FairLock("orders"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		first, second := w.Waiting(ctx, b.FairLock("orders")), w.Waiting(ctx, b.FairLock("orders"))
		b.pull()
		w.Release(h)
		if w.Server.Exists("orders") {
			t.Error("the lock is given to one that hears nothing")
		}
		b.cut.Store(false)
		start := time.Now()
		h = soon(w, first)
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		w.Release(h)
		w.Release(soon(w, second))
		w.WantNothing()
	})
}

// Redisson's waiters take the lock from the front only.
func TestAKilledWaiterIsDroppedBeforeRedissons(t *testing.T) {
	for name, behind := range map[string]bool{"Redisson's is next": false, "Redisson's is behind another": true} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				b := cabled(w, observe.Hooks{})
				published := w.Eavesdrop() // by a pattern, which is no waiter
				h := w.Acquire(bg, a.FairLock("orders"))
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				for range 2 {
					w.Waiting(ctx, b.FairLock("orders"))
				}
				var ours <-chan locktest.Outcome
				if behind {
					ours = w.Waiting(ctx, c.FairLock("orders"))
				}
				java, wait := javaBehind(w, "orders", 1)
				if !behind {
					ours = w.Waiting(ctx, c.FairLock("orders"))
				}
				b.pull()
				if behind {
					w.Release(h)
					h = soon(w, ours)
					if got := w.Queue("orders"); len(got) != 3 {
						t.Fatalf("queue %q", got)
					}
				}
				published()
				w.Release(h)
				if got, want := published(), "redisson_lock__channel:{orders}:"+java.Owner+" 0"; !slices.Equal(got, []string{want}) {
					t.Errorf("published %q, want %q", got, want)
				}
				_, timeouts, _ := locktest.FairKeys("orders")
				if score, _ := w.Server.ZScore(timeouts, java.Owner); time.Until(time.UnixMilli(int64(score))) > wait {
					t.Errorf("the score of Redisson's is that of one behind others: %.0f", score)
				}
				if !java.Take() {
					t.Fatalf("it is not Redisson's turn; queue %q", w.Queue("orders"))
				}
				java.Unlock()
				if !behind {
					w.Release(soon(w, ours))
				}
				b.cut.Store(false)
				cancel()
				time.Sleep(20 * time.Second)
				w.WantNothing()
			})
		})
	}
}

// Nobody comes for the lock any more: the two keys of Redisson's have no TTL.
func TestAForceReleaseRemovesTheQueueOfThoseWhoHaveDied(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a := w.Client(redlatch.Config{})
		b := cabled(w, observe.Hooks{})
		h := w.Acquire(bg, a.FairLock("orders"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		for range 3 {
			w.Waiting(ctx, b.FairLock("orders"))
		}
		b.pull()
		w.Release(h)
		for _, want := range []int{3, 0} {
			if info, err := admin.New(a).Info(bg, "orders"); err != nil || info.Kind != redlatch.KindFair {
				t.Errorf("it is a %q, %v", info.Kind, err)
			}
			if freed, err := admin.ForceRelease(bg, a.FairLock("orders")); freed || err != nil {
				t.Errorf("ForceRelease: %v, %v", freed, err)
			}
			if n := len(w.Queue("orders")); n != want {
				t.Errorf("%d are left in the queue, want %d", n, want)
			}
			time.Sleep(7 * time.Second)
		}
		w.WantNoKeys()
		b.cut.Store(false)
		cancel()
		time.Sleep(20 * time.Second)
		w.WantNothing()
	})
}
