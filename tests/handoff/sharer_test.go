package handoff

import (
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// For the server two clients that share a driver are one subscriber: each took the
// other's subscription for its own, and let it wait for a second.
func TestClientsThatShareADriverGiveEachOtherTurns(t *testing.T) {
	for name, of := range map[string]func(c *redlatch.Client) func() (release func()){
		"lock": func(c *redlatch.Client) func() func() {
			return func() func() { h, _ := c.Lock("orders").Acquire(bg); return func() { _ = h.Release(bg) } }
		},
		"write": func(c *redlatch.Client) func() func() {
			return func() func() {
				h, _ := c.ReadWriteLock("orders").Write().Acquire(bg)
				return func() { _ = h.Release(bg) }
			}
		},
		"semaphore": func(c *redlatch.Client) func() func() {
			_, _ = semaphore.New(c, "orders", 0).TrySetPermits(bg, 1)
			return func() func() {
				_ = semaphore.New(c, "orders", 0).Acquire(bg, 1)
				return func() { _ = semaphore.New(c, "orders", 0).Release(bg, 1) }
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				d := w.Driver()
				busy, other := of(w.ClientWith(d, redlatch.Config{})), of(w.ClientWith(d, redlatch.Config{}))
				stop := make(chan struct{})
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						for {
							release := busy()
							time.Sleep(time.Millisecond)
							release()
							select {
							case <-stop:
								return
							default:
							}
						}
					})
				}
				defer wg.Wait()
				defer close(stop)
				for range 20 {
					time.Sleep(30 * time.Millisecond)
					start := time.Now()
					other()()
					if took := time.Since(start); took > 50*time.Millisecond {
						t.Errorf("waited for %v", took)
					}
				}
			})
		})
	}
}
