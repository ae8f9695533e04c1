package locks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Callers of one process that want the same red lock try one after another. None
// of them waits for Config.OutageTimeout once more when the one before it has done
// so.
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

// Callers that wait behind another one of their process know nothing of the lock
// but whether a majority answers. Which client keeps their queue makes no
// difference.
func TestWhoWaitsBehindAnotherForARedLockIsToldWhetherAMajorityAnswers(t *testing.T) {
	for silent, want := range map[int]error{1: redlatch.ErrBusy, 2: redlatch.ErrUnavailable} {
		t.Run(fmt.Sprint(silent), func(t *testing.T) {
			inRedTime(t, 3, func(p *poll) {
				for i := range 6 { // the clients' ids differ each time
					name := fmt.Sprint("a", i)
					h := p.Acquire(bg, p.red(name))
					var on atomic.Bool
					on.Store(true)
					hooks := map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){}
					for s := range silent {
						hooks[s] = blackHole(&on, 0)
					}
					m := p.tappedRed(name, hooks)
					ctx, cancel := context.WithCancel(bg)
					first := locktest.Later(func() error { _, err := m.Acquire(ctx); return err })
					time.Sleep(6 * time.Second)
					if _, err := m.TryAcquire(bg, time.Second); !errors.Is(err, want) {
						t.Errorf("%d of 3 servers are silent, and somebody has the lock: %v, want %v", silent, err, want)
					}
					cancel()
					if err := <-first; !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					on.Store(false)
					time.Sleep(20 * time.Second)
					p.Release(h)
				}
			})
		})
	}
}
