// Package readers gets a lock for callers that may have it together.
//
// Those of one process share a term. A caller that may join it does; the others
// stand in line, and one worker waits for them all as one caller of package wait.
// The package does not know what a reader holds: package term does. Begin to read
// with Acquire.
package readers

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/lock/wait"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/waitq"
)

// Readers of one process share one owner in Redis, a shared term. Whoever comes
// while it admits readers joins it without a round trip; a reader that cannot join
// stands in line, for which one worker waits like one caller. When it gets the
// lock all of them enter at once.
//
// A shared term admits everybody for a quantum, as long as it likes while
// nobody waits to write, and nobody new after that: it drains. Those of this
// process who wait to write are in line; others are found by asking how many
// listen for the release, once in a quantum while readers come.

// A readQueue is the readers of this process that wait for one lock.
type readQueue struct {
	waitq.Queue[toRead] // its mutex guards why

	c     *wait.Table
	l     *term.Lock
	entry *wait.Entry
	why   error // why the lock was not free when the worker last tried; nil: it has not found that out yet
}

// A reader is a reader in line.
type reader = waitq.Waiter[toRead]

// A toRead is what the worker has to know of a reader, and what that gets.
type toRead struct {
	queue    *readQueue
	since    time.Time // when it began to wait
	lease    time.Duration
	hasLease bool

	t *term.Term // once it is told that it has a place in it
}

var rejoinNext = 100 * time.Millisecond // between two questions whether others still wait

// Acquire gets the lock to read for a caller that does not have it already.
func Acquire(ctx context.Context, c *wait.Table, l *term.Lock, want term.Params) (*term.Hold, error) {
	p := c.NewWaiter(l, &want)
	e := c.Get(l)
	defer e.Put()
	for {
		t, reader := joinOrLineUp(ctx, c, l, e, &p, &want)
		joined := t != nil
		if !joined {
			switch err := reader.Want.queue.await(ctx, reader, &p, &want); {
			case errors.Is(err, term.ErrRejoin):
				continue
			case err != nil:
				p.NoteHolder(e)
				return nil, p.GiveUpError(err)
			}
			t = reader.Want.t
		}
		h, err := t.EnterShared(ctx, nil, &want, joined)
		switch {
		case err == nil:
			return h, nil
		case !errors.Is(err, term.ErrRejoin):
			return nil, p.GiveUpError(err)
		case c.Server.Closed():
			return nil, request.ErrClosed
		case want.Try:
			return nil, p.GiveUpError(request.ErrWaitOver)
		}
	}
}

// joinOrLineUp returns a term in which the caller has a place now, or else the
// caller's place in line.
func joinOrLineUp(ctx context.Context, c *wait.Table, l *term.Lock, e *wait.Entry, p *wait.Waiter, want *term.Params) (*term.Term, *reader) {
	e.Lock()
	defer e.Unlock()
	if t, ask := e.AdmitLocked(time.Now()); t != nil {
		if ask {
			e.Retain()
			c.Server.Go(func() { askOthers(e, t) })
		}
		return t, nil
	}
	rq, _ := e.Extra.(*readQueue)
	if rq == nil {
		rq = &readQueue{c: c, l: l, entry: e}
		rq.Start(c.Server, l.AllKeys(), rq.work)
		e.Extra = rq
	}
	reader := &reader{Wait: p.Shown(ctx), Once: want.Try, Want: toRead{queue: rq, since: want.Since, lease: want.Lease, hasLease: want.HasLease}}
	rq.Lock()
	defer rq.Unlock()
	if rq.Line.Len() == 0 {
		rq.why = nil // the worker gives up, and what it was told may be over
	}
	rq.JoinLocked(reader, e.Retain)
	if reader.Once && rq.why != nil {
		rq.TellLocked(reader, rq.why)
	}
	return nil, reader
}

// await waits until the caller has a place in a term, or cannot have it.
func (rq *readQueue) await(ctx context.Context, reader *reader, p *wait.Waiter, want *term.Params) error {
	want.Asks.Over()
	how := p.Beside(ctx, rq.entry, want)
	err := rq.AwaitAs(reader, &how, func(why error) error { return why })
	p.AskAt(how.At)
	if err == nil && ctx.Err() != nil { // both
		reader.Want.t.GiveBack(true)
		err = request.ContextError(ctx)
	}
	return err
}

// work gets the lock for those in line until nobody is.
func (rq *readQueue) work() {
	defer rq.entry.Put()
	for first := rq.Batch(1); len(first) > 0; first = rq.Batch(1) {
		ctx, of := rq.While(first[0]), &first[0].Want
		refused := func(why error) bool { return rq.refused(ctx, why) }
		h, err := rq.c.Alone(ctx, rq.l, term.Params{Wish: term.Wish{Lease: of.lease, HasLease: of.hasLease}, Since: of.since, At: first[0].Site, Refused: refused})
		rq.tell(ctx, h, err, of.lease)
	}
}

// refused notes that the lock is not free, and tells those that only try. It says
// whether anybody waits. If everybody had left meanwhile, those in line have come
// since: they are asked for anew.
func (rq *readQueue) refused(ctx context.Context, why error) (waits bool) {
	rq.Lock()
	defer rq.Unlock()
	if ctx.Err() != nil {
		return false
	}
	rq.why = why
	for reader := range rq.Line.All() {
		if rq.Line.Tries() == 0 {
			break
		}
		if reader.Once {
			rq.TellLocked(reader, why)
		}
	}
	return rq.Line.Len() > 0
}

// tell tells those in line how it went with a lock that was wanted with that
// lease. h is the hold that was got for them; it ends here.
func (rq *readQueue) tell(ctx context.Context, h *term.Hold, err error, lease time.Duration) {
	rq.entry.Lock() // or somebody would line up that could join
	rq.Lock()
	rq.why = nil
	after, seated := func() {}, false
	if h != nil {
		if after, seated = h.GiveUpTo(rq.Line.Len()); !seated { // before a reader can release: the last one to do that releases the lock
			err = term.ErrRejoin
		}
	}
	for reader := range rq.Line.All() {
		switch {
		case seated:
			reader.Want.t = h.Term()
		case h == nil && ctx.Err() != nil, // everybody had left: this one has come since
			errors.Is(err, request.ErrTooLate) && reader.Want.lease != lease, // another's lease is too short
			request.Outlasted(err) && rq.Server.Patient(reader.Want.since):   // of others
			continue
		}
		rq.TellLocked(reader, err)
	}
	rq.Unlock()
	rq.entry.Unlock()
	after()
}

// Saw implements wait.Extra. What was seen before a reader came does not count for
// it.
func (rq *readQueue) Saw(asked, free time.Time) {
	rq.Lock()
	defer rq.Unlock()
	for reader := range rq.Line.All() {
		if !reader.Until.IsZero() && reader.Until.Before(free) && !asked.Before(reader.Since) {
			rq.TellLocked(reader, request.ErrWaitOver)
		}
	}
}

// Rejoin implements wait.Extra.
func (rq *readQueue) Rejoin() {
	rq.Lock()
	defer rq.Unlock()
	rq.TellAllLocked(term.ErrRejoin)
}

// Waits implements wait.Extra.
func (rq *readQueue) Waits(list *claim.List) {
	rq.Claims(list, func(*reader) claim.Claim { return rq.l.Wanted("") })
}

// askOthers finds out whether others wait, and if so, asks again until they do
// not or the term is over. The caller has taken a share of the entry for it.
func askOthers(e *wait.Entry, t *term.Term) {
	c := t.Env
	defer e.Put()
	for {
		call := t.Op(lua.ReadWriteReadAsk, []string{t.ID, t.Lock.Channel, c.Server.Own(e.Notices(), t.Lock.Channel)})
		call.Single = true
		reply, err := call.Run(context.Background())
		if !t.Heard(int(reply.Int), err) {
			break
		}
		e.Listen(c, t.Lock.Channel) // to hear when they have had their turn
		if !c.Server.Pause(rejoinNext) || !t.Live() {
			break
		}
	}
	e.Readmit()
}
