package locktest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
)

// A Tap sits between a client and its driver and can hold back, repeat or lose
// what a script answers.
type Tap struct {
	driver.Redis // the driver

	// Hook decides what becomes of a request: next executes it. Keyed is one that sees
	// the keys, too.
	Hook  func(script string, args []string, next func() (driver.Reply, error)) (driver.Reply, error)
	Keyed func(script string, keys, args []string, next func() (driver.Reply, error)) (driver.Reply, error)
	Off   atomic.Bool           // Hook is not asked
	Notes bool                  // the hooks also see the note that a client writes a second after its first owner id
	Seen  func(context.Context) // sees the context of each request, one at a time

	Subscribed func(channel string, sharded bool) // is told before a subscription begins
	Subs       atomic.Int64                       // how many there are
	Deaf       bool                               // no message arrives
	Late       time.Duration                      // how long each message about a lock is in flight

	Timeout time.Duration // the driver's, if it is not what it says
	Cluster bool          // it says so

	scripts sync.Map // what Again needs, by name
	mu      sync.Mutex
	breaks  []func(string)
}

// Run lets the hooks decide what becomes of a request.
func (d *Tap) Run(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if s.Name() == "client.note" && !d.Notes {
		return d.Redis.Run(ctx, s, keys, args)
	}
	d.scripts.Store(s.Name(), [2]any{s, keys})
	if d.Seen != nil {
		d.mu.Lock()
		d.Seen(ctx)
		d.mu.Unlock()
	}
	next := func() (driver.Reply, error) { return d.Redis.Run(ctx, s, keys, args) }
	if d.Keyed != nil {
		return d.Keyed(s.Name(), keys, args, next)
	}
	if d.Hook == nil || d.Off.Load() {
		return next()
	}
	return d.Hook(s.Name(), args, next)
}

// Again returns a function that has the last request of a script executed once
// more.
func (d *Tap) Again(name string, args []string) func() {
	v, _ := d.scripts.Load(name)
	sk := v.([2]any)
	return func() { _, _ = d.Redis.Run(context.Background(), sk[0].(*driver.Script), sk[1].([]string), args) }
}

// Traits are the driver's, but for what the tap changes.
func (d *Tap) Traits() driver.Traits {
	t := d.Redis.Traits()
	if d.Timeout > 0 {
		t.Timeout = d.Timeout
	}
	t.Cluster = t.Cluster || d.Cluster
	t.Interruptible, t.Direct = false, false // a hook may take longer
	return t
}

// Subscribe counts the subscriptions, and delays or loses messages.
func (d *Tap) Subscribe(ch string, sharded bool, h func(driver.Notice)) func() {
	d.Subs.Add(1)
	if d.Subscribed != nil {
		d.Subscribed(ch, sharded)
	}
	stop := d.Redis.Subscribe(ch, sharded, func(n driver.Notice) {
		switch {
		case n.Subscribed:
			h(n)
		case d.Late > 0 && !strings.HasPrefix(ch, "redlatch_control"):
			time.AfterFunc(d.Late, func() { h(n) })
		case !d.Deaf:
			h(n)
		}
	})
	return sync.OnceFunc(func() { d.Subs.Add(-1); stop() })
}

// OnBreak notes who wants to hear of breaks, for Acker.BreakNow.
func (d *Tap) OnBreak(f func(string)) func() {
	d.mu.Lock()
	d.breaks = append(d.breaks, f)
	d.mu.Unlock()
	return d.Redis.OnBreak(f)
}

// Tapped returns a client with the tap between it and its driver.
func (w *World) Tapped(cfg redlatch.Config, d *Tap, of ...observe.Hooks) *redlatch.Client {
	w.Helper()
	d.Redis = w.Driver()
	c, err := redlatch.New(d, cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() }) // an error is what the test may be about
	return Observed(c, of...)
}

// ErrReplyLost is the error of a request whose outcome nobody knows.
var ErrReplyLost = &driver.RunError{Outcome: driver.Unknown, Err: errors.New("reply lost")}

// ErrRefused is the error of a request that no server got.
var ErrRefused = &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("refused")}

// Failing is a Hook by which requests fail with an error while down is set. Those
// are not executed.
func Failing(down *atomic.Bool, err error) func(script string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	return func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if down.Load() {
			return driver.Reply{}, err
		}
		return next()
	}
}
