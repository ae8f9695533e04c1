package redlatch

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/worker"
)

// settle runs f on the client's workers: clean-up that nobody waits for but
// Close.
func (c *Client) settle(f func()) { c.pool.Go(worker.Func(f)) }

// detached runs f to its end, whatever becomes of ctx, which only bounds how
// long the caller waits for it.
func (c *Client) detached(ctx context.Context, lease time.Duration, f func() error) error {
	if ctx.Done() == nil && c.promptFor(lease) {
		return f()
	}
	done := make(chan error, 1)
	c.settle(func() { done <- f() })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		select {
		case err := <-done: // both: the outcome says more
			return err
		default:
			return ctxError(ctx)
		}
	}
}

// debts are ids of owners and permits that a late request may still create in
// Redis although they are over. Each is released again and again, for longer than any
// request can be under way.
type debts struct {
	c *Client

	mu     sync.Mutex // guards what follows
	timers map[*time.Timer]debt
	closed bool
}

type debt struct {
	id   string
	pay  func() // releases the id once more
	step int
}

// debtSteps are the pauses between the releases of a debt: it is due 1, 3, 10,
// 30, 60 and 120 seconds after its tenure has ended.
var debtSteps = [...]time.Duration{1 * time.Second, 2 * time.Second, 7 * time.Second, 20 * time.Second, 30 * time.Second, 60 * time.Second}

func (d *debts) add(l *Lock, id string) { d.schedule(debt{id: id, pay: func() { d.now(l, id) }}) }

func (d *debts) schedule(x debt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || x.step >= len(debtSteps) {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(debtSteps[x.step], func() {
		d.mu.Lock()
		_, ok := d.timers[t]
		delete(d.timers, t)
		d.mu.Unlock()
		if ok {
			d.c.settle(func() { d.pay(x) })
		}
	})
	d.timers[t] = x
}

// pay releases the id once more and schedules the next time.
func (d *debts) pay(x debt) {
	x.pay()
	x.step++
	d.schedule(x)
}

// now releases an id of ours that has no live tenure. It is a single attempt:
// more will follow.
func (d *debts) now(l *Lock, id string) {
	o := op{c: d.c, script: l.kind.release, keys: l.keys, args: l.args(l.kind.releaseArgs([]string{id, l.channel, "0"})), lease: d.c.cfg.WatchdogTimeout, stop: d.c.over, single: true}
	_, _ = o.run(context.Background())
}

// stray releases an id that was found in a lock if it is of this client and
// nobody here has it: a request that came late has put it there. (In a group,
// that of who has other values is nothing unusual.)
func (c *Client) stray(l *Lock, owner string) {
	if wireClient(owner) != c.id || c.lines.known(l.name, owner) || c.lapsed.has(owner) || (l.group != nil && !c.debts.owes(owner)) {
		return
	}
	c.settle(func() { c.debts.now(l, owner) })
}

// owes says whether an id is a debt.
func (d *debts) owes(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.timers {
		if x.id == id {
			return true
		}
	}
	return false
}

// close drops the timers and pays every debt a last time.
func (d *debts) close() {
	d.mu.Lock()
	d.closed = true
	left := d.timers
	d.timers = nil
	d.mu.Unlock()
	for t, x := range left {
		t.Stop()
		d.c.settle(x.pay)
	}
}

// lapsed are the ids that were lost by their windows, for as long as they may stand
// in Redis. That time is their holders', to stop: nobody else releases them.
type lapsed struct {
	mu    sync.Mutex // guards what follows
	until map[string]time.Time
	most  int // so many are kept before those are looked for whose time is over
}

func (s *lapsed) add(id string, length time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.until) >= s.most {
		maps.DeleteFunc(s.until, func(_ string, until time.Time) bool { return now.After(until) })
		s.most = 2*len(s.until) + 64
	}
	if s.until == nil {
		s.until = make(map[string]time.Time)
	}
	s.until[id] = now.Add(length)
}

func (s *lapsed) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, id)
}

func (s *lapsed) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until[id])
}
