package lock

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/waitq"
)

// Readers of one process share one owner in Redis, a shared term. Whoever
// comes while it admits readers joins it without a round trip; a reader that cannot join
// stands in line, for which one worker waits like one caller. When it gets the lock all
// of them enter at once.
//
// A shared term admits everybody for a quantum, as long as it likes while
// nobody waits to write, and nobody new after that: it drains. Those of this
// process who wait to write are in line; others are found by asking how many
// listen for the release, once in a quantum while readers come.

// A readQueue is the readers of this process that wait for one lock.
type readQueue struct {
	waitq.Queue[toRead] // its mutex guards why

	c     *table
	l     *Lock
	entry *entry
	why   error // why the lock was not free when the worker last tried; nil: it has not found that out yet
}

// A reader is a reader in line.
type reader = waitq.Waiter[toRead]

// A toRead is how a reader wants the lock, and what it gets.
type toRead struct {
	Params

	queue *readQueue
	t     *term // once it is told that it has a place in it
}

var rejoinNext = 100 * time.Millisecond // between two questions whether others still wait

// acquireRead gets the lock to read for a caller that does not have it already.
func acquireRead(ctx context.Context, c *table, l *Lock, o Params) (*Hold, error) {
	p := c.newWaiter(l, &o)
	e := c.get(l)
	defer e.put()
	for {
		t, m := joinOrLineUp(ctx, &p, e, &o)
		joined := t != nil
		if !joined {
			switch err := m.Want.queue.await(ctx, m, &p, &o); {
			case errors.Is(err, errRejoin):
				continue
			case err != nil:
				p.noteHolder(e)
				return nil, p.giveUpError(err)
			}
			t = m.Want.t
		}
		h, err := t.enterShared(ctx, nil, &o)
		switch {
		case err == nil:
			h.passed = joined
			return h, nil
		case !errors.Is(err, errRejoin):
			return nil, p.giveUpError(err)
		case c.Server.Closed():
			return nil, request.ErrClosed
		case o.Try:
			return nil, p.giveUpError(request.ErrWaitOver)
		}
	}
}

// joinOrLineUp returns a term in which the caller has a place now, or else the caller's place in line.
func joinOrLineUp(ctx context.Context, p *waiter, e *entry, o *Params) (*term, *reader) {
	c := p.c
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.cur; t != nil {
		if ok, ask := t.admit(time.Now(), int(e.writers)); ok {
			if ask {
				e.retain()
				c.Server.Go(func() { askOthers(e, t) })
			}
			return t, nil
		}
	}
	q, _ := e.extra.(*readQueue)
	if q == nil {
		q = &readQueue{c: c, l: p.lock, entry: e}
		q.Start(c.Server, p.lock.allKeys(), q.work)
		e.extra = q
	}
	m := &reader{Wait: p.wait(ctx).Wait, Want: toRead{Params: *o, queue: q}, Once: o.Try}
	q.Lock()
	defer q.Unlock()
	q.JoinLocked(m, e.retain)
	if m.Once && q.why != nil {
		q.TellLocked(m, q.why)
	}
	return nil, m
}

// await waits until the caller has a place in a term, or cannot have it.
func (q *readQueue) await(ctx context.Context, m *reader, p *waiter, o *Params) error {
	o.asks.Over()
	w := p.waiting(q.entry, o)
	w.At, w.Do = p.inquiry.due(ctx, p), func() { p.inquire(q.entry) }
	if !o.Try && q.entry.inVain(p.start, p.until) {
		w.Until = p.start // it is over
	}
	err := q.AwaitAs(m, &w, func(why error) error { return why })
	if err == nil && ctx.Err() != nil { // both
		m.Want.t.giveBack(true)
		err = request.ContextError(ctx)
	}
	return err
}

// work gets the lock for those in line until nobody is.
func (q *readQueue) work() {
	defer q.entry.put()
	for first := q.Batch(1); len(first) > 0; first = q.Batch(1) {
		ctx, o := q.While(first[0]), first[0].Want.Params
		o.Try, o.Until, o.scope, o.asks, o.Member, o.refused = false, time.Time{}, nil, nil, false, q.refused
		h, err := q.c.acquireAlone(ctx, q.l, o)
		q.tell(ctx, h, err, &o)
	}
}

// refused notes that the lock is not free, and tells those that only try. It says whether anybody waits.
func (q *readQueue) refused(why error) (waits bool) {
	q.Lock()
	defer q.Unlock()
	q.why = why
	for m := range q.Line.All() {
		if q.Line.Tries() == 0 {
			break
		}
		if m.Once {
			q.TellLocked(m, why)
		}
	}
	return q.Line.Len() > 0
}

// tell tells those in line how it went with a lock that was wanted so. h is the hold that was got for them; it ends here.
func (q *readQueue) tell(ctx context.Context, h *Hold, err error, o *Params) {
	q.entry.mu.Lock() // or somebody would line up that could join
	q.Lock()
	q.why = nil
	left, seated := others, false
	if h != nil {
		if left, seated = h.giveUpTo(q.Line.Len()); !seated { // before a reader can release: the last one to do that releases the lock
			err = errRejoin
		}
	}
	for m := range q.Line.All() {
		switch {
		case seated:
			m.Want.t = h.t
		case h == nil && ctx.Err() != nil, // everybody had left: this one has come since
			errors.Is(err, request.ErrTooLate) && m.Want.Lease != o.Lease, // another's lease is too short
			request.Outlasted(err) && q.Server.Patient(m.Want.Since):      // of others
			continue
		}
		q.TellLocked(m, err)
	}
	q.Unlock()
	q.entry.mu.Unlock()
	if h != nil {
		h.t.dropped(left)
	}
}

// saw implements extra. What was seen before a reader came does not count for it.
func (q *readQueue) saw(now seen) {
	q.Lock()
	defer q.Unlock()
	for m := range q.Line.All() {
		if !m.Until.IsZero() && m.Until.Before(now.free) && !now.asked.Before(m.Since) {
			q.TellLocked(m, request.ErrWaitOver)
		}
	}
}

// rejoin implements extra.
func (q *readQueue) rejoin() {
	q.Lock()
	defer q.Unlock()
	q.TellAllLocked(errRejoin)
}

// claims implements extra.
func (q *readQueue) claims(list *claim.List) {
	q.Claims(list, func(*reader) claim.Claim { return claimOn(q.l, "") })
}

// askOthers finds out whether others wait, and if so, asks again until they do
// not or the term is over. The caller has taken a share of the entry for it.
func askOthers(e *entry, t *term) {
	c := t.c
	defer e.put()
	for {
		o := t.op(lua.ReadWriteReadAsk, []string{t.id, t.lock.channel, c.Server.Own(&e.news, t.lock.channel)})
		o.Single = true
		reply, err := o.Run(context.Background())
		if !t.heard(int(reply.Int), err) {
			break
		}
		e.listen(c, t.lock.channel) // to hear when they have had their turn
		if !c.Server.Pause(rejoinNext) || !t.live() {
			break
		}
	}
	e.readmit()
}
