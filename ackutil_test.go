package redlatch_test

import (
	"context"
	"errors"
	"sync"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// An acker is a tap whose server has replicas, so many as it is told. They
// acknowledge what they get as acked says, and are silent else: then WAIT lasts.
type acker struct {
	tap
	alone bool // a server that nobody follows elsewhere

	mu       sync.Mutex
	replicas int
	ask      error // the answer to the question how many there are
	acked    func(script string, keys []string, n int) (int, error)
	waited   []string        // the scripts that replicas were waited for,
	wanted   []int           // and for how many
	limits   []time.Duration // and for how long at most
	asked    int             // how often it was asked for the number of replicas
}

// silent is a number of acknowledgements that takes all the time that there is.
func (d *acker) RunAcked(ctx context.Context, s *driver.Script, keys, args []string, n int, timeout time.Duration) (driver.Reply, int, error) {
	d.mu.Lock()
	d.waited, d.wanted, d.limits = append(d.waited, s.Name()), append(d.wanted, n), append(d.limits, timeout)
	acked := d.acked
	have := d.replicas
	d.mu.Unlock()
	reply, err := d.Run(ctx, s, keys, args)
	if err != nil {
		return reply, 0, err
	}
	if acked != nil {
		if have, err = acked(s.Name(), keys, n); err != nil {
			return driver.Reply{}, 0, err
		}
	}
	if have >= 0 && have < n {
		time.Sleep(timeout)
	}
	return reply, have, nil
}

func (d *acker) Replicas(context.Context, string) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	return d.replicas, d.ask
}

func (d *acker) Traits() driver.Traits {
	t := d.tap.Traits()
	t.Replicated = !d.alone
	return t
}

// follow sets how many replicas there are, and how many of them acknowledge.
func (d *acker) follow(replicas, acking int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.replicas = replicas
	d.acked = func(string, []string, int) (int, error) { return acking, nil }
}

// answer sets what becomes of each acknowledgement.
func (d *acker) answer(f func(script string, keys []string, n int) (int, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.acked = f
}

// takes returns for which scripts replicas were waited for since the last call.
func (d *acker) takes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.waited
	d.waited, d.wanted, d.limits = nil, nil, nil
	return s
}

// questions returns how often the number of replicas was asked for since the
// last call.
func (d *acker) questions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.asked
	d.asked = 0
	return n
}

// fail sets the answer to the question for the number of replicas.
func (d *acker) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ask = err
}

// breaks tells the client that it may have another server now.
func (d *acker) breakNow() {
	d.tap.mu.Lock()
	defer d.tap.mu.Unlock()
	for _, f := range d.tap.breaks {
		f("")
	}
}

// acking returns a client whose server has so many replicas, of which so many
// acknowledge.
func (w *world) acking(cfg redlatch.Config, replicas, acking int) (*redlatch.Client, *acker) {
	w.Helper()
	d := &acker{}
	d.follow(replicas, acking)
	return w.ackingWith(cfg, d), d
}

func (w *world) ackingWith(cfg redlatch.Config, d *acker) *redlatch.Client {
	w.Helper()
	d.Redis = w.driver()
	return w.clientWith(d, cfg)
}

// wantAck checks that err says that so many of so many replicas acknowledged
// something.
func (w *world) wantAck(err error, name string, got, want int) {
	w.Helper()
	var short *redlatch.AckError
	switch {
	case !errors.Is(err, redlatch.ErrNotAcknowledged), !errors.As(err, &short):
		w.Fatalf("got error %v, want an AckError", err)
	case name != "" && short.Name != name, short.Got != got, short.Want != want, short.Timeout <= 0:
		w.Errorf("got %+v, want %d of %d for %q", short, got, want, name)
	case redlatch.IsRetryable(err) != (short.Err == nil):
		w.Errorf("IsRetryable(%v) is %v", err, !redlatch.IsRetryable(err))
	case errors.Is(err, redlatch.ErrBusy), errors.Is(err, redlatch.ErrLost), errors.Is(err, redlatch.ErrUnavailable):
		w.Errorf("%v is something else as well", err)
	}
}

// settled waits until what is under way in the background has been done.
func settled() {
	time.Sleep(time.Millisecond)
	synctest.Wait()
}

func (w *world) setPermits(s *redlatch.Semaphore, n int) {
	w.Helper()
	_, err := s.TrySetPermits(bg, n, 0)
	w.no(err)
}
