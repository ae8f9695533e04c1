package wait

import (
	"context"

	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
)

// A Queue is where callers of this process that want the same locks of several
// clients wait for each other. It is kept by one of the clients, which need not
// have any of the locks that its callers hold: who waits for that client's holds
// does not wait for it.
type Queue struct {
	c      *Table
	lock   *term.Lock
	silent func() error // why nobody can have the locks, as far as their servers do not answer; nil: they do
}

// queueSpace is of the entries of queues.
const queueSpace = "queue"

// Queue returns the queue with this entry, which is none of a lock. Those who look
// see callers that want a lock like one of them. silent says why nobody can have
// the locks, if their servers do not answer.
func (c *Table) Queue(entry string, like *term.Lock, silent func() error) *Queue {
	shown := *like
	shown.Env, shown.Entry = c.Env, term.EntryKey{Name: entry, Space: queueSpace}
	return &Queue{c: c, silent: silent, lock: &shown}
}

// A Place is that of a caller that the queue has let in.
type Place struct {
	entry *Entry
	shown *term.Term
}

// Enter waits until the caller may go on. waited says that somebody was before it.
func (queue *Queue) Enter(ctx context.Context, want *term.Params) (_ *Place, waited bool, err error) {
	c := queue.c
	e := c.queues.Get(queue.lock.Entry, func() *Entry { return &Entry{ls: c, EntryKey: queue.lock.Entry} })
	p := c.NewWaiter(queue.lock, want)
	p.silent = queue.silent
	p.refused = func(error) bool { waited = true; return true }
	if !e.gate.TryEnter() {
		if _, err := p.enter(ctx, e, want); err != nil {
			return nil, waited, err
		}
	}
	return &Place{entry: e}, waited, nil
}

// Refusals is where the caller notes for those behind it that so few servers
// answer that nobody can have the locks.
func (place *Place) Refusals() *request.Refusals { return place.entry.Refusals() }

// Show tells those who wait by whom they are kept waiting, until Leave.
func (place *Place) Show(h *term.Hold) {
	place.shown = h.Term()
	place.entry.Lock()
	defer place.entry.Unlock()
	place.entry.cur = place.shown
}

// Leave lets the next caller in.
func (place *Place) Leave() {
	if place.shown != nil {
		place.entry.Forget(place.shown, true)
	}
	place.entry.Leave()
}
