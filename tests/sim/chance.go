package sim

import (
	"math/rand/v2"
	"sync"
	"time"
)

// A chance is a source of numbers that a seed gives, for several goroutines. Each
// part of a world has one of its own, so that what one part draws changes nothing
// of what the others draw.
type chance struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newChance(seed, stream uint64) *chance {
	return &chance{r: rand.New(rand.NewPCG(seed, stream))} //nolint:gosec // it has to be the same each time
}

// n returns a number below n.
func (c *chance) n(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.r.IntN(n)
}

// oneIn says yes once in n times, and never if n is 0.
func (c *chance) oneIn(n int) bool { return n > 0 && c.n(n) == 0 }

// upTo returns a duration below d, a short one more often than a long one.
func (c *chance) upTo(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.r.Float64()
	return time.Duration(f * f * float64(d))
}
