package synchronizers

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A chaos is a way to the server that delays, loses and holds back what the
// scripts of some type ask and answer, and shows each execution by itself.
type chaos struct {
	w      *locktest.World
	prefix string                                                       // of the scripts
	watch  func(s string, args []string, reply driver.Reply, err error) // after each execution, one at a time
	lossy  bool
	slot   chan struct{} // a mutex would stop the clock

	mu   sync.Mutex
	rand *rand.Rand
	runs int // executions
}

func newChaos(w *locktest.World, seed uint64, prefix string) *chaos {
	return &chaos{w: w, prefix: prefix, lossy: true, slot: make(chan struct{}, 1), rand: rand.New(rand.NewPCG(seed, 11))}
}

func (x *chaos) draw(n int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rand.IntN(n)
}

func (x *chaos) ms(n int) time.Duration { return time.Duration(x.draw(n*1000)) * time.Microsecond }

// alone runs f when no script is being executed.
func (x *chaos) alone(f func()) {
	x.slot <- struct{}{}
	f()
	<-x.slot
}

// A chaotic client may die, and be revived.
type chaotic struct {
	*redlatch.Client
	dead atomic.Bool
}

func (x *chaos) process(cfg redlatch.Config) *chaotic {
	c := &chaotic{}
	c.Client = x.w.Tapped(cfg, &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if !strings.HasPrefix(s, x.prefix) {
			return next()
		}
		run := func() (r driver.Reply, err error) {
			x.alone(func() {
				r, err = next()
				x.runs++
				x.watch(s, args, r, err)
			})
			return r, err
		}
		time.Sleep(x.ms(3))
		if c.dead.Load() {
			return driver.Reply{}, locktest.ErrReplyLost
		}
		if x.lossy && x.draw(10) == 0 { // it arrives when nobody waits for it any more
			after := x.ms(5000)
			go func() {
				time.Sleep(after)
				_, _ = run()
			}()
			time.Sleep(50 * time.Millisecond)
			return driver.Reply{}, locktest.ErrReplyLost
		}
		r, err := run()
		time.Sleep(x.ms(3))
		if (x.lossy && x.draw(10) == 0) || c.dead.Load() {
			return driver.Reply{}, locktest.ErrReplyLost
		}
		return r, err
	}})
	return c
}
