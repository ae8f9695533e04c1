package synchronizers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Who starts before what it needs was set up can wait for that; who did not say so
// is told at once, also beside one that waits.
func TestWaitingForWhatNobodyHasSetUpYet(t *testing.T) {
	rate := redlatch.Rate{Permits: 5, Interval: time.Minute}
	for name, kind := range map[string]struct {
		acquire func(c *redlatch.Client, ctx context.Context, opts ...redlatch.Option) error
		try     func(c *redlatch.Client) error
		set     func(c *redlatch.Client) error
		within  time.Duration
	}{
		"permits": {
			func(c *redlatch.Client, ctx context.Context, opts ...redlatch.Option) error {
				_, err := c.ExpirableSemaphore(locktest.Pool).Acquire(ctx, opts...)
				return err
			},
			func(c *redlatch.Client) error { _, err := c.ExpirableSemaphore(locktest.Pool).Try(bg); return err },
			func(c *redlatch.Client) error {
				_, err := c.ExpirableSemaphore(locktest.Pool).TrySetPermits(bg, 5)
				return err
			},
			100 * time.Millisecond,
		},
		"rate": {
			func(c *redlatch.Client, ctx context.Context, opts ...redlatch.Option) error {
				return c.RateLimiter(locktest.Pool).Acquire(ctx, 1, opts...)
			},
			func(c *redlatch.Client) error { return c.RateLimiter(locktest.Pool).Try(bg, 1) },
			func(c *redlatch.Client) error {
				_, err := c.RateLimiter(locktest.Pool).TrySetRate(bg, rate)
				return err
			},
			3 * time.Second, // nothing is published
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				w.WantErr(kind.acquire(c, bg), redlatch.ErrUninitialized)
				start := time.Now()
				waiting := make([]<-chan error, 3)
				for i := range waiting {
					waiting[i] = locktest.Later(func() error { return kind.acquire(c, bg, redlatch.UntilSet()) })
				}
				synctest.Wait()
				w.WantErr(kind.acquire(c, bg), redlatch.ErrUninitialized)
				w.WantErr(kind.try(c), redlatch.ErrUninitialized)
				if d := time.Since(start); d > 10*time.Millisecond {
					t.Errorf("told after %v", d)
				}
				ctx, cancel := context.WithTimeout(bg, time.Second)
				defer cancel()
				w.WantErr(kind.acquire(c, ctx, redlatch.UntilSet()), redlatch.ErrBusy, context.DeadlineExceeded)
				w.WantErr(kind.acquire(c, bg, redlatch.UntilSet(), redlatch.Wait(time.Second)), redlatch.ErrBusy)
				time.Sleep(time.Minute)
				for _, err := range waiting {
					select {
					case err := <-err:
						t.Fatal(err)
					default:
					}
				}
				if err := kind.set(other); err != nil {
					t.Fatal(err)
				}
				start = time.Now()
				for _, err := range waiting {
					if err := <-err; err != nil {
						t.Error(err)
					}
				}
				if d := time.Since(start); d > kind.within {
					t.Errorf("they went on after %v", d)
				}
				if err := kind.acquire(c, bg); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestUntilSetIsRefusedWhereItMeansNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		opt := redlatch.UntilSet()
		_, lock := c.Lock("a").Acquire(bg, opt)
		_, barrier := c.Barrier("a", 1).Await(bg, opt)
		_, once := c.ExpirableSemaphore(locktest.Pool).Try(bg, opt)
		for _, err := range []error{lock, barrier, once, c.RateLimiter("a").Acquire(bg, 1, opt, redlatch.Wait(0))} {
			if err == nil {
				t.Error("not refused")
			}
		}
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		w.WantErr(c.Semaphore("s").Acquire(ctx, 1, opt), redlatch.ErrBusy)
	})
}
