package redlatch

import "sync"

// gathers collects what callers of this client want done at the same keys. One
// worker at a time sends it, for as many as fit into one request; who comes
// meanwhile goes with the next one.
type gathers[T any] struct {
	mu sync.Mutex
	m  map[string][]T // those who wait; a key is there for as long as its worker
}

// mostGathered is for how many callers one request is: as many as there are bits in
// an answer that Lua can count to.
const mostGathered = 50

// add has send called with x, and with others of the same key.
func (g *gathers[T]) add(c *Client, key string, x T, send func(all []T)) {
	g.mu.Lock()
	waiting, works := g.m[key]
	if g.m == nil {
		g.m = map[string][]T{}
	}
	g.m[key] = append(waiting, x)
	g.mu.Unlock()
	if works {
		return
	}
	c.settle(func() {
		for all := g.next(key); all != nil; all = g.next(key) {
			send(all)
		}
	})
}

// next returns the next ones, or nil if there are none: then nobody works for them.
func (g *gathers[T]) next(key string) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.m[key]
	if len(all) == 0 {
		delete(g.m, key)
		return nil
	}
	n := min(len(all), mostGathered)
	g.m[key] = all[n:]
	return all[:n:n]
}
