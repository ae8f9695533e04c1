package redlatch_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

func TestWhoGivesUpLeavesTheQueueAtOnce(t *testing.T) {
	for name, give := range map[string]func(*testing.T, context.CancelFunc, <-chan outcome){
		"cancelled": func(t *testing.T, cancel context.CancelFunc, c <-chan outcome) {
			cancel()
			if o := <-c; !errors.Is(o.err, context.Canceled) || !errors.Is(o.err, redlatch.ErrBusy) {
				t.Errorf("Acquire: %v", o.err)
			}
		},
		"out of patience": func(t *testing.T, _ context.CancelFunc, c <-chan outcome) {
			if o := <-c; !errors.Is(o.err, redlatch.ErrBusy) || errors.Is(o.err, context.DeadlineExceeded) {
				t.Errorf("Acquire: %v", o.err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				a, b, c := w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.client(redlatch.Config{})
				h := w.acquire(a.FairLock("orders"), bg)
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				var opts []redlatch.Option
				if name != "cancelled" {
					opts = append(opts, redlatch.Wait(10*time.Second))
				}
				first := w.waiting(b.FairLock("orders"), bg)
				gone := w.waiting(b.FairLock("orders"), ctx, opts...)
				last := w.waiting(c.FairLock("orders"), bg)
				_, timeouts, _ := fairKeys("orders")
				ids := w.queue("orders")
				before, _ := w.server.ZScore(timeouts, ids[2])
				give(t, cancel, gone)
				synctest.Wait()
				if left := w.queue("orders"); len(left) != 2 || left[0] != ids[0] || left[1] != ids[2] {
					t.Errorf("the queue was %q and is %q", ids, left)
				}
				if after, _ := w.server.ZScore(timeouts, ids[2]); after != before-300000 {
					t.Errorf("who stood behind had the score %.0f and has %.0f", before, after)
				}
				w.release(h)
				w.release(w.got(first))
				w.release(w.got(last))
				w.wantNothing()
			})
		})
	}
}

// It was told that it is its turn, and goes: the next one must be told.
func TestWhoLeavesInsteadOfTakingCallsTheNext(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var leaving atomic.Bool
		gone, cancel := context.WithCancel(bg)
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.take" && leaving.Load() {
				cancel()
				time.Sleep(time.Millisecond)
				return driver.Reply{}, &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("no connection")}
			}
			return next()
		}})
		a, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(a.FairLock("orders"), bg)
		first := w.waiting(c.FairLock("orders"), gone, redlatch.Lease(time.Minute)) // it is not given the lock
		next := w.waiting(other.FairLock("orders"), bg)
		leaving.Store(true)
		start := time.Now()
		w.release(h)
		w.wantErr((<-first).err, context.Canceled)
		w.release(w.got(next))
		if d := time.Since(start); d > 20*time.Millisecond {
			t.Errorf("the next one got the lock after %v", d)
		}
		w.wantNothing()
	})
}

// The context ends while the request for a place is under way: whoever it is
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
			return driver.Reply{}, errTapUnknown
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				var n atomic.Int64
				c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == "fairlock.take" && n.Add(1) == 1 {
						return hold(next)
					}
					return next()
				}})
				other := w.client(redlatch.Config{})
				h := w.acquire(other.FairLock("orders"), bg)
				ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
				defer cancel()
				start := time.Now()
				_, err := c.FairLock("orders").Acquire(ctx)
				w.wantErr(err, context.DeadlineExceeded, redlatch.ErrBusy)
				if d := time.Since(start); d > 21*time.Millisecond {
					t.Errorf("Acquire returned after %v", d)
				}
				time.Sleep(100 * time.Millisecond)
				if ids := w.queue("orders"); len(ids) > 0 {
					t.Errorf("in the queue: %q", ids)
				}
				w.release(h)
				w.wantNothing()
			})
		})
	}
}

// The lock became free while the caller gave up: it must not stay taken.
func TestALockThatIsWonWhileGivingUpGoesToTheNext(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var slow atomic.Bool
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "fairlock.take" && slow.Load() {
				time.Sleep(50 * time.Millisecond)
			}
			return r, err
		}})
		other := w.client(redlatch.Config{})
		h := w.acquire(other.FairLock("orders"), bg)
		ctx, cancel := context.WithCancel(bg)
		first := w.waiting(c.FairLock("orders"), ctx, redlatch.Lease(time.Minute)) // it is not given the lock
		next := w.waiting(other.FairLock("orders"), bg)
		slow.Store(true)
		start := time.Now()
		w.release(h)
		time.Sleep(20 * time.Millisecond)
		cancel()
		w.wantErr((<-first).err, context.Canceled)
		w.release(w.got(next))
		if d := time.Since(start); d > 60*time.Millisecond {
			t.Errorf("the next one got the lock after %v", d)
		}
		w.wantNothing()
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
			inFakeTime(t, func(w *world) {
				var n atomic.Int64
				d := &tap{}
				var args []string
				d.hook = func(s string, a []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == "fairlock.take" && n.Add(1) == 1 {
						args = append(args, a...)
						return driver.Reply{}, errTapUnknown // on its way still
					}
					return next()
				}
				c := w.tapped(redlatch.Config{}, d)
				other, third := w.client(redlatch.Config{}), w.client(redlatch.Config{})
				h := w.acquire(other.FairLock("orders"), bg)
				ctx, cancel := context.WithCancel(bg)
				gone := w.waiting(c.FairLock("orders"), ctx)
				cancel()
				w.wantErr((<-gone).err, context.Canceled)
				synctest.Wait()
				if ids := w.queue("orders"); len(ids) > 0 {
					t.Fatalf("in the queue: %q", ids)
				}
				if !tt.held {
					w.release(h)
				}
				late := d.again("fairlock.take", args)
				late()
				if tt.held && len(w.queue("orders")) != 1 {
					t.Fatal("the late request does nothing: this test shows nothing")
				}
				next := w.waiting(third.FairLock("orders"), bg)
				if tt.held {
					time.Sleep(1100 * time.Millisecond) // the first debt is paid
					w.release(h)
				}
				start := time.Now()
				w.release(w.got(next))
				if took := time.Since(start); took > tt.most {
					t.Errorf("blocked for %v", took)
				}
				time.Sleep(150 * time.Second)
				w.wantNothing()
			})
		})
	}
}

// Its own client meets what the late request has planted, and removes it.
func TestALateRequestForAPlaceIsUndoneByItsOwnClient(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{}
		var args []string
		d.hook = func(s string, a []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.take" && n.Add(1) == 1 {
				args = append(args, a...)
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}
		c := w.tapped(redlatch.Config{}, d)
		other := w.client(redlatch.Config{})
		h := w.acquire(other.FairLock("orders"), bg)
		ctx, cancel := context.WithCancel(bg)
		gone := w.waiting(c.FairLock("orders"), ctx)
		cancel()
		<-gone
		time.Sleep(15 * time.Second) // three debts have been paid, the next is due in 15 s
		d.again("fairlock.take", args)()
		if len(w.queue("orders")) != 1 {
			t.Fatal("the late request does nothing: this test shows nothing")
		}
		w.release(h)
		start := time.Now()
		w.release(w.acquire(c.FairLock("orders"), bg))
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("the client waited %v for itself", took)
		}
		time.Sleep(150 * time.Second)
		w.wantNothing()
	})
}

func TestCloseTakesItsWaitersOutOfTheQueue(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{}
		c := w.tapped(redlatch.Config{}, d)
		other := w.client(redlatch.Config{})
		h := w.acquire(other.FairLock("orders"), bg)
		var waits []<-chan outcome
		for range 50 {
			waits = append(waits, w.waiting(c.FairLock("orders"), bg))
		}
		next := w.waiting(other.FairLock("orders"), bg)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if ids := w.queue("orders"); len(ids) != 1 {
			t.Errorf("%d in the queue after Close", len(ids))
		}
		for _, c := range waits {
			w.wantErr((<-c).err, redlatch.ErrClosed)
		}
		synctest.Wait()
		if n := d.subs.Load(); n != 0 {
			t.Errorf("%d subscriptions after Close", n)
		}
		if _, err := c.FairLock("orders").Acquire(bg); !errors.Is(err, redlatch.ErrClosed) {
			t.Errorf("Acquire after Close: %v", err)
		}
		w.release(h)
		w.release(w.got(next))
		w.wantNothing()
	})
}

// The server refuses, or cannot be reached: the place is given up too, once it
// can be.
func TestWhoFailsWhileWaitingLeavesTheQueue(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(other.FairLock("orders"), bg, redlatch.Lease(time.Hour))
		failed := w.waiting(c.FairLock("orders"), bg)
		w.server.SetError("LOADING for a while")
		o := <-failed
		w.wantErr(o.err, redlatch.ErrUnavailable)
		w.server.SetError("")
		time.Sleep(10 * time.Second)
		if ids := w.queue("orders"); len(ids) > 0 {
			t.Errorf("in the queue: %q", ids)
		}
		w.release(h)

		h = w.acquire(other.FairLock("orders"), bg, redlatch.Lease(time.Hour))
		failed = w.waiting(c.FairLock("orders"), bg)
		w.server.SetError("NOPERM no more")
		o = <-failed
		if o.err == nil || redlatch.IsRetryable(o.err) {
			t.Errorf("Acquire: %v", o.err)
		}
		w.server.SetError("")
		time.Sleep(4 * time.Second)
		if ids := w.queue("orders"); len(ids) > 0 {
			t.Errorf("in the queue: %q", ids)
		}
		w.release(h)
		time.Sleep(150 * time.Second)
		w.wantNothing()
	})
}
