package multilock

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Callers of one process that want the same red lock try one after another. None of them waits
// for Config.OutageTimeout once more when the one before it has done so.
func TestCallersOfARedLockFailTogetherInAnOutage(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		var on atomic.Bool
		on.Store(true)
		hole := blackHole(&on, 0)
		m := p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){0: hole, 2: hole})
		start := time.Now()
		var all []<-chan error
		for range 4 {
			all = append(all, locktest.Later(func() error { _, err := m.Acquire(bg); return err }))
		}
		time.Sleep(5 * time.Second)
		late := time.Now()
		last := locktest.Later(func() error { _, err := m.Acquire(bg); return err })
		for i, done := range all {
			if err := <-done; !errors.Is(err, redlatch.ErrUnavailable) {
				t.Errorf("caller %d: %v", i, err)
			}
			if d := time.Since(start); d < 10*time.Second || d > 27*time.Second {
				t.Errorf("caller %d failed %v after two of three servers had fallen silent", i, d)
			}
		}
		if err := <-last; !errors.Is(err, redlatch.ErrUnavailable) || time.Since(late) < 10*time.Second {
			t.Errorf("one that came later failed %v after that: %v", time.Since(late), err)
		}
		on.Store(false)
	})
}
