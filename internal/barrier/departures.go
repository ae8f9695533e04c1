package barrier

import (
	"sync"

	"github.com/redlatch/redlatch/internal/queue"
)

// departures are the callers of this client that leave barriers, and of which the
// server has not yet confirmed it. A caller that arrived meanwhile would take the
// place of one that has given up for another party.
type departures struct {
	mu sync.Mutex
	of map[string]*queue.Pending // by the barrier's key
}

// add counts so many more, or fewer, that leave a barrier.
func (d *departures) add(key string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = make(map[string]*queue.Pending)
	}
	if d.of[key] == nil {
		d.of[key] = &queue.Pending{}
	}
	if d.of[key].Add(n); d.of[key].Count() == 0 {
		delete(d.of, key)
	}
}

// over returns a channel that is closed when nobody leaves a barrier any more; nil
// if nobody does.
func (d *departures) over(key string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of[key] == nil {
		return nil
	}
	return d.of[key].None()
}
