package synchronizers

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Redisson writes a rate into any hash, and deletes any key. A limiter that has a lock's name by mistake, or that of a
// hash of somebody else, leaves it alone.
func TestRateLimiterLeavesOtherHashesAlone(t *testing.T) {
	rate := redlatch.Rate{Permits: 5, Interval: time.Minute}
	calls := map[string]func(l *redlatch.RateLimiter) error{
		"TrySetRate": func(l *redlatch.RateLimiter) error { _, err := l.TrySetRate(bg, rate); return err },
		"SetRate":    func(l *redlatch.RateLimiter) error { return l.SetRate(bg, rate) },
		"UpdateRate": func(l *redlatch.RateLimiter) error { return l.UpdateRate(bg, rate) },
		"WithRate":   func(l *redlatch.RateLimiter) error { return l.WithRate(rate).TryAcquire(bg, 1, 0) },
		"Delete":     func(l *redlatch.RateLimiter) error { _, err := l.Delete(bg); return err },
	}
	for kind, of := range locktest.TypesOfLock {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				w.Acquire(bg, locktest.With(of(c, "orders"), redlatch.Lease(time.Hour)))
				leavesAlone(w, c.RateLimiter("orders"), calls)
			})
		})
	}
	t.Run("a hash of somebody else", func(t *testing.T) {
		locktest.InFakeTime(t, func(w *locktest.World) {
			w.Server.HSet("orders", "name", "ann")
			leavesAlone(w, w.Client(redlatch.Config{}).RateLimiter("orders"), calls)
		})
	})
}

func leavesAlone(w *locktest.World, l *redlatch.RateLimiter, calls map[string]func(*redlatch.RateLimiter) error) {
	w.Helper()
	fields, ttl := w.Fields("orders"), w.Server.TTL("orders")
	for call, do := range calls {
		var refused *driver.RunError
		if err := do(l); !errors.As(err, &refused) || refused.Code != "WRONGTYPE" {
			w.Errorf("%s: %v, want WRONGTYPE", call, err)
		}
	}
	if is, err := l.Expire(bg, time.Minute); is || err != nil {
		w.Errorf("Expire: %v, %v", is, err)
	}
	if is, err := l.Persist(bg); is || err != nil {
		w.Errorf("Persist: %v, %v", is, err)
	}
	if now := w.Fields("orders"); !maps.Equal(now, fields) || w.Server.TTL("orders") != ttl {
		w.Errorf("it is %v for %v now, and was %v for %v", now, w.Server.TTL("orders"), fields, ttl)
	}
}

// Redisson's release raises the value and leaves the records. When these leave the window, what they stand for is not there
// a second time: Redisson bounds the value by the rate, and so does redlatch.
func TestWhatRedissonGaveBackIsNotGivenBeyondTheRate(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, time.Second)
		w.TakeRate(l, 5)
		w.OK(w.Server.Set("{api}:value", "3")) // release(3)
		wantAvailable(w, l, 3)
		w.TakeRate(l, 1)
		time.Sleep(1001 * time.Millisecond)
		w.OK(w.Server.Set("{api}:value", "5")) // release(3) once more
		wantAvailable(w, l, 5)
		w.TakeRate(l, 5)
		w.WantBusy(l, 5, time.Second)
	})
}
