package synchronizers

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// What many release by ids takes few requests, and each learns what became of its
// own, whatever replies are lost.
func TestReleasesByIdDoNotGoOneAtATime(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		t.Run(strconv.FormatBool(lossy), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				const permits = 300
				var sent atomic.Int64
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s != "expirable.give_back" {
						return next()
					}
					time.Sleep(2 * time.Millisecond)
					r, err := next()
					if n := sent.Add(1); lossy && n%2 == 1 {
						return driver.Reply{}, locktest.ErrReplyLost
					}
					return r, err
				}})
				held := w.Permits(w.Client(redlatch.Config{}), permits+1)
				keeper := w.Permit(held)
				s := semaphore.NewExpirable(c, locktest.Pool, 0)
				var wg sync.WaitGroup
				for i := range permits / 2 {
					ps, err := locktest.Each(held.Acquire(bg, 2))
					if err != nil {
						t.Fatal(err)
					}
					ids := []string{ps[0].ID(), ps[1].ID()}
					bad := i%10 == 3
					if bad {
						giveBack(w, ps[0])
					}
					wg.Go(func() {
						if err := s.Release(bg, ids...); bad != errors.Is(err, redlatch.ErrNotHeld) || !bad && err != nil {
							t.Errorf("%d: %v", i, err)
						}
					})
				}
				wg.Wait()
				if n := sent.Load(); n > 12 {
					t.Errorf("%d requests", n)
				}
				w.WantPermits(permits-permits/20, 1+permits/20)
				giveBack(w, keeper)
			})
		})
	}
}
