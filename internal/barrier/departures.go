package barrier

import (
	"context"
	"sync"
	"time"
)

// departures are the callers of this client that leave barriers, and have not been heard to have left. Who arrives
// meanwhile would meet them, and take for another party what is the place of one that has given up.
type departures struct {
	mu sync.Mutex
	of map[string]*departure // by the barrier's key
}

type departure struct {
	n    int
	over chan struct{} // closed when all have left
}

func (d *departures) begin(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = make(map[string]*departure)
	}
	if d.of[key] == nil {
		d.of[key] = &departure{over: make(chan struct{})}
	}
	d.of[key].n++
}

func (d *departures) end(key string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.of[key]
	if x.n -= n; x.n == 0 {
		close(x.over)
		delete(d.of, key)
	}
}

// await waits until those have left who are leaving, for no longer than most.
func (d *departures) await(ctx context.Context, key string, most time.Duration, done <-chan struct{}) {
	d.mu.Lock()
	x := d.of[key]
	d.mu.Unlock()
	if x == nil {
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-x.over:
	case <-ctx.Done():
	case <-done:
	case <-timer.C:
	}
}
