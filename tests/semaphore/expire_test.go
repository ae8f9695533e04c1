package semaphore

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// What ends ends with all its keys, and what is to last lasts with all of them.
func TestExpireAndPersistAreAboutAllKeysOfAnObject(t *testing.T) {
	type object interface {
		Expire(ctx context.Context, d time.Duration) (bool, error)
		Persist(ctx context.Context) (bool, error)
	}
	for name, kind := range map[string]struct {
		make func(w *locktest.World, c *redlatch.Client) object
		keys []string
		own  []string // end an interval after their last use, whatever is said
	}{
		"semaphore": {func(w *locktest.World, c *redlatch.Client) object {
			s := c.Semaphore(locktest.Pool)
			w.OK(s.Release(bg, 3))
			return s
		}, []string{locktest.Pool}, nil},
		"permits": {func(w *locktest.World, c *redlatch.Client) object {
			s := c.ExpirableSemaphore(locktest.Pool).WithPermits(3)
			_, err := s.Acquire(bg, redlatch.Lease(time.Hour))
			w.OK(err)
			return s
		}, []string{locktest.Pool, "{" + locktest.Pool + "}:timeout"}, nil},
		"rate": {func(w *locktest.World, c *redlatch.Client) object {
			l := c.RateLimiter(locktest.Pool).WithRate(redlatch.Rate{Permits: 5, Interval: time.Hour})
			w.OK(l.Acquire(bg, 2))
			return l
		}, []string{locktest.Pool, "{" + locktest.Pool + "}:value", "{" + locktest.Pool + "}:permits"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				o := kind.make(w, c)
				ttls := func(want time.Duration) {
					t.Helper()
					for _, key := range kind.keys {
						if ttl := w.Server.TTL(key); !w.Server.Exists(key) || ttl != want {
							t.Errorf("%s: exists %v, ends in %v, want %v", key, w.Server.Exists(key), ttl, want)
						}
					}
				}
				says := func(want bool, f func() (bool, error)) {
					t.Helper()
					if there, err := f(); err != nil || there != want {
						t.Errorf("%v, %v, want %v", there, err, want)
					}
				}
				minute := func() (bool, error) { return o.Expire(bg, time.Minute) }
				forEver := func() (bool, error) { return o.Persist(bg) }
				ttls(0)
				says(true, minute)
				ttls(time.Minute)
				says(true, forEver)
				ttls(0)
				if _, err := o.Expire(bg, 0); err == nil {
					t.Error("it can end at once")
				}
				says(true, minute)
				time.Sleep(time.Minute + time.Millisecond)
				for _, key := range kind.keys {
					if w.Server.Exists(key) {
						t.Errorf("%s is there when its time is over", key)
					}
				}
				says(false, minute)
				says(false, forEver)

				// A lock is not to be cut short by a mistaken name.
				h, err := c.Lock(locktest.Pool).Acquire(bg)
				w.OK(err)
				if name != "rate" { // which is a hash, as a lock is
					_, err = o.Expire(bg, time.Second)
					if driver.Failure(err).Code != "WRONGTYPE" {
						t.Errorf("%v, want WRONGTYPE", err)
					}
				}
				w.OK(h.Release(bg))
			})
		})
	}
}
