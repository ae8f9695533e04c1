package locktest

import (
	"math/rand/v2"
	"sync"
)

type LockedRand struct {
	mu sync.Mutex
	R  *rand.Rand
}

func (r *LockedRand) N(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.R.IntN(n)
}
