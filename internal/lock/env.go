package lock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/worker"
)

// An env is what the terms of a client share.
type env struct {
	Options
	callers

	watchdogMs string
	seq        atomic.Uint64 // of terms

	lossWork *worker.Queue // of losses: what has to be done when the contexts have ended
	lapsed   lapsed
	detached detached
	renewals map[*script.Script]*renew.Kind // how leases are renewed with a script

	// quit releases the id of a lock whose kind gathers, together with others. t is its term, which has a share of its home
	// for that; nil: it is an orphan's.
	quit func(l *Lock, id string, t *term)
}

// callers are those of a client that may still leave something to be settled: a lock that they get too late, or
// a place in a queue, at which others would wait for them.
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

// drain waits until all callers have returned, at most for d. There are no new ones.
func (c *callers) drain(d time.Duration) {
	c.mu.Lock()
	c.closed = true
	drained := c.waiting.None()
	c.mu.Unlock()
	_, _ = request.Await(context.Background(), nil, drained, time.Now().Add(d))
}
