package adapter

import (
	"io"
	"sync"
	"time"
)

// fresh is how old connections are at most of which it is believed that they lead
// where their name leads.
const fresh = 20 * time.Millisecond

// Dialled are the connections that a driver has made and has not closed. The zero
// value is ready for use.
type Dialled struct {
	mu   sync.Mutex // guards what follows
	all  map[io.Closer]bool
	left time.Time
}

// Add adds a connection that was made just now.
func (d *Dialled) Add(c io.Closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = make(map[io.Closer]bool)
	}
	d.all[c] = true
}

// Remove removes a connection that was closed.
func (d *Dialled) Remove(c io.Closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, c)
}

// Leave closes all connections, whose owners remove them, unless it has just done
// so: many callers may have been told at once that their server is no primary.
func (d *Dialled) Leave() {
	var all []io.Closer
	d.mu.Lock()
	if now := time.Now(); now.Sub(d.left) > fresh {
		d.left = now
		for c := range d.all {
			all = append(all, c)
		}
	}
	d.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}
