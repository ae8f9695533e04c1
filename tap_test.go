package redlatch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// A tap sits between a client and its driver and can hold back, repeat or lose
// what a script answers.
type tap struct {
	driver.Redis
	timeout    time.Duration
	hook       func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error)
	keyed      func(s string, keys, args []string, next func() (driver.Reply, error)) (driver.Reply, error)
	cluster    bool
	subscribed func(channel string, sharded bool)
	deaf       bool          // no message arrives
	late       time.Duration // how long each message about a lock is under way
	subs       atomic.Int64
	seen       func(context.Context)
	scripts    sync.Map
	off        atomic.Bool
	mu         sync.Mutex
	breaks     []func(string)
}

func (d *tap) Run(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	d.scripts.Store(s.Name(), [2]any{s, keys})
	if d.seen != nil {
		d.seen(ctx)
	}
	next := func() (driver.Reply, error) { return d.Redis.Run(ctx, s, keys, args) }
	if d.keyed != nil {
		return d.keyed(s.Name(), keys, args, next)
	}
	if d.hook == nil || d.off.Load() {
		return next()
	}
	return d.hook(s.Name(), args, next)
}

func (d *tap) again(name string, args []string) func() {
	v, _ := d.scripts.Load(name)
	sk := v.([2]any)
	return func() { _, _ = d.Redis.Run(context.Background(), sk[0].(*driver.Script), sk[1].([]string), args) }
}

func (d *tap) Traits() driver.Traits {
	t := d.Redis.Traits()
	if d.timeout > 0 {
		t.Timeout = d.timeout
	}
	t.Cluster = t.Cluster || d.cluster
	return t
}

func (d *tap) Subscribe(ch string, sharded bool, h func(driver.Notice)) func() {
	d.subs.Add(1)
	if d.subscribed != nil {
		d.subscribed(ch, sharded)
	}
	stop := d.Redis.Subscribe(ch, sharded, func(n driver.Notice) {
		switch {
		case n.Subscribed:
			h(n)
		case d.late > 0 && !strings.HasPrefix(ch, "redlatch_control"):
			time.AfterFunc(d.late, func() { h(n) })
		case !d.deaf:
			h(n)
		}
	})
	return sync.OnceFunc(func() { d.subs.Add(-1); stop() })
}

func (d *tap) OnBreak(f func(string)) func() {
	d.mu.Lock()
	d.breaks = append(d.breaks, f)
	d.mu.Unlock()
	return d.Redis.OnBreak(f)
}

func (w *world) tapped(cfg redlatch.Config, d *tap) *redlatch.Client {
	d.Redis = w.driver()
	c, err := redlatch.New(d, cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	return c
}

var errTapUnknown = &driver.RunError{Outcome: driver.Unknown, Err: errors.New("reply lost")}
