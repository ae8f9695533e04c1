package synchronizers

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestCallersOfOneProcessGetPermitsInOrder(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Permits(c, 3)
		held, err := locktest.Each(s.Acquire(bg, 3))
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 10)
		var wg sync.WaitGroup
		ask := func(name string, n int) {
			wg.Go(func() {
				ps, err := locktest.Each(s.Acquire(bg, n))
				if err != nil {
					t.Error(err)
				}
				got <- name
				time.Sleep(time.Minute)
				giveBack(w, ps...)
			})
			synctest.Wait()
		}
		ask("three", 3)
		ask("one", 1)
		ask("all", 3) // not together with the one before
		giveBack(w, held[0], held[1])
		synctest.Wait()
		start := time.Now()
		_, err = s.TryAcquire(bg, 1, 0) // there are two, but somebody waits
		w.WantErr(err, redlatch.ErrBusy)
		if waited := time.Since(start); waited > 0 {
			t.Errorf("Try waited for %v", waited)
		}
		synctest.Wait()
		if len(got) != 0 {
			t.Errorf("%q got permits before the first in line", <-got)
		}
		giveBack(w, held[2])
		synctest.Wait()
		if len(got) != 1 {
			t.Fatalf("%d got permits", len(got))
		}
		wg.Wait()
		close(got)
		var order []string
		for name := range got {
			order = append(order, name)
		}
		if want := []string{"three", "one", "all"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
		w.WantPermits(3, 0)
	})
}

// Who leaves lets those behind have what he waited in vain for.
func TestWhoLeavesTheLineDoesNotHoldUpTheOthers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Permits(c, 2)
		p := w.Permit(s)
		ctx, cancel := context.WithCancel(bg)
		first := locktest.Later(func() error { _, err := locktest.Each(s.Acquire(ctx, 2)); return err })
		synctest.Wait()
		second := locktest.Later(func() *redlatch.Hold { return w.Permit(s) })
		synctest.Wait()
		start := time.Now()
		cancel()
		w.WantErr(<-first, redlatch.ErrBusy, context.Canceled)
		q := <-second
		if d := time.Since(start); d > time.Millisecond {
			t.Errorf("the second waited for another %v", d)
		}
		_, err := locktest.Each(s.TryAcquire(bg, 2, time.Second))
		w.WantErr(err, redlatch.ErrBusy)
		if !strings.Contains(err.Error(), "permit of semaphore") {
			t.Error(err)
		}
		giveBack(w, p, q)
		w.WantPermits(2, 0)
		if n := w.Server.PubSubNumSub(locktest.PoolNews)[locktest.PoolNews]; n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

// 10,000 that wait cost one subscription, and a release a handful of requests.
func TestTenThousandThatWait(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		const n = 10_000
		var count locktest.Counter
		d := &locktest.Tap{Hook: count.Hook}
		c := w.Tapped(redlatch.Config{}, d)
		s := w.Permits(c, 1)
		p := w.Permit(s)
		own := d.Subs.Load() // the client's own
		got := make(chan *redlatch.Hold, n)
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if p, err := s.Acquire(ctx, 1); err == nil {
					got <- p
				}
			})
		}
		synctest.Wait()
		if subs := d.Subs.Load() - own; subs != 1 {
			t.Errorf("%d subscriptions", subs)
		}
		before := count.Of("expirable.take")
		for range 20 {
			giveBack(w, p)
			p = <-got
			synctest.Wait()
			if len(got) > 0 {
				t.Fatal("woke more than there are permits")
			}
		}
		if takes := count.Of("expirable.take") - before; takes > 2*20 {
			t.Errorf("%d requests for 20 releases", takes)
		}
		cancel()
		wg.Wait()
		synctest.Wait()
		if subs := d.Subs.Load() - own; subs != 0 {
			t.Errorf("%d subscriptions are left", subs)
		}
		giveBack(w, p)
		w.WantPermits(1, 0)
	})
}

// A message that is lost costs one poll at most.
func TestPermitsWithoutMessages(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Permits(c, 1)
		p := w.Permit(s)
		done := locktest.Later(func() *redlatch.Hold { return w.Permit(s) })
		time.Sleep(time.Second)
		start := time.Now()
		raw, _ := hex.DecodeString(p.ID())
		_, _ = w.Server.ZRem(locktest.PoolTimes, string(raw)) // as a release, but for the message
		_, _ = w.Server.Incr(locktest.Pool, 1)
		q := <-done
		if waited := time.Since(start); waited > 2400*time.Millisecond {
			t.Errorf("waited for %v", waited)
		}
		<-p.Context().Done()
		w.WantErr(p.Err(), redlatch.ErrLost)
		if err := q.Err(); err != nil {
			t.Error(err)
		}
		giveBack(w, q)
		synctest.Wait()
		w.WantPermits(1, 0)
	})
}

// Redisson gives permits for ever, or until times that are further than Go's
// durations reach: who waits neither spins nor believes that they are over.
func TestPermitsThatNeverEndAreWaitedForInPeace(t *testing.T) {
	for _, until := range []float64{locktest.Forever, 12345678901234} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			takes := 0
			c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				if s == "expirable.take" {
					takes++
				}
				return next()
			}})
			s := w.Permits(c, 0)
			javaPermit(w, javaID, until)
			_, err := s.TryAcquire(bg, 1, 0)
			var busy *redlatch.BusyError
			if !errors.As(err, &busy) || (busy.TTL == 0) != (until == locktest.Forever) || busy.TTL < 0 {
				t.Errorf("%v", err)
			}
			if left, err := s.LeaseLeft(bg, javaID); err != nil || (left == -1) != (until == locktest.Forever) || left < -1 {
				t.Errorf("left: %v, %v", left, err)
			}
			_, err = s.TryAcquire(bg, 1, time.Minute)
			if w.WantErr(err, redlatch.ErrBusy); takes > 40 {
				t.Errorf("%.0f: %d tries in a minute", until, takes)
			}
		})
	}
}
