package synchronizers

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
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func wantWaiting(w *locktest.World, c <-chan error) {
	w.Helper()
	synctest.Wait()
	select {
	case err := <-c:
		w.Fatalf("Wait has returned: %v", err)
	default:
	}
}

// wantReleased checks that Wait returns at once, but for the way to the server.
func wantReleased(w *locktest.World, c <-chan error) {
	w.Helper()
	start := time.Now()
	if err := <-c; err != nil {
		w.Fatalf("Wait: %v", err)
	}
	if took := time.Since(start); took > 20*time.Millisecond {
		w.Fatalf("Wait returned only %v later", took)
	}
}

// Redisson's testCountDown, testTrySetCount, testCount, testDelete and
// testDeleteFailed, and the bytes of PROTOCOL.md 14.
func TestALatchIsRedissons(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		published := w.Eavesdrop()
		l := latch.New(c, "orders")
		wantCount(w, l, 0)
		if err := l.Wait(bg); err != nil {
			t.Errorf("Wait for a latch that was never set: %v", err)
		}
		countDown(w, l)
		if w.Server.Exists("orders") {
			t.Error("counting down from 0 has left a key")
		}
		if was, err := l.Delete(bg); was || err != nil {
			t.Errorf("Delete of nothing: %v, %v", was, err)
		}
		if got := published(); len(got) > 0 {
			t.Errorf("published %q for nothing", got)
		}
		w.Latch(l, 2)
		if got, _ := w.Server.Get("orders"); got != "2" || w.Server.TTL("orders") != 0 {
			t.Errorf("the latch is %q, its TTL %v", got, w.Server.TTL("orders"))
		}
		if set, err := l.TrySetCount(bg, 7); set || err != nil {
			t.Errorf("set while it is counted: %v, %v", set, err)
		}
		countDown(w, l)
		wantCount(w, l, 1)
		countDown(w, l)
		if w.Server.Exists("orders") {
			t.Error("the key is left at 0")
		}
		channel := "redisson_countdownlatch__channel__{orders}"
		if got, want := published(), []string{channel + " 1", channel + " 0"}; !slices.Equal(got, want) {
			t.Errorf("published %q, want %q", got, want)
		}
		// What Redisson's trySetCount(0) leaves does not block.
		_ = w.Server.Set("orders", "0")
		if err := l.Wait(bg); err != nil {
			t.Error(err)
		}
		w.Latch(l, 1)
		if was, err := l.Delete(bg); !was || err != nil {
			t.Errorf("Delete: %v, %v", was, err)
		}
	})
}

// A DECR by hand leaves a number below 0, which for Redisson is a latch that can
// never be set again.
func TestALatchBelowZeroCanBeSetAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := w.Latch(latch.New(c, "orders"), 1)
		x := locktest.WaitFor(bg, l)
		wantWaiting(w, x)
		_ = w.Server.Set("orders", "-2")
		if err := <-x; err != nil { // nobody said so, but there is a poll
			t.Error(err)
		}
		wantCount(w, l, 0)
		w.Latch(l, 2)
		_ = w.Server.Set("orders", "-2")
		countDown(w, l)
		if w.Server.Exists("orders") {
			t.Error("counting down from -2 has left a key")
		}
	})
}

func TestALatchRefusesWhatItCannotDo(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := latch.New(c, "orders")
		set := func(l *latch.Latch, n int) error { _, err := l.TrySetCount(bg, n); return err }
		cluster := w.Tapped(redlatch.Config{}, &locktest.Tap{Cluster: true})
		shop := w.Tapped(redlatch.Config{Prefix: "{shop}:"}, &locktest.Tap{Cluster: true})
		if err := w.Server.Set("text", "no latch"); err != nil {
			t.Fatal(err)
		}
		var none context.Context
		for i, x := range []struct {
			err  error
			says string
		}{
			{set(l, 0), "1 or more"},
			{set(l, -1), "1 or more"},
			{l.Wait(none), "nil context"},
			{l.CountDown(none), "nil context"},
			{set(latch.New(c, ""), 1), "empty"},
			{latch.New(c, "a{b").Wait(bg), "without a '}'"},
			{set(latch.New(cluster, "{shop}:orders"), 1), "another slot"},
			{latch.New(cluster, "{shop}:orders").Wait(bg), "another slot"},
			{latch.New(shop, "orders").Wait(bg), "Config.Prefix without braces"},
			{latch.New(c, "text").Wait(bg), "WRONGTYPE"},
		} {
			if x.err == nil || !strings.Contains(x.err.Error(), x.says) {
				t.Errorf("%d: %v, want an error that says %q", i, x.err, x.says)
			}
		}
		w.Latch(latch.New(cluster, "orders"), 1)
		tagged := w.Latch(latch.New(c, "{shop}:orders"), 1)
		x := locktest.WaitFor(bg, tagged)
		wantWaiting(w, x)
		countDown(w, latch.New(c, "{shop}:orders"))
		wantReleased(w, x)
	})
}

// Redisson's testMultiAwait and testAwaitTimeout, over two clients; and again.
func TestALatchReleasesAllThatWaitAndCanBeSetAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		for range 3 {
			w.Latch(latch.New(a, "orders"), 2)
			var waits []<-chan error
			for _, c := range []*redlatch.Client{a, a, b, b, b} {
				waits = append(waits, locktest.WaitFor(bg, latch.New(c, "orders")))
			}
			time.Sleep(10 * time.Second)
			countDown(w, latch.New(b, "orders"))
			for _, x := range waits {
				wantWaiting(w, x)
			}
			countDown(w, latch.New(a, "orders"))
			for _, x := range waits {
				wantReleased(w, x)
			}
			w.WantQuiet()
		}
	})
}

func TestDeleteReleasesAllThatWait(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		w.Latch(latch.New(a, "orders"), 2)
		x := locktest.WaitFor(bg, latch.New(b, "orders"))
		wantWaiting(w, x)
		if was, err := latch.New(a, "orders").Delete(bg); !was || err != nil {
			t.Fatalf("Delete: %v, %v", was, err)
		}
		wantReleased(w, x)
	})
}

func TestAWaitForALatchEndsInTimeAndSaysWhy(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := w.Latch(latch.New(c, "orders"), 1)
		other := locktest.WaitFor(bg, l) // who asks, in the place of the others
		wantWaiting(w, other)
		start := time.Now()
		took := func(want time.Duration, err error, is ...error) {
			t.Helper()
			w.WantErr(err, is...)
			if got := time.Since(start); got != want {
				t.Errorf("returned after %v, want %v", got, want)
			}
			if !strings.Contains(err.Error(), `"orders"`) || strings.Contains(err.Error(), "lock") {
				t.Errorf("says %q", err)
			}
			start = time.Now()
		}
		ctx, cancel := context.WithTimeout(bg, 3*time.Second)
		defer cancel()
		took(3*time.Second, l.Wait(ctx), redlatch.ErrBusy, context.DeadlineExceeded)
		took(0, l.Wait(ctx), redlatch.ErrBusy, context.DeadlineExceeded)
		countDown(w, l)
		wantReleased(w, other)
		w.WantQuiet()
	})
}

// Ten thousand that wait cost one subscription and one that asks, and return as
// soon as one question after the message is answered.
func TestOfManyThatWaitOneAsks(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		const waiters = 10000
		var asked, subscribed atomic.Int64
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "latch.count" {
				asked.Add(1)
				time.Sleep(time.Millisecond)
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		l := w.Latch(latch.New(c, "orders"), 1)
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
		subscribed.Store(d.Subs.Load())
		if n := asked.Load(); n > 4 || subscribed.Load() != 2 { // the other is the client's own
			t.Errorf("asked %d times, %d subscriptions, to begin with", n, subscribed.Load())
		}
		before := asked.Load()
		time.Sleep(20 * time.Second)
		if n := asked.Load() - before; n < 8 || n > 13 {
			t.Errorf("asked %d times in 20 s", n)
		}
		before = asked.Load()
		start := time.Now()
		countDown(w, latch.New(w.Client(redlatch.Config{}), "orders"))
		wg.Wait()
		if took := time.Since(start); took > 2*time.Millisecond || asked.Load()-before > 1 {
			t.Errorf("released after %v with %d questions", took, asked.Load()-before)
		}
		synctest.Wait()
		if n := d.Subs.Load(); n != 1 {
			t.Errorf("%d subscriptions in the end", n)
		}
	})
}

// Who asks for the others may leave.
func TestSomebodyElseAsksWhenTheOneWhoDidLeaves(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("messages lost ", lost), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				l := w.Latch(latch.New(c, "orders"), 1)
				var waits []<-chan error
				for i := range 5 {
					ctx, cancel := context.WithTimeout(bg, time.Duration(i+1)*time.Second)
					defer cancel()
					waits = append(waits, locktest.WaitFor(ctx, l))
					time.Sleep(time.Millisecond)
				}
				for _, x := range waits[:3] {
					w.WantErr(<-x, context.DeadlineExceeded)
				}
				if lost {
					_, _ = latch.New(other, "x").Delete(bg)
					w.Server.Del("orders") // nobody is told
					time.Sleep(2400 * time.Millisecond)
					synctest.Wait()
					if err := <-waits[4]; err != nil {
						t.Error("by the poll:", err)
					}
					w.WantQuiet()
					return
				}
				countDown(w, latch.New(other, "orders"))
				wantReleased(w, waits[3])
				wantReleased(w, waits[4])
				w.WantQuiet()
			})
		})
	}
}

// An answer to a question from before the latch was set again is not for those
// who came after that.
func TestNobodyIsReleasedByAnAnswerFromBeforeTheLatchWasSet(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var slow atomic.Bool
		d := &locktest.Tap{}
		d.Hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "latch.count" && slow.CompareAndSwap(true, false) {
				time.Sleep(time.Second) // the answer's way back
			}
			return r, err
		}
		c := w.Tapped(redlatch.Config{}, d)
		l := w.Latch(latch.New(c, "orders"), 1)
		first := locktest.WaitFor(bg, l)
		wantWaiting(w, first)
		slow.Store(true)
		countDown(w, l) // the answer to what that makes ask is in flight
		time.Sleep(time.Millisecond)
		w.Latch(l, 1)
		second := locktest.WaitFor(bg, l)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		wantWaiting(w, second)
		time.Sleep(10 * time.Second)
		wantWaiting(w, second)
		countDown(w, l)
		wantReleased(w, second)
	})
}

// Who comes when the latch is at 0 goes on soon, although those before have
// missed the message and sleep.
func TestALateWaiterDoesNotSleepWithTheOthers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := w.Latch(latch.New(c, "orders"), 1)
		first := locktest.WaitFor(bg, l)
		time.Sleep(100 * time.Millisecond)
		w.Server.Del("orders")
		second := locktest.WaitFor(bg, l)
		wantReleased(w, second)
		wantReleased(w, first)
	})
}

func TestALatchInAnOutage(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down atomic.Bool
		d := &locktest.Tap{Hook: locktest.Failing(&down, locktest.ErrReplyLost)}
		c := w.Tapped(redlatch.Config{}, d)
		l := w.Latch(latch.New(c, "orders"), 1)
		var waits []<-chan error
		for range 20 {
			waits = append(waits, locktest.WaitFor(bg, l))
		}
		synctest.Wait()
		down.Store(true)
		time.Sleep(9 * time.Second)
		down.Store(false) // short enough
		time.Sleep(5 * time.Second)
		for _, x := range waits {
			wantWaiting(w, x)
		}
		down.Store(true)
		start := time.Now()
		for _, x := range waits { // all together, not one after the other
			w.WantErr(<-x, redlatch.ErrUnavailable)
		}
		if took := time.Since(start); took > 14*time.Second {
			t.Errorf("ErrUnavailable after %v", took)
		}
		w.WantQuiet()
		down.Store(false)
		x := locktest.WaitFor(bg, l)
		wantWaiting(w, x)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-x; !errors.Is(err, redlatch.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		w.WantErr(l.Wait(bg), redlatch.ErrClosed)
	})
}
