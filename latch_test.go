package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

func waitFor(l *redlatch.CountDownLatch, ctx context.Context, opts ...redlatch.Option) <-chan error {
	return later(func() error { return l.Wait(ctx, opts...) })
}

func (w *world) wantWaiting(c <-chan error) {
	w.Helper()
	synctest.Wait()
	select {
	case err := <-c:
		w.Fatalf("Wait has returned: %v", err)
	default:
	}
}

// wantReleased checks that Wait returns at once, but for the way to the server.
func (w *world) wantReleased(c <-chan error) {
	w.Helper()
	start := time.Now()
	if err := <-c; err != nil {
		w.Fatalf("Wait: %v", err)
	}
	if took := time.Since(start); took > 20*time.Millisecond {
		w.Fatalf("Wait returned only %v later", took)
	}
}

// wantQuiet checks that nobody listens any more.
func (w *world) wantQuiet() {
	w.Helper()
	synctest.Wait()
	time.Sleep(time.Millisecond)
	synctest.Wait()
	for _, channels := range []string{"redisson*", "redlatch_barrier*"} {
		if left := w.server.PubSubChannels(channels); len(left) > 0 {
			w.Errorf("still subscribed: %q", left)
		}
	}
}

// Redisson's testCountDown, testTrySetCount, testCount, testDelete and
// testDeleteFailed, and the bytes of PROTOCOL.md 14.
func TestALatchIsRedissons(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		published := w.eavesdrop()
		l := c.CountDownLatch("orders")
		w.wantCount(l, 0)
		if err := l.Wait(bg); err != nil {
			t.Errorf("Wait for a latch that was never set: %v", err)
		}
		w.down(l)
		if w.server.Exists("orders") {
			t.Error("counting down from 0 has left a key")
		}
		if was, err := l.Delete(bg); was || err != nil {
			t.Errorf("Delete of nothing: %v, %v", was, err)
		}
		if got := published(); len(got) > 0 {
			t.Errorf("published %q for nothing", got)
		}
		w.latch(l, 2)
		if got, _ := w.server.Get("orders"); got != "2" || w.server.TTL("orders") != 0 {
			t.Errorf("the latch is %q, its TTL %v", got, w.server.TTL("orders"))
		}
		if set, err := l.TrySetCount(bg, 7); set || err != nil {
			t.Errorf("set while it is counted: %v, %v", set, err)
		}
		w.down(l)
		w.wantCount(l, 1)
		w.down(l)
		if w.server.Exists("orders") {
			t.Error("the key is left at 0")
		}
		channel := "redisson_countdownlatch__channel__{orders}"
		if got, want := published(), []string{channel + " 1", channel + " 0"}; !slices.Equal(got, want) {
			t.Errorf("published %q, want %q", got, want)
		}
		// What Redisson's trySetCount(0) leaves does not block.
		_ = w.server.Set("orders", "0")
		if err := l.Wait(bg); err != nil {
			t.Error(err)
		}
		w.latch(l, 1)
		if was, err := l.Delete(bg); !was || err != nil {
			t.Errorf("Delete: %v, %v", was, err)
		}
	})
}

// A DECR by hand leaves a number below 0, which for Redisson is a latch that can
// never be set again.
func TestALatchBelowZeroCanBeSetAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := w.latch(c.CountDownLatch("orders"), 1)
		x := waitFor(l, bg)
		w.wantWaiting(x)
		_ = w.server.Set("orders", "-2")
		if err := <-x; err != nil { // nobody said so, but there is a poll
			t.Error(err)
		}
		w.wantCount(l, 0)
		w.latch(l, 2)
		_ = w.server.Set("orders", "-2")
		w.down(l)
		if w.server.Exists("orders") {
			t.Error("counting down from -2 has left a key")
		}
	})
}

func TestALatchRefusesWhatItCannotDo(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.CountDownLatch("orders")
		set := func(l *redlatch.CountDownLatch, n int) error { _, err := l.TrySetCount(bg, n); return err }
		cluster := w.tapped(redlatch.Config{}, &tap{cluster: true})
		if err := w.server.Set("text", "no latch"); err != nil {
			t.Fatal(err)
		}
		var none context.Context
		for i, x := range []struct {
			err  error
			says string
		}{
			{set(l, 0), "1 or more"},
			{set(l, -1), "1 or more"},
			{l.Wait(bg, redlatch.Lease(time.Second)), "takes no Lease"},
			{l.Wait(bg, redlatch.Fenced()), "takes no Fenced"},
			{l.Wait(bg, redlatch.Wait(-1)), "negative"},
			{l.Wait(none), "nil context"},
			{l.CountDown(none), "nil context"},
			{set(c.CountDownLatch(""), 1), "empty"},
			{c.CountDownLatch("a{b").Wait(bg), "without a '}'"},
			{set(cluster.CountDownLatch("{shop}:orders"), 1), "another slot"},
			{cluster.CountDownLatch("{shop}:orders").Wait(bg), "another slot"},
			{c.CountDownLatch("text").Wait(bg), "WRONGTYPE"},
		} {
			if x.err == nil || !strings.Contains(x.err.Error(), x.says) {
				t.Errorf("%d: %v, want an error that says %q", i, x.err, x.says)
			}
		}
		w.latch(cluster.CountDownLatch("orders"), 1)
		tagged := w.latch(c.CountDownLatch("{shop}:orders"), 1)
		x := waitFor(tagged, bg)
		w.wantWaiting(x)
		w.down(c.CountDownLatch("{shop}:orders"))
		w.wantReleased(x)
	})
}

// Redisson's testMultiAwait and testAwaitTimeout, over two clients; and again.
func TestALatchReleasesAllThatWaitAndCanBeSetAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		for range 3 {
			w.latch(a.CountDownLatch("orders"), 2)
			var waits []<-chan error
			for _, c := range []*redlatch.Client{a, a, b, b, b} {
				waits = append(waits, waitFor(c.CountDownLatch("orders"), bg))
			}
			time.Sleep(10 * time.Second)
			w.down(b.CountDownLatch("orders"))
			for _, x := range waits {
				w.wantWaiting(x)
			}
			w.down(a.CountDownLatch("orders"))
			for _, x := range waits {
				w.wantReleased(x)
			}
			w.wantQuiet()
		}
	})
}

func TestDeleteReleasesAllThatWait(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		w.latch(a.CountDownLatch("orders"), 2)
		x := waitFor(b.CountDownLatch("orders"), bg)
		w.wantWaiting(x)
		if was, err := a.CountDownLatch("orders").Delete(bg); !was || err != nil {
			t.Fatalf("Delete: %v, %v", was, err)
		}
		w.wantReleased(x)
	})
}

func TestAWaitForALatchEndsInTimeAndSaysWhy(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := w.latch(c.CountDownLatch("orders"), 1)
		other := waitFor(l, bg) // who asks, in the place of the others
		w.wantWaiting(other)
		start := time.Now()
		took := func(want time.Duration, err error, is ...error) {
			t.Helper()
			w.wantErr(err, is...)
			if got := time.Since(start); got != want {
				t.Errorf("returned after %v, want %v", got, want)
			}
			if !strings.Contains(err.Error(), `"orders"`) || strings.Contains(err.Error(), "lock") {
				t.Errorf("says %q", err)
			}
			start = time.Now()
		}
		took(0, l.Wait(bg, redlatch.Wait(0)), redlatch.ErrBusy)
		took(3*time.Second, l.Wait(bg, redlatch.Wait(3*time.Second)), redlatch.ErrBusy)
		ctx, cancel := context.WithTimeout(bg, 3*time.Second)
		defer cancel()
		took(3*time.Second, l.Wait(ctx), redlatch.ErrBusy, context.DeadlineExceeded)
		took(0, l.Wait(ctx), redlatch.ErrBusy, context.DeadlineExceeded)
		if !redlatch.IsRetryable(l.Wait(bg, redlatch.Wait(0))) {
			t.Error("a latch that is not at 0 is worth another try")
		}
		w.down(l)
		w.wantReleased(other)
		w.wantQuiet()
	})
}

// Ten thousand that wait cost one subscription and one that asks, and return as
// soon as one question after the message is answered.
func TestOfManyThatWaitOneAsks(t *testing.T) {
	inFakeTime(t, func(w *world) {
		const waiters = 10000
		var asked, subscribed atomic.Int64
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "latch.count" {
				asked.Add(1)
				time.Sleep(time.Millisecond)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		l := w.latch(c.CountDownLatch("orders"), 1)
		var left atomic.Int64
		var wg sync.WaitGroup
		left.Store(waiters)
		for range waiters {
			wg.Go(func() {
				if err := l.Wait(bg); err != nil {
					t.Error(err)
				}
				left.Add(-1)
			})
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		subscribed.Store(d.subs.Load())
		if n := asked.Load(); n > 4 || subscribed.Load() != 2 { // the other one is the client's own
			t.Errorf("asked %d times, %d subscriptions, to begin with", n, subscribed.Load())
		}
		before := asked.Load()
		time.Sleep(20 * time.Second)
		if n := asked.Load() - before; n < 8 || n > 13 {
			t.Errorf("asked %d times in 20 s", n)
		}
		before = asked.Load()
		start := time.Now()
		w.down(w.client(redlatch.Config{}).CountDownLatch("orders"))
		wg.Wait()
		if took := time.Since(start); took > 2*time.Millisecond || asked.Load()-before > 1 {
			t.Errorf("released after %v with %d questions", took, asked.Load()-before)
		}
		synctest.Wait()
		if n := d.subs.Load(); n != 1 {
			t.Errorf("%d subscriptions in the end", n)
		}
	})
}

// Who asks for the others may leave.
func TestSomebodyElseAsksWhenTheOneWhoDidLeaves(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("messages lost ", lost), func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
				l := w.latch(c.CountDownLatch("orders"), 1)
				var waits []<-chan error
				for i := range 5 {
					ctx, cancel := context.WithTimeout(bg, time.Duration(i+1)*time.Second)
					defer cancel()
					waits = append(waits, waitFor(l, ctx))
					time.Sleep(time.Millisecond)
				}
				for _, x := range waits[:3] {
					w.wantErr(<-x, context.DeadlineExceeded)
				}
				if lost {
					_, _ = other.CountDownLatch("x").Delete(bg)
					w.server.Del("orders") // nobody is told
					time.Sleep(2400 * time.Millisecond)
					synctest.Wait()
					if err := <-waits[4]; err != nil {
						t.Error("by the poll:", err)
					}
					w.wantQuiet()
					return
				}
				w.down(other.CountDownLatch("orders"))
				w.wantReleased(waits[3])
				w.wantReleased(waits[4])
				w.wantQuiet()
			})
		})
	}
}

// An answer to a question from before the latch was set again is not for those
// who came after that.
func TestNobodyIsReleasedByAnAnswerFromBeforeTheLatchWasSet(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var slow atomic.Bool
		d := &tap{}
		d.hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "latch.count" && slow.CompareAndSwap(true, false) {
				time.Sleep(time.Second) // the answer's way back
			}
			return r, err
		}
		c := w.tapped(redlatch.Config{}, d)
		l := w.latch(c.CountDownLatch("orders"), 1)
		first := waitFor(l, bg)
		w.wantWaiting(first)
		slow.Store(true)
		w.down(l) // the answer to what that makes ask is under way
		time.Sleep(time.Millisecond)
		w.latch(l, 1)
		second := waitFor(l, bg)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		w.wantWaiting(second)
		time.Sleep(10 * time.Second)
		w.wantWaiting(second)
		w.down(l)
		w.wantReleased(second)
	})
}

// Who comes when the latch is at 0 goes on soon, although those before have
// missed the message and sleep.
func TestALateWaiterDoesNotSleepWithTheOthers(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := w.latch(c.CountDownLatch("orders"), 1)
		first := waitFor(l, bg)
		time.Sleep(100 * time.Millisecond)
		w.server.Del("orders")
		second := waitFor(l, bg)
		w.wantReleased(second)
		w.wantReleased(first)
	})
}

func TestALatchInAnOutage(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var down atomic.Bool
		d := &tap{hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if down.Load() {
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		l := w.latch(c.CountDownLatch("orders"), 1)
		var waits []<-chan error
		for range 20 {
			waits = append(waits, waitFor(l, bg))
		}
		synctest.Wait()
		down.Store(true)
		time.Sleep(9 * time.Second)
		down.Store(false) // short enough
		time.Sleep(5 * time.Second)
		for _, x := range waits {
			w.wantWaiting(x)
		}
		down.Store(true)
		start := time.Now()
		for _, x := range waits { // all together, not one after the other
			w.wantErr(<-x, redlatch.ErrUnavailable)
		}
		if took := time.Since(start); took > 14*time.Second {
			t.Errorf("ErrUnavailable after %v", took)
		}
		w.wantQuiet()
		down.Store(false)
		x := waitFor(l, bg)
		w.wantWaiting(x)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-x; !errors.Is(err, redlatch.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		w.wantErr(l.Wait(bg), redlatch.ErrClosed)
	})
}
