package faults

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// attemptLimit is what an attempt is given at most. Then it is repeated, whatever
// its driver does.
const attemptLimit = 3 * time.Second

// A patientDriver counts the requests that it has not answered in time: each is
// followed by a retry that nobody has asked for.
type patientDriver struct {
	driver.Redis

	mu    sync.Mutex
	late  int
	asked map[*time.Time]bool // in flight
}

// listenTo returns a driver that does what r does.
func listenTo(r driver.Redis) (driver.Redis, *patientDriver) {
	d := &patientDriver{Redis: r, asked: map[*time.Time]bool{}}
	if b, ok := r.(driver.Batcher); ok {
		return &patientBatcher{d, b}, d
	}
	return d, d
}

func (d *patientDriver) Run(ctx context.Context, x *driver.Script, keys, args []string) (driver.Reply, error) {
	answered := d.ask()
	reply, err := d.Redis.Run(ctx, x, keys, args)
	answered(err)
	return reply, err
}

// A patientBatcher is a patientDriver that can send many requests at once.
type patientBatcher struct {
	*patientDriver
	batcher driver.Batcher
}

func (b *patientBatcher) RunBatch(requests []*driver.Request) {
	answered := b.ask()
	b.batcher.RunBatch(requests)
	errs := make([]error, len(requests))
	for i, r := range requests {
		errs[i] = r.Err
	}
	answered(errs...)
}

// ask notes a call; answered is to be called with what became of its requests.
func (d *patientDriver) ask() (answered func(errs ...error)) {
	start := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked[&start] = true
	return func(errs ...error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.asked, &start)
		for _, err := range errs {
			var slow interface{ Timeout() bool }
			if time.Since(start) >= attemptLimit || errors.Is(err, os.ErrDeadlineExceeded) || (errors.As(err, &slow) && slow.Timeout()) {
				d.late++
			}
		}
	}
}

// unanswered returns how many requests were not answered in time so far.
func (d *patientDriver) unanswered() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.late
	for start := range d.asked {
		if time.Since(*start) >= attemptLimit {
			n++
		}
	}
	return n
}
