package redlatch_test

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// What many release by ids takes few requests, and each learns what became of its
// own, whatever replies are lost.
func TestReleasesByIdDoNotGoOneAtATime(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		t.Run(strconv.FormatBool(lossy), func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				const permits = 300
				var sent atomic.Int64
				c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s != "expirable.give_back" {
						return next()
					}
					time.Sleep(2 * time.Millisecond)
					r, err := next()
					if n := sent.Add(1); lossy && n%2 == 1 {
						return driver.Reply{}, errTapUnknown
					}
					return r, err
				}})
				held := w.permits(w.client(redlatch.Config{}), permits+1)
				keeper := w.permit(held)
				s := c.ExpirableSemaphore(pool)
				var wg sync.WaitGroup
				for i := range permits / 2 {
					ps, err := held.AcquireMany(bg, 2)
					if err != nil {
						t.Fatal(err)
					}
					ids := []string{ps[0].ID(), ps[1].ID()}
					bad := i%10 == 3
					if bad {
						w.giveBack(ps[0])
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
				w.wantPermits(permits-permits/20, 1+permits/20)
				w.giveBack(keeper)
			})
		})
	}
}
