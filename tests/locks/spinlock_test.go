package locks

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redisson testExponentialBackoff, testConstantBackoff: growth, cap, jitter.
func TestBackoffsGrowToTheirCapWithinTheirJitter(t *testing.T) {
	def := redisson.Exponential(time.Millisecond, 128*time.Millisecond)
	for n, ms := range map[int]int{
		-1: 1, 0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 6: 32, 7: 64, 8: 128, 9: 128, 31: 128, 32: 128, 33: 128, 64: 128, 1 << 40: 128,
	} {
		want := time.Duration(ms) * time.Millisecond
		lowest, highest := time.Hour, time.Duration(0)
		for range 2000 {
			d := def(n)
			lowest, highest = min(lowest, d), max(highest, d)
		}
		if lowest < want*3/4 || highest > want*5/4 {
			t.Errorf("try %d: %v to %v, want %v give or take a quarter", n, lowest, highest, want)
		}
		if lowest > want*78/100 || highest < want*122/100 {
			t.Errorf("try %d: %v to %v does not use its jitter", n, lowest, highest)
		}
	}
	// The doubling must not overflow.
	long := redisson.Exponential(time.Hour, 150*365*24*time.Hour)
	for n := range 200 {
		if d := long(n); d < 45*time.Minute {
			t.Fatalf("try %d: %v", n, d)
		}
	}
	for _, b := range []redisson.Backoff{
		redisson.Constant(0), redisson.Constant(-1), redisson.Exponential(0, 0), redisson.Exponential(-1, -1),
	} {
		if d := b(50); d < 750*time.Microsecond || d > 2*time.Millisecond {
			t.Errorf("a backoff of nothing waits %v", d)
		}
	}
	if d := redisson.Constant(64 * time.Millisecond)(9); d != 64*time.Millisecond {
		t.Errorf("ConstantBackoff: %v", d)
	}
	if d := redisson.Exponential(time.Second, time.Millisecond)(1); d < 750*time.Millisecond {
		t.Errorf("a cap below the first pause: %v", d)
	}
}

// A busy spin lock costs the server few commands, whatever the backoff says.
func TestASpinLockSendsABoundedNumberOfCommands(t *testing.T) {
	for name, x := range map[string]struct {
		backoff     redisson.Backoff
		least, most int64 // tries in two seconds
	}{
		"default":  {nil, 2000/160 + 7, 2000/96 + 12},
		"constant": {redisson.Constant(64 * time.Millisecond), 33, 33},
		"nothing":  {func(int) time.Duration { return 0 }, 2000, 2000},
		"negative": {func(int) time.Duration { return -time.Hour }, 2000, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var n atomic.Int64
				d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == "lock.take" {
						n.Add(1)
					}
					return next()
				}}
				c, other := w.Tapped(redlatch.Config{}, d), w.Client(redlatch.Config{})
				h := w.Acquire(bg, redisson.SpinLock(other, "orders", nil))
				// Of the goroutines of a process one spins. The others give up before
				// it does: who is let in when its time is over may still try once.
				var wg sync.WaitGroup
				for i := range 20 {
					wait := time.Second
					if i == 0 {
						wait = 2 * time.Second
					}
					wg.Go(func() {
						_, err := redisson.SpinLock(c, "orders", x.backoff).TryAcquire(bg, wait)
						w.WantErr(err, redlatch.ErrBusy)
					})
					if i == 0 {
						synctest.Wait()
					}
				}
				wg.Wait()
				if got := n.Load(); got > x.most || got < x.least {
					t.Errorf("%d tries in two seconds, want %d to %d", got, x.least, x.most)
				}
				w.Release(h)
			})
		})
	}
}

// redisson testTryLockWait: the wait is not overshot by a back-off.
func TestASpinLockGivesUpInTime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, redisson.SpinLock(other, "orders", nil))
		for _, wait := range []time.Duration{3 * time.Second, 10 * time.Millisecond} {
			start := time.Now()
			_, err := redisson.SpinLock(c, "orders", redisson.Constant(time.Hour)).TryAcquire(bg, wait)
			w.WantErr(err, redlatch.ErrBusy)
			if d := time.Since(start); d != wait {
				t.Errorf("gave up after %v, want %v", d, wait)
			}
		}
		w.Release(h)
	})
}

func TestASpinLockNeitherSubscribesNorPublishes(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d, e := &locktest.Tap{}, &locktest.Tap{}
		c, other := w.Tapped(redlatch.Config{}, d), w.Tapped(redlatch.Config{}, e)
		for _, c := range []*redlatch.Client{c, other} { // each begins to hear others with its first acquisition
			w.Release(w.Acquire(bg, redisson.SpinLock(c, "first", nil)))
		}
		before := d.Subs.Load()
		messages := 0
		stop := d.Redis.Subscribe("redisson_lock__channel:{orders}", false, func(n driver.Notice) {
			if !n.Subscribed {
				messages++
			}
		})
		var wg sync.WaitGroup
		for _, c := range []*redlatch.Client{c, other} {
			for range 4 {
				wg.Go(func() {
					for range 20 {
						h := w.Acquire(bg, redisson.SpinLock(c, "orders", nil))
						inner := w.Acquire(h.Context(), redisson.SpinLock(c, "orders", nil))
						time.Sleep(time.Millisecond)
						w.Release(inner)
						w.Release(h)
					}
				})
			}
		}
		wg.Wait()
		h := w.Acquire(bg, redisson.SpinLock(c, "orders", nil))
		if ok, err := admin.ForceRelease(bg, redisson.SpinLock(other, "orders", nil)); !ok || err != nil {
			t.Error(ok, err)
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		synctest.Wait()
		if n := d.Subs.Load(); n != before || e.Subs.Load() != before {
			t.Errorf("%d subscriptions, %d before", n, before)
		}
		if messages > 0 {
			t.Errorf("%d messages were published", messages)
		}
		stop()
		if w.Server.Exists("orders") {
			t.Error("still held")
		}
	})
}

func TestGoroutinesLineUpForASpinLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := redisson.SpinLock(c, "orders", redisson.Constant(50*time.Millisecond))
		h := w.Acquire(bg, l)
		var order []int
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				h := w.Acquire(bg, l)
				order = append(order, i)
				w.Release(h)
			})
			synctest.Wait()
		}
		start := time.Now()
		w.Release(h)
		wg.Wait()
		for i, got := range order {
			if i != got {
				t.Fatalf("order %v", order)
			}
		}
		if d := time.Since(start); d > 50*time.Millisecond {
			t.Errorf("50 hand-offs took %v: they went through Redis", d)
		}
	})
}

// A process full of goroutines must not keep others out, whom nobody can see
// waiting.
func TestASpinLockIsYieldedToOtherProcesses(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		var wg sync.WaitGroup
		done := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					h := w.Acquire(bg, redisson.SpinLock(c, "orders", nil))
					time.Sleep(time.Millisecond)
					w.Release(h)
				}
			})
		}
		time.Sleep(10 * time.Millisecond)
		worst := time.Duration(0)
		for range 20 {
			start := time.Now()
			h := w.Acquire(bg, redisson.SpinLock(other, "orders", redisson.Constant(4*time.Millisecond)))
			worst = max(worst, time.Since(start))
			w.Release(h)
		}
		close(done)
		wg.Wait()
		t.Logf("at worst after %v", worst)
		if worst > time.Second {
			t.Errorf("the other process waited for %v", worst)
		}
	})
}

// One name as both kinds is bad style, but within a process it must not lose
// wake-ups: the plain lock's release is published, whoever had it before.
func TestAPlainLockIsNotHandedOverByASpinLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		spin := w.Acquire(bg, redisson.SpinLock(c, "orders", nil))
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, c.Lock("orders")) })
		synctest.Wait()
		w.Release(spin)
		plain := <-next
		waiter := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, other.Lock("orders")) })
		time.Sleep(time.Second)
		start := time.Now()
		w.Release(plain)
		h := <-waiter
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("the waiter of the plain lock was not woken; it found out after %v", d)
		}
		w.Release(h)
	})
}

// A backoff is the user's. One that panicked left the gate closed, and every other
// caller of its process waited for ever.
func TestABackoffThatPanicsLeavesTheOthersTheirWay(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.Lock("orders"))
		bad := redisson.SpinLock(c, "orders", func(int) time.Duration { panic("no idea") })
		func() {
			defer func() {
				if r := recover(); r != "no idea" {
					t.Errorf("recovered %v", r)
				}
			}()
			_, err := bad.Acquire(bg)
			t.Errorf("Acquire returned %v", err)
		}()
		w.Release(h)
		w.Release(w.AcquireWithin(bg, c.Lock("orders"), time.Minute))
	})
}

// A caller slept over the end of its Wait, and learnt nothing of a lock that had
// been free for 45 ms.
func TestWhoSpinsTriesOnceMoreBeforeItsWaitIsOver(t *testing.T) {
	busy := 0
	for at := range 20 {
		locktest.InFakeTime(t, func(w *locktest.World) {
			h := w.Acquire(bg, redisson.SpinLock(w.Client(redlatch.Config{}), "orders", nil))
			l := redisson.SpinLock(w.ClientOver(5*time.Millisecond, redlatch.Config{}), "orders", nil)
			wait := 500*time.Millisecond + time.Duration(at)*7*time.Millisecond
			got := locktest.Later(func() locktest.Outcome {
				h, err := l.TryAcquire(bg, wait)
				return locktest.Outcome{Hold: h, Err: err}
			})
			time.Sleep(wait - 45*time.Millisecond)
			w.Release(h)
			start := time.Now()
			o := <-got
			if d := time.Since(start); d > 45*time.Millisecond {
				t.Errorf("it waited for %v more", d)
			}
			if o.Err != nil {
				w.WantErr(o.Err, redlatch.ErrBusy)
				busy++
				return
			}
			w.Release(o.Hold)
		})
	}
	if busy > 0 {
		t.Errorf("%d of 20 did not get the free lock", busy)
	}
}
