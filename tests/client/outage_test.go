package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// away makes a client whose server answers nothing while down is set.
func away(w *locktest.World, down *atomic.Bool) *redlatch.Client {
	return w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if down.Load() {
			time.Sleep(100 * time.Millisecond)
			return driver.Reply{}, locktest.ErrReplyLost
		}
		return next()
	}})
}

// Callers of one process that wait for the same thing ask one at a time. None of them waits
// for Config.OutageTimeout once more when the one before it has done so.
func TestCallersThatWaitForOneAnotherFailTogetherInAnOutage(t *testing.T) {
	ctx := context.Background()
	took := func(_ *redlatch.Hold, err error) error { return err }
	for name, wait := range map[string]func(c *redlatch.Client) error{
		"lock":              func(c *redlatch.Client) error { return took(c.Lock("lock").Acquire(ctx)) },
		"lock with a lease": func(c *redlatch.Client) error { return took(c.Lock("lock").Acquire(ctx, redlatch.Lease(time.Minute))) },
		"fair lock":         func(c *redlatch.Client) error { return took(c.FairLock("fair").Acquire(ctx)) },
		"spin lock":         func(c *redlatch.Client) error { return took(c.SpinLock("lock", nil).Acquire(ctx)) },
		"group lock":        func(c *redlatch.Client) error { return took(c.GroupLock("group", "a", "b").Acquire(ctx)) },
		"read lock":         func(c *redlatch.Client) error { return took(c.ReadWriteLock("rw").Read().Acquire(ctx)) },
		"write lock":        func(c *redlatch.Client) error { return took(c.ReadWriteLock("rw").Write().Acquire(ctx)) },
		"semaphore":         func(c *redlatch.Client) error { return c.Semaphore("sem").Acquire(ctx, 1) },
		"expirable semaphore": func(c *redlatch.Client) error {
			_, err := c.ExpirableSemaphore("exp").Acquire(ctx, redlatch.UntilSet())
			return err
		},
		"rate limiter":             func(c *redlatch.Client) error { return c.RateLimiter("rate").Acquire(ctx, 1, redlatch.UntilSet()) },
		"latch":                    func(c *redlatch.Client) error { return c.CountDownLatch("latch").Wait(ctx) },
		"lock that is handed over": func(c *redlatch.Client) error { return took(c.Lock("own").Acquire(ctx, redlatch.Lease(time.Minute))) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var down atomic.Bool
				other, c := w.Client(redlatch.Config{}), away(w, &down)
				if _, err := other.CountDownLatch("latch").TrySetCount(ctx, 1); err != nil {
					t.Fatal(err)
				}
				held := []*redlatch.Hold{
					w.Acquire(ctx, other.Lock("lock")), w.Acquire(ctx, other.FairLock("fair")),
					w.Acquire(ctx, other.GroupLock("group", "a")), w.Acquire(ctx, other.ReadWriteLock("rw").Write()),
				}
				own := w.Acquire(ctx, c.Lock("own"))
				var failed []<-chan error
				for range 5 {
					failed = append(failed, locktest.Later(func() error { return wait(c) }))
				}
				time.Sleep(time.Second)
				down.Store(true)
				since := time.Now()
				_ = own.Release(ctx) // it is passed on
				for i, f := range failed {
					if err := <-f; !errors.Is(err, redlatch.ErrUnavailable) {
						t.Errorf("caller %d: %v", i, err)
					}
				}
				if d := time.Since(since); d > 13*time.Second {
					t.Errorf("the last of 5 callers failed %v after the server had fallen silent", d)
				}
				down.Store(false)
				for _, h := range held {
					w.Release(h)
				}
			})
		})
	}
}

// One that comes when others have been without an answer for long does not fail with them.
func TestWhoComesDuringAnOutageWaitsForAllOfTheTimeOut(t *testing.T) {
	ctx := context.Background()
	took := func(_ *redlatch.Hold, err error) error { return err }
	for name, wait := range map[string]func(c *redlatch.Client) error{
		"lock":      func(c *redlatch.Client) error { return took(c.Lock("lock").Acquire(ctx)) },
		"read lock": func(c *redlatch.Client) error { return took(c.ReadWriteLock("rw").Read().Acquire(ctx)) },
		"latch":     func(c *redlatch.Client) error { return c.CountDownLatch("latch").Wait(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var down atomic.Bool
				other, c := w.Client(redlatch.Config{}), away(w, &down)
				if _, err := other.CountDownLatch("latch").TrySetCount(ctx, 1); err != nil {
					t.Fatal(err)
				}
				held := []*redlatch.Hold{w.Acquire(ctx, other.Lock("lock")), w.Acquire(ctx, other.ReadWriteLock("rw").Write())}
				first := locktest.Later(func() error { return wait(c) })
				time.Sleep(time.Second)
				down.Store(true)
				time.Sleep(9 * time.Second)
				start := time.Now()
				if err := wait(c); !errors.Is(err, redlatch.ErrUnavailable) {
					t.Error(err)
				}
				if d := time.Since(start); d < 10*time.Second || d > 13*time.Second {
					t.Errorf("one that came 9 s after the server had fallen silent failed after %v", d)
				}
				if err := <-first; !errors.Is(err, redlatch.ErrUnavailable) {
					t.Error(err)
				}
				down.Store(false)
				for _, h := range held {
					w.Release(h)
				}
			})
		})
	}
}
