package locktest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
)

// An Acker is a tap whose server has replicas, so many as it is told. They
// acknowledge what they get as acked says, and are silent else: then WAIT lasts.
type Acker struct {
	Tap
	Alone bool // a server that nobody follows elsewhere

	Mu       sync.Mutex
	replicas int
	Ask      error // the answer to the question how many there are
	acked    func(script string, keys []string, n int) (int, error)
	Waited   []string        // the scripts that replicas were waited for,
	Wanted   []int           // and for how many
	Limits   []time.Duration // and for how long at most
	asked    int             // how often it was asked for the number of replicas
}

// MustBeAcked panics unless the script says that replicas may have to acknowledge
// it. Those that do are tested to write in any case.
func MustBeAcked(s *driver.Script) {
	if !strings.Contains(s.Source(), "\n-- acked\n") {
		panic("replicas are to acknowledge " + s.Name() + ", whose header does not say acked")
	}
}

// RunAcked runs the script, and waits for the replicas as the acker was told.
func (d *Acker) RunAcked(ctx context.Context, s *driver.Script, keys, args []string, n int, timeout time.Duration) (driver.Reply, int, error) {
	MustBeAcked(s)
	d.Mu.Lock()
	d.Waited, d.Wanted, d.Limits = append(d.Waited, s.Name()), append(d.Wanted, n), append(d.Limits, timeout)
	acked := d.acked
	have := d.replicas
	d.Mu.Unlock()
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

// Replicas answers how many there are.
func (d *Acker) Replicas(context.Context, string) (int, error) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.asked++
	return d.replicas, d.Ask
}

// Traits says that there are replicas, unless the server is alone.
func (d *Acker) Traits() driver.Traits {
	t := d.Tap.Traits()
	t.Replicated = !d.Alone
	return t
}

// Follow sets how many replicas there are, and how many of them acknowledge.
func (d *Acker) Follow(replicas, acking int) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.replicas = replicas
	d.acked = func(string, []string, int) (int, error) { return acking, nil }
}

// Answer sets what becomes of each acknowledgement.
func (d *Acker) Answer(f func(script string, keys []string, n int) (int, error)) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.acked = f
}

// Takes returns for which scripts replicas were waited for since the last call.
func (d *Acker) Takes() []string {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	s := d.Waited
	d.Waited, d.Wanted, d.Limits = nil, nil, nil
	return s
}

// Questions returns how often the number of replicas was asked for since the
// last call.
func (d *Acker) Questions() int {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	n := d.asked
	d.asked = 0
	return n
}

// Fail sets the answer to the question for the number of replicas.
func (d *Acker) Fail(err error) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.Ask = err
}

// BreakNow tells the client that it may have another server now.
func (d *Acker) BreakNow() {
	d.Tap.mu.Lock()
	defer d.Tap.mu.Unlock()
	for _, f := range d.Tap.breaks {
		f("")
	}
}

// Acking returns a client whose server has so many replicas, of which so many
// acknowledge.
func (w *World) Acking(cfg redlatch.Config, replicas, acking int, of ...observe.Hooks) (*redlatch.Client, *Acker) {
	w.Helper()
	d := &Acker{}
	d.Follow(replicas, acking)
	return w.AckingWith(cfg, d, of...), d
}

// AckingWith is Acking, with this acker.
func (w *World) AckingWith(cfg redlatch.Config, d *Acker, of ...observe.Hooks) *redlatch.Client {
	w.Helper()
	d.Redis = w.Driver()
	return w.ClientWith(d, cfg, of...)
}

// WantAck checks that err says that so many of so many replicas acknowledged
// something.
func (w *World) WantAck(err error, name string, got, want int) {
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

// Settled waits until what is in flight in the background has been done.
func Settled() {
	time.Sleep(time.Millisecond)
	synctest.Wait()
}
