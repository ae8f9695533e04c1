package locks

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestWhoGivesUpLeavesTheQueueAtOnce(t *testing.T) {
	for name, give := range map[string]func(*testing.T, context.CancelFunc, <-chan locktest.Outcome){
		"cancelled": func(t *testing.T, cancel context.CancelFunc, c <-chan locktest.Outcome) {
			cancel()
			if o := <-c; !errors.Is(o.Err, context.Canceled) || !errors.Is(o.Err, redlatch.ErrBusy) {
				t.Errorf("Acquire: %v", o.Err)
			}
		},
		"out of patience": func(t *testing.T, _ context.CancelFunc, c <-chan locktest.Outcome) {
			if o := <-c; !errors.Is(o.Err, redlatch.ErrBusy) || errors.Is(o.Err, context.DeadlineExceeded) {
				t.Errorf("Acquire: %v", o.Err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a, b, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				h := w.Acquire(bg, a.FairLock("orders"))
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				first := w.Waiting(bg, b.FairLock("orders"))
				gone := w.WaitingFor(ctx, b.FairLock("orders"), map[bool]time.Duration{true: time.Hour, false: 10 * time.Second}[name == "cancelled"])
				last := w.Waiting(bg, c.FairLock("orders"))
				_, timeouts, _ := locktest.FairKeys("orders")
				ids := w.Queue("orders")
				before, _ := w.Server.ZScore(timeouts, ids[2])
				give(t, cancel, gone)
				synctest.Wait()
				if left := w.Queue("orders"); len(left) != 2 || left[0] != ids[0] || left[1] != ids[2] {
					t.Errorf("the queue was %q and is %q", ids, left)
				}
				if after, _ := w.Server.ZScore(timeouts, ids[2]); after != math.Floor(before)-300000 {
					t.Errorf("who stood behind had the score %.0f and has %.0f", before, after)
				}
				w.Release(h)
				w.Release(w.Got(first))
				w.Release(w.Got(last))
				w.WantNothing()
			})
		})
	}
}

// It was told that it is its turn, and goes: the next one must be told.
func TestWhoLeavesInsteadOfTakingCallsTheNext(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var leaving atomic.Bool
		gone, cancel := context.WithCancel(bg)
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.take" && leaving.Load() {
				cancel()
				time.Sleep(time.Millisecond)
				return driver.Reply{}, &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("no connection")}
			}
			return next()
		}})
		a, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		first := w.Waiting(gone, c.FairLock("orders", redlatch.Lease(time.Minute))) // it is not given the lock
		next := w.Waiting(bg, other.FairLock("orders"))
		leaving.Store(true)
		start := time.Now()
		w.Release(h)
		w.WantErr((<-first).Err, context.Canceled)
		w.Release(w.Got(next))
		if d := time.Since(start); d > 20*time.Millisecond {
			t.Errorf("the next one got the lock after %v", d)
		}
		w.WantNothing()
	})
}

// The context ends while the request for a place is in flight: whoever it is
// that arrives first, nobody stays in the queue.
func TestWhoGivesUpWhileLiningUpLeavesTheQueue(t *testing.T) {
	for name, hold := range map[string]func(func() (driver.Reply, error)) (driver.Reply, error){
		"a slow request": func(next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(50 * time.Millisecond)
			return next()
		},
		"a slow reply": func(next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			time.Sleep(50 * time.Millisecond)
			return r, err
		},
		"a lost reply": func(next func() (driver.Reply, error)) (driver.Reply, error) {
			_, _ = next()
			time.Sleep(50 * time.Millisecond)
			return driver.Reply{}, locktest.ErrReplyLost
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var n atomic.Int64
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == "fairlock.take" && n.Add(1) == 1 {
						return hold(next)
					}
					return next()
				}})
				other := w.Client(redlatch.Config{})
				h := w.Acquire(bg, other.FairLock("orders"))
				ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
				defer cancel()
				start := time.Now()
				_, err := c.FairLock("orders").Acquire(ctx)
				w.WantErr(err, context.DeadlineExceeded, redlatch.ErrBusy)
				if d := time.Since(start); d > 21*time.Millisecond {
					t.Errorf("Acquire returned after %v", d)
				}
				time.Sleep(100 * time.Millisecond)
				if ids := w.Queue("orders"); len(ids) > 0 {
					t.Errorf("in the queue: %q", ids)
				}
				w.Release(h)
				w.WantNothing()
			})
		})
	}
}

// The lock became free while the caller gave up: it must not stay taken.
func TestALockThatIsWonWhileGivingUpGoesToTheNext(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var slow atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "fairlock.take" && slow.Load() {
				time.Sleep(50 * time.Millisecond)
			}
			return r, err
		}})
		other := w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.FairLock("orders"))
		ctx, cancel := context.WithCancel(bg)
		first := w.Waiting(ctx, c.FairLock("orders", redlatch.Lease(time.Minute))) // it is not given the lock
		next := w.Waiting(bg, other.FairLock("orders"))
		slow.Store(true)
		start := time.Now()
		w.Release(h)
		time.Sleep(20 * time.Millisecond)
		cancel()
		w.WantErr((<-first).Err, context.Canceled)
		w.Release(w.Got(next))
		if d := time.Since(start); d > 60*time.Millisecond {
			t.Errorf("the next one got the lock after %v", d)
		}
		w.WantNothing()
	})
}

// A request for a place that arrives when the caller has long gone: it stands in
// the queue, or has the lock, until the debts are paid.
func TestALateRequestForAPlaceBlocksNobodyForLong(t *testing.T) {
	for name, tt := range map[string]struct {
		held bool
		most time.Duration
	}{
		"while somebody holds the lock": {true, time.Millisecond},
		"while the lock is free":        {false, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var n atomic.Int64
				d := &locktest.Tap{}
				var args []string
				d.Hook = func(s string, a []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == "fairlock.take" && n.Add(1) == 1 {
						args = append(args, a...)
						return driver.Reply{}, locktest.ErrReplyLost // on its way still
					}
					return next()
				}
				c := w.Tapped(redlatch.Config{}, d)
				other, third := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				h := w.Acquire(bg, other.FairLock("orders"))
				ctx, cancel := context.WithCancel(bg)
				gone := w.Waiting(ctx, c.FairLock("orders"))
				cancel()
				w.WantErr((<-gone).Err, context.Canceled)
				synctest.Wait()
				if ids := w.Queue("orders"); len(ids) > 0 {
					t.Fatalf("in the queue: %q", ids)
				}
				if !tt.held {
					w.Release(h)
				}
				late := d.Again("fairlock.take", args)
				late()
				if tt.held && len(w.Queue("orders")) != 1 {
					t.Fatal("the late request does nothing: this test shows nothing")
				}
				next := w.Waiting(bg, third.FairLock("orders"))
				if tt.held {
					time.Sleep(1100 * time.Millisecond) // the first debt is paid
					w.Release(h)
				}
				start := time.Now()
				w.Release(w.Got(next))
				if took := time.Since(start); took > tt.most {
					t.Errorf("blocked for %v", took)
				}
				time.Sleep(150 * time.Second)
				w.WantNothing()
			})
		})
	}
}

// Its own client meets what the late request has planted, and removes it.
func TestALateRequestForAPlaceIsUndoneByItsOwnClient(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var n atomic.Int64
		d := &locktest.Tap{}
		var args []string
		d.Hook = func(s string, a []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.take" && n.Add(1) == 1 {
				args = append(args, a...)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}
		c := w.Tapped(redlatch.Config{}, d)
		other := w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.FairLock("orders"))
		ctx, cancel := context.WithCancel(bg)
		gone := w.Waiting(ctx, c.FairLock("orders"))
		cancel()
		<-gone
		time.Sleep(15 * time.Second) // three debts have been paid, the next is due in 15 s
		d.Again("fairlock.take", args)()
		if len(w.Queue("orders")) != 1 {
			t.Fatal("the late request does nothing: this test shows nothing")
		}
		w.Release(h)
		start := time.Now()
		w.Release(w.Acquire(bg, c.FairLock("orders")))
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("the client waited %v for itself", took)
		}
		time.Sleep(150 * time.Second)
		w.WantNothing()
	})
}

func TestCloseTakesItsWaitersOutOfTheQueue(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{}
		c := w.Tapped(redlatch.Config{}, d)
		other := w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.FairLock("orders"))
		var waits []<-chan locktest.Outcome
		for range 50 {
			waits = append(waits, w.Waiting(bg, c.FairLock("orders")))
		}
		next := w.Waiting(bg, other.FairLock("orders"))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if ids := w.Queue("orders"); len(ids) != 1 {
			t.Errorf("%d in the queue after Close", len(ids))
		}
		for _, c := range waits {
			w.WantErr((<-c).Err, redlatch.ErrClosed)
		}
		synctest.Wait()
		if n := d.Subs.Load(); n != 0 {
			t.Errorf("%d subscriptions after Close", n)
		}
		if _, err := c.FairLock("orders").Acquire(bg); !errors.Is(err, redlatch.ErrClosed) {
			t.Errorf("Acquire after Close: %v", err)
		}
		w.Release(h)
		w.Release(w.Got(next))
		w.WantNothing()
	})
}

// The server refuses, or cannot be reached: the place is given up too, once it
// can be.
func TestWhoFailsWhileWaitingLeavesTheQueue(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.FairLock("orders", redlatch.Lease(time.Hour)))
		failed := w.Waiting(bg, c.FairLock("orders"))
		w.Server.SetError("LOADING for a while")
		o := <-failed
		w.WantErr(o.Err, redlatch.ErrUnavailable)
		w.Server.SetError("")
		time.Sleep(10 * time.Second)
		if ids := w.Queue("orders"); len(ids) > 0 {
			t.Errorf("in the queue: %q", ids)
		}
		w.Release(h)

		h = w.Acquire(bg, other.FairLock("orders", redlatch.Lease(time.Hour)))
		failed = w.Waiting(bg, c.FairLock("orders"))
		w.Server.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
			if strings.HasSuffix(cmd, "UNSUBSCRIBE") { // refused, it would be nobody's who could send it again
				return false
			}
			c.WriteError("NOPERM no more")
			return true
		})
		o = <-failed
		if o.Err == nil || redlatch.IsRetryable(o.Err) {
			t.Errorf("Acquire: %v", o.Err)
		}
		w.Server.SetError("")
		time.Sleep(4 * time.Second)
		if ids := w.Queue("orders"); len(ids) > 0 {
			t.Errorf("in the queue: %q", ids)
		}
		w.Release(h)
		time.Sleep(150 * time.Second)
		w.WantNothing()
	})
}

// A failover brings back a place that its waiter has left. Its client lives, as it
// waits there again, and has detached a hold since: of an older id it cannot know
// whether it was detached, too.
func TestAPlaceThatComesBackKeepsNobodyWaitingAfterADetach(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		id := w.Detach(w.Acquire(bg, a.FairLock("apart", redlatch.Lease(time.Second))))
		h := w.Acquire(bg, b.FairLock("orders"))
		next := w.Waiting(bg, a.FairLock("orders"))
		queue, timeouts, _ := locktest.FairKeys("orders")
		if _, err := w.Server.Lpush(queue, id); err != nil {
			w.Fatal(err)
		}
		if _, err := w.Server.ZAdd(timeouts, float64(time.Now().Add(time.Minute).UnixMilli()), id); err != nil {
			w.Fatal(err)
		}
		w.Release(h)
		select {
		case got := <-next:
			w.WantErr(got.Err)
			w.Release(got.Hold)
		case <-time.After(time.Minute):
			w.Fatalf("it waits behind %q", w.Queue("orders"))
		}
	})
}
