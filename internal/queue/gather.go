// Package queue has callers of a process wait together for what is done for many
// of them at once: a [Line] has them in order, a [Gather] by the keys that it is
// done at, and a [Registry] what they share while they wait.
package queue

import "sync"

// MostAnswered is for how many callers one number can be the answer, a bit for
// each: so many bits Lua can count to.
const MostAnswered = 50

// A Gather collects what callers want done at the same keys. One worker at a time
// sends it, for as many as fit into one request; a caller that comes meanwhile
// goes with the next one.
type Gather[T any] struct {
	most int          // for so many one request is
	run  func(func()) // runs a worker

	mu sync.Mutex
	m  map[string][]T // those who wait; a key is there for as long as its worker
}

// NewGather returns one for requests that are for so many callers at most. Its
// workers are run by run.
func NewGather[T any](most int, run func(func())) *Gather[T] {
	return &Gather[T]{most: most, run: run, m: map[string][]T{}}
}

// Add has send called with x, and with others of the same key.
func (g *Gather[T]) Add(key string, x T, send func(all []T)) {
	g.mu.Lock()
	waiting, works := g.m[key]
	g.m[key] = append(waiting, x)
	g.mu.Unlock()
	if works {
		return
	}
	g.run(func() {
		for all := g.next(key); all != nil; all = g.next(key) {
			send(all)
		}
	})
}

// next returns the next ones, or nil if there are none: then nobody works for
// them.
func (g *Gather[T]) next(key string) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.m[key]
	if len(all) == 0 {
		delete(g.m, key)
		return nil
	}
	n := min(len(all), g.most)
	g.m[key] = all[n:]
	return all[:n:n]
}
