package term

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/internal/worker"
)

// An Env is what the terms of a client share.
type Env struct {
	Options
	callers

	watchdogMs string
	seq        atomic.Uint64 // of terms

	lossWork *worker.Queue // of losses: what has to be done when the contexts have ended
	lapsed   lapsed
	detached detached
	renewals map[*script.Script]*renew.Kind // how leases are renewed with a script

	// Quit releases the id of a lock whose kind gathers, together with others. t is
	// its term, which has a share of its home for that; nil: it is an orphan's.
	// Package fair sets it.
	Quit func(l *Lock, id string, t *Term)
}

// NewEnv returns what the terms of a client share that has locks of these kinds.
func NewEnv(o Options, kinds []*Kind) *Env {
	c := &Env{Options: o, watchdogMs: wire.Millis(o.Watchdog), lossWork: worker.NewQueue(0, nil), renewals: make(map[*script.Script]*renew.Kind)}
	for _, k := range kinds {
		if s := k.Renew; c.renewals[s] == nil {
			c.renewals[s] = &renew.Kind{Renew: func(batch []*renew.Lease) { c.renewLocks(s, batch) }}
		}
	}
	return c
}

// Made says whether an owner id is of this client.
func (c *Env) Made(owner string) bool { return wireClient(owner) == c.ID }

// Lapsed says whether an owner id was lost by its window, and may still stand in
// Redis.
func (c *Env) Lapsed(owner string) bool { return c.lapsed.has(owner) }

// Released says whether an owner id may stand in Redis although its hold was
// released.
func (c *Env) Released(owner string) bool { return c.lapsed.released(owner) }

// MayBeDetached says whether an owner id of this client, which no term of it has,
// may be that of a detached hold.
func (c *Env) MayBeDetached(owner string) bool { return c.detached.may(owner) }

// DetachedSince says whether a hold was detached since then.
func (c *Env) DetachedSince(then time.Time) bool { return c.detached.since(then) }

// callers are those of a client that may still leave something to be settled: a
// lock that they get too late, or a place in a queue, at which others would wait
// for them.
type callers struct {
	mu      sync.Mutex // guards what follows
	waiting queue.Pending
	closed  bool
}

// Join notes a caller, unless the client is closed; Part forgets it.
func (c *callers) Join() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.waiting.Add(1)
	}
	return !c.closed
}

// Part forgets a caller that Join has noted.
func (c *callers) Part() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting.Add(-1)
}

// AwaitCallers waits until all callers have returned, at most for d. There are no
// new ones.
func (c *callers) AwaitCallers(d time.Duration) {
	c.mu.Lock()
	c.closed = true
	drained := c.waiting.None()
	c.mu.Unlock()
	_, _ = request.Await(context.Background(), nil, drained, time.Now().Add(d))
}
