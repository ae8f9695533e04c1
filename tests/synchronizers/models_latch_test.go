package synchronizers

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// TestLatchProperties lets clients set, count down, delete, wait and die at
// random. A request changes the count once at most, and once if its caller was
// told so; who waits goes on only if the latch was at 0 meanwhile, and then soon;
// the latch says once that it is.
func TestLatchProperties(t *testing.T) {
	locktest.WithSeeds(t, 3, func(w *locktest.World, seed uint64) { newLatchModel(w, seed).run() })
}

type latchModel struct {
	*locktest.World
	*chaos

	// Looked at by watched, and inside alone.
	shown    string // what the server has
	zeroTill time.Time
	zeroFrom time.Time
	zeros    int // how often it has come to 0

	released atomic.Int64
}

func newLatchModel(w *locktest.World, seed uint64) *latchModel {
	m := &latchModel{World: w, chaos: newChaos(w, seed, "latch."), zeroFrom: time.Now()}
	m.watch = m.watched
	m.lossy = seed%3 != 0
	return m
}

func (m *latchModel) watched(string, []string, driver.Reply, error) {
	before := m.shown
	m.shown, _ = m.Server.Get("orders")
	if before == m.shown {
		return
	}
	now := time.Now()
	switch {
	case m.shown == "":
		m.zeros++
		m.zeroFrom = now
	case before == "":
		m.zeroTill = now
	}
}

// wasZero says whether the latch has been at 0 since then.
func (m *latchModel) wasZero(since time.Time) (ok bool) {
	m.alone(func() { ok = m.shown == "" || m.zeroTill.After(since) || m.zeroTill.Equal(since) })
	return ok
}

func (m *latchModel) run() {
	published := m.Eavesdrop()
	clients := []*chaotic{m.process(redlatch.Config{OutageTimeout: time.Minute}), m.process(redlatch.Config{OutageTimeout: time.Minute}), m.process(redlatch.Config{})}
	var wg sync.WaitGroup
	over := time.Now().Add(30 * time.Second)
	for n, c := range clients {
		l := latch.New(c.Client, "orders")
		for range 3 {
			wg.Go(func() {
				for time.Now().Before(over) {
					time.Sleep(m.ms(1500))
					ctx, cancel := context.WithTimeout(bg, time.Second+m.ms(20000))
					switch m.draw(20) {
					case 0:
						_, _ = l.Delete(ctx)
					case 1, 2, 3:
						_, _ = l.TrySetCount(ctx, 1+m.draw(6))
					default:
						_ = l.CountDown(ctx)
					}
					cancel()
				}
			})
			wg.Go(func() {
				for time.Now().Before(over) {
					ctx, cancel := context.WithTimeout(bg, m.ms(15000))
					start := time.Now()
					err := l.Wait(ctx)
					if err == nil {
						m.released.Add(1)
						if !m.wasZero(start) {
							m.Errorf("client %d: a wait that began %v ago was released, and the latch was never at 0", n, time.Since(start))
						}
					}
					var from time.Time
					m.alone(func() {
						if m.shown == "" {
							from = m.zeroFrom
						}
					})
					if late := time.Since(from); err != nil && !from.IsZero() && from.After(start) && late > 7*time.Second && !c.dead.Load() {
						m.Errorf("client %d: still waiting %v after the latch has come to 0: %v", n, late, err)
					}
					cancel()
					time.Sleep(m.ms(2000))
				}
			})
		}
	}
	time.Sleep(20 * time.Second)
	clients[2].dead.Store(true)
	wg.Wait()
	clients[2].dead.Store(false)
	time.Sleep(time.Minute)
	zeros := 0
	for _, p := range published() {
		if strings.HasSuffix(p, " 0") {
			zeros++
		}
	}
	m.alone(func() {
		if zeros != m.zeros || zeros == 0 || m.released.Load() == 0 {
			m.Errorf("it was %d times at 0, which was said %d times; %d were released", m.zeros, zeros, m.released.Load())
		}
		m.Logf("%d scripts, %d times at 0, %d released", m.runs, m.zeros, m.released.Load())
	})
}

// Each count-down of many counts once, if its caller was told that it was counted,
// and once at most if not.
func TestNoCountDownCountsTwice(t *testing.T) {
	locktest.WithSeeds(t, 6, func(w *locktest.World, seed uint64) {
		const total = 1000
		x := newChaos(w, seed, "latch.")
		x.watch = func(string, []string, driver.Reply, error) {}
		var told, asked atomic.Int64
		var wg sync.WaitGroup
		w.Latch(latch.New(w.Client(redlatch.Config{}), "orders"), total)
		for range 3 {
			l := latch.New(x.process(redlatch.Config{}).Client, "orders")
			for range 4 {
				wg.Go(func() {
					for range 12 {
						ctx, cancel := context.WithTimeout(bg, x.ms(200))
						asked.Add(1)
						if l.CountDown(ctx) == nil {
							told.Add(1)
						}
						cancel()
					}
				})
			}
		}
		wg.Wait()
		time.Sleep(time.Minute)
		left, err := latch.New(w.Client(redlatch.Config{}), "orders").Count(bg)
		if n := int64(total - left); err != nil || n < told.Load() || n > asked.Load() || told.Load() == 0 || told.Load() == asked.Load() {
			t.Errorf("%d of %d were told that they counted, and %d have counted (%v)", told.Load(), asked.Load(), n, err)
		}
	})
}
