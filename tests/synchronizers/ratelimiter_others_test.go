package synchronizers

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Redisson writes a rate into any hash, and deletes any key. A limiter that has a
// lock's name by mistake, or that of a hash of somebody else, leaves it alone.
func TestRateLimiterLeavesOtherHashesAlone(t *testing.T) {
	rate := ratelimit.Rate{Permits: 5, Interval: time.Minute}
	calls := map[string]func(l *ratelimit.Limiter) error{
		"TrySetRate": func(l *ratelimit.Limiter) error { _, err := l.TrySetRate(bg, rate); return err },
		"SetRate":    func(l *ratelimit.Limiter) error { return l.SetRate(bg, rate) },
		"UpdateRate": func(l *ratelimit.Limiter) error { return l.UpdateRate(bg, rate) },
		"set-up":     func(l *ratelimit.Limiter) error { return l.TryAcquire(bg, 1, 0) },
		"Delete":     func(l *ratelimit.Limiter) error { _, err := l.Delete(bg); return err },
	}
	for kind, of := range locktest.TypesOfLock {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				w.Acquire(bg, locktest.With(of(c, "orders"), redlatch.Lease(time.Hour)))
				leavesAlone(w, ratelimit.New(c, "orders", rate), calls)
			})
		})
	}
	t.Run("a hash of somebody else", func(t *testing.T) {
		locktest.InFakeTime(t, func(w *locktest.World) {
			w.Server.HSet("orders", "name", "ann")
			leavesAlone(w, ratelimit.New(w.Client(redlatch.Config{}), "orders", rate), calls)
		})
	})
}

func leavesAlone(w *locktest.World, l *ratelimit.Limiter, calls map[string]func(*ratelimit.Limiter) error) {
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

// Redisson's release raises the value and leaves the records. When these leave the
// window, what they stand for is not there a second time: Redisson bounds the
// value by the rate, and so does redlatch.
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
