package synchronizers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// What one client does with semaphores or latches "x" and "{x}" goes by sessions
// of their own: a request for one that comes late is not taken for an old one of
// the other, and count-downs of one do not count for the other.
func TestTwinsThatCountShareNoSession(t *testing.T) {
	t.Run("semaphores", func(t *testing.T) {
		locktest.InFakeTime(t, func(w *locktest.World) {
			var exchanges atomic.Int64
			c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				if s == "semaphore.exchange" && exchanges.Add(1) == 3 {
					time.Sleep(20 * time.Millisecond) // on its way
				}
				return next()
			}})
			x, y := semaphore.New(c, "x", 0), semaphore.New(c, "{x}", 0)
			for _, s := range []*semaphore.Semaphore{x, y} {
				w.SetPermits(s, 1)
				w.OK(s.Acquire(bg, 1))
			}
			released := locktest.Later(func() error { return x.Release(bg, 1) })
			time.Sleep(5 * time.Millisecond)
			w.OK(y.Release(bg, 1))
			w.OK(<-released)
			for _, s := range []*semaphore.Semaphore{x, y} {
				if n, err := s.Available(bg); n != 1 || err != nil {
					t.Errorf("%s: %d permits, %v", s.Name(), n, err)
				}
			}
		})
	})
	t.Run("latches", func(t *testing.T) {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				if s == "latch.down" {
					time.Sleep(10 * time.Millisecond)
				}
				return next()
			}})
			x, y := w.Latch(latch.New(c, "x"), 3), w.Latch(latch.New(c, "{x}"), 3)
			var counted []<-chan error
			for _, l := range []*latch.Latch{x, x, y} {
				counted = append(counted, locktest.Later(func() error { return l.CountDown(bg) }))
				synctest.Wait()
			}
			for _, c := range counted {
				w.OK(<-c)
			}
			wantCount(w, x, 1)
			wantCount(w, y, 2)
		})
	})
}
