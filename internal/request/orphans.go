package request

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/queue"
)

// Orphans are ids of owners and permits that a late request may still create in
// Redis although they are over. Each is released again and again, for longer than
// any request can be in flight, and until a release of it has been answered.
type Orphans struct {
	server *Server

	mu     sync.Mutex // guards what follows
	timers map[*time.Timer]orphan
	owed   map[string]orphan // those of which no release has been answered, by their ids,
	count  queue.Pending     // and how many they are
	closed bool
}

type orphan struct {
	id    string
	reap  func() // releases the id once more
	step  int
	stays time.Time // before that nobody is to release it
}

// reapSteps are the pauses between the releases of an orphan: 1, 3, 10, 30, 60 and
// 120 seconds after its owner or permit has ended.
var reapSteps = [...]time.Duration{1 * time.Second, 2 * time.Second, 7 * time.Second, 20 * time.Second, 30 * time.Second, 60 * time.Second}

// Add has an id released in a while, and then again and again, by reap, which
// tells Answered. It begins to count when the id has stayed for a time, unless
// that is 0. failed is why its release was not answered; nil: it was. One that is
// to stay is nobody's to wait for: it ends with its TTL.
func (d *Orphans) Add(id string, stays time.Duration, failed error, reap func()) {
	x := orphan{id: id, reap: reap, stays: time.Now().Add(stays)}
	if failed != nil && stays <= 0 && !driver.Failure(failed).Permanent() {
		d.owe(x)
	}
	d.schedule(x, stays)
}

func (d *Orphans) owe(x orphan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.owed[x.id]; !known {
		d.count.Add(1)
	}
	d.owed[x.id] = x
}

// Answered notes how a release of an orphan has ended.
func (d *Orphans) Answered(id string, err error) {
	if err != nil && !driver.Failure(err).Permanent() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.owed[id]; known {
		d.count.Add(-1)
	}
	delete(d.owed, id)
}

// Owed returns how many there are of which no release has been answered.
func (d *Orphans) Owed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count.Count()
}

// Settle has those released until there are none. It fails if ctx ends, or the
// client is closed.
func (d *Orphans) Settle(ctx context.Context) error {
	for d.Owed() > 0 {
		d.mu.Lock()
		none := d.count.None()
		for _, x := range d.owed {
			d.server.Go(x.reap)
		}
		d.mu.Unlock()
		if _, err := Pause(ctx, d.server.Over, none, time.Time{}, Jittered(LongestPause)); err != nil && d.Owed() > 0 {
			return err
		}
	}
	return nil
}

func (d *Orphans) schedule(x orphan, stays time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, owed := d.owed[x.id]; owed && x.step == len(reapSteps) {
		x.step--
	}
	if d.closed || x.step == len(reapSteps) {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(stays+reapSteps[x.step], func() {
		d.mu.Lock()
		_, ok := d.timers[t]
		delete(d.timers, t)
		d.mu.Unlock()
		if ok {
			d.server.Go(func() {
				x.reap()
				x.step++
				d.schedule(x, 0)
			})
		}
	})
	d.timers[t] = x
}

// Has says whether an id is an orphan.
func (d *Orphans) Has(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.timers {
		if x.id == id {
			return true
		}
	}
	return false
}

// Close stops the timers and releases every orphan a last time, unless it is to
// stay.
func (d *Orphans) Close() {
	d.mu.Lock()
	d.closed = true
	left := d.timers
	d.timers = nil
	d.mu.Unlock()
	for t, x := range left {
		t.Stop()
		if time.Now().Before(x.stays) {
			continue // until its TTL is over
		}
		d.server.Go(x.reap)
	}
}
