package locktest

import (
	"math/rand/v2"
	"sync"
)

// A LockedRand is a source of chance for many goroutines.
type LockedRand struct {
	mu sync.Mutex
	R  *rand.Rand
}

// N returns a number below n.
func (r *LockedRand) N(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.R.IntN(n)
}
