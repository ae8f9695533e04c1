package lock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// rueidislock #372, #602: a loop without a pause.
func TestAnOutageIsNotHammered(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var n atomic.Int64
		d := &locktest.Tap{Hook: func(string, []string, func() (driver.Reply, error)) (driver.Reply, error) {
			n.Add(1)
			return driver.Reply{}, &driver.RunError{Outcome: driver.NotExecuted, Code: "LOADING", Err: errors.New("LOADING")}
		}}
		c := w.Tapped(redlatch.Config{OutageTimeout: time.Hour}, d)
		ctx, cancel := context.WithTimeout(bg, 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := c.Lock("orders").Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := n.Load(); got < 300 || got > 1300 {
			t.Errorf("%d requests in ten minutes of an outage, want one or two a second", got)
		}
	})
}

// rueidislock #630, redsync #83: a time-out inside that nobody had asked for.
func TestASlowLinkNeedsNoSettings(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(1200 * time.Millisecond)
			defer time.Sleep(1200 * time.Millisecond)
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		outer := w.Acquire(bg, c.Lock("orders"))
		inner := w.Acquire(outer.Context(), c.Lock("orders"))
		time.Sleep(5 * time.Minute)
		if err := inner.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		w.Release(inner)
		w.Release(outer)
	})
}

func TestAnOutageIsRetryableAndNotTheCallersDeadline(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(5 * time.Second) // a driver that hangs
			return driver.Reply{}, locktest.ErrReplyLost
		}}
		c := w.Tapped(redlatch.Config{}, d)
		_, err := c.Lock("orders").Acquire(bg)
		t.Log(err)
		if !errors.Is(err, redlatch.ErrUnavailable) {
			t.Fatal(err)
		}
		if !redlatch.IsRetryable(err) {
			t.Error("not retryable")
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("looks like the caller's deadline")
		}
		d.Off.Store(true)
		time.Sleep(10 * time.Minute)
	})
}
