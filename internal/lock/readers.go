package lock

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
)

// Readers of one process share one owner in Redis, a shared term. Whoever
// comes while it admits readers joins it without a round trip; a reader that cannot join
// is a member of a group, which waits in line like one caller, and when it gets
// the lock all its members enter at once.
//
// A shared term admits everybody for a quantum, as long as it likes while
// nobody waits to write, and nobody new after that: it drains. Those of this
// process who wait to write are in line; others are found by asking how many
// listen for the release, once in a quantum while readers come.

// A readerGroup is readers who wait together. Its members are those who do; when the
// last one leaves, the group does.
type readerGroup struct {
	c      *table
	l      *Lock
	entry  *entry
	o      Params
	ctx    context.Context //nolint:containedctx // ends when the last member has left
	cancel context.CancelCauseFunc
	tried  chan struct{} // closed when done is, or before: when the lock was found not to be free at once
	done   chan struct{} // closed when t or err is set

	members queue.Line[*reader] // guarded by entry.mu
	why     error               // the same: why the lock was not free when the group last tried
	busy    bool                // tried is closed; belongs to the group's job

	t   *term // each member has a place in it
	err error
}

// A reader is a reader that waits in a group.
type reader struct {
	wait

	group *readerGroup
	place queue.Place[*reader]
}

var (
	errNobody  = errors.New("redlatch: nobody waits any more")
	rejoinNext = 100 * time.Millisecond // between two questions whether others still wait
)

// acquireRead gets the lock to read for a caller that does not have it already.
func acquireRead(ctx context.Context, c *table, l *Lock, o Params) (*Hold, error) {
	p := c.newWaiter(l, &o)
	e := c.get(l)
	defer e.put()
	for {
		t, m := joinOrForm(ctx, &p, e, &o)
		joined := t != nil
		if !joined {
			if err := m.await(ctx, &p, &o); err != nil {
				return nil, err
			}
			err := m.group.err
			switch t = m.group.t; {
			case errors.Is(err, errRejoin) && e.inVain(p.start, p.until):
				p.noteHolder(e)
				return nil, p.giveUpError(request.ErrWaitOver)
			case errors.Is(err, errRejoin), errors.Is(err, request.ErrTooLate) && m.group.o.Lease != o.Lease: // another's lease is too short
				continue
			case request.Outlasted(err) && c.Server.Patient(o.Since): // of others
				continue
			case err != nil:
				return nil, err
			}
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

// joinOrForm returns a term in which the caller has a place now, or what it is in the
// group that it is a member of.
func joinOrForm(ctx context.Context, p *waiter, e *entry, o *Params) (*term, *reader) {
	c, l, now := p.c, p.lock, time.Now()
	e.mu.Lock()
	if t := e.cur; t != nil {
		if ok, ask := t.admit(now, int(e.writers)); ok {
			e.mu.Unlock()
			if ask {
				e.retain()
				c.Server.Go(func() { askOthers(e, t) })
			}
			return t, nil
		}
	}
	g, fresh := (*readerGroup)(nil), e.extra == nil
	if !fresh {
		g = e.extra.(*readerGroup)
	} else {
		g = &readerGroup{c: c, l: l, entry: e, o: *o, tried: make(chan struct{}), done: make(chan struct{})}
		g.o.Try, g.o.Until, g.o.scope, g.o.asks, g.o.Member = false, time.Time{}, nil, nil, false // that is one's own
		g.ctx, g.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		e.extra = g
	}
	m := &reader{group: g}
	if !o.Try {
		m.wait = p.wait(ctx)
	}
	g.members.Push(&m.place, m, o.Try)
	e.mu.Unlock()
	if fresh {
		e.retain() // for the job
		c.Server.Go(g.run)
	}
	return nil, m
}

// run gets the lock for the group.
func (g *readerGroup) run() {
	c := g.c
	p := waiter{c: c, key: g.l.key, start: time.Now(), refused: func(why error) (waits bool) {
		g.entry.mu.Lock()
		g.why = why
		waits = g.members.Len() > g.members.Tries()
		g.entry.mu.Unlock()
		if !g.busy {
			g.busy = true
			close(g.tried)
		}
		return waits
	}}
	var passed *term
	var err error
	if !g.entry.gate.TryEnter() {
		passed, err = p.enter(g.ctx, g.entry, &g.o)
	}
	var h *Hold
	if err == nil && passed != nil {
		h, err = c.handOff(g.ctx, passed, g.l, &g.o)
	}
	if err == nil && h == nil {
		h, err = c.compete(g.ctx, g.entry, g.l, &g.o, &p)
	}
	if err == nil && c.Server.Closed() {
		h.t.refuse()
		err = request.ErrClosed
	}
	if errors.Is(context.Cause(g.ctx), errRejoin) && err != nil && !c.Server.Closed() {
		err = errRejoin
	}
	g.tell(h, err)
}

// tell tells the members. h is the hold that the job has got for them; it ends
// here.
func (g *readerGroup) tell(h *Hold, err error) {
	e := g.entry
	if h == nil {
		// The entry has been left: it may be another's, unless a member is there.
		g.leaveEntry()
		g.err = err
		g.finished()
		g.cancel(errNobody)
		return
	}
	e.mu.Lock()
	if e.extra == g {
		e.extra = nil
	}
	left, seated := h.giveUpTo(g.members.Len()) // before a member can release: the last one to do that releases the lock
	if seated {
		g.t = h.t
	} else {
		g.err = errRejoin
	}
	g.finished()
	e.mu.Unlock()
	g.cancel(errNobody)
	h.t.dropped(left)
}

// finished says that t or err is set.
func (g *readerGroup) finished() {
	close(g.done)
	if !g.busy {
		close(g.tried)
	}
}

// leaveEntry has newcomers form another group. Members, each of whom has a share
// of the entry, call it before they leave.
func (g *readerGroup) leaveEntry() {
	e := g.entry
	if g.c.entries.Find(g.l.entry) != e { // its own key may be another's by now
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.extra == g {
		e.extra = nil
	}
}

// await waits until the group has the lock, in a term in which the caller has a place
// then, or cannot have it. An error is the end of the caller's own waiting.
func (m *reader) await(ctx context.Context, p *waiter, o *Params) error {
	g := m.group
	end := g.done
	if o.Try {
		end = g.tried
	}
	o.asks.Over()
	w := p.waiting(g.entry, o)
	err := request.ErrWaitOver
	if o.Try || !g.entry.inVain(p.start, p.until) {
		err = g.await(ctx, p, w, end)
	}
	if err == nil {
		g.entry.mu.Lock()
		err = g.why
		g.entry.mu.Unlock()
		if err == nil || !o.Try {
			return nil
		}
	}
	p.noteHolder(g.entry)
	m.leave()
	return p.giveUpError(err)
}

// leave takes a member out, who may just have been given a place.
func (m *reader) leave() {
	g := m.group
	e := g.entry
	e.mu.Lock()
	select {
	case <-g.done:
		e.mu.Unlock()
		if g.t != nil {
			g.t.giveBack(true)
		}
		return
	default:
	}
	g.members.Remove(&m.place)
	last := g.members.Len() == 0
	if last && e.extra == g {
		e.extra = nil
	}
	e.mu.Unlock()
	if last {
		g.cancel(errNobody)
	}
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

// await waits until a group is tried, as request.Wait does.
func (g *readerGroup) await(ctx context.Context, p *waiter, w request.Waiting, tried <-chan struct{}) error {
	if at := p.inquiry.due(ctx, p); !at.IsZero() {
		first := w
		first.Until = at
		if _, err := request.Wait(ctx, p.c.Server, &first, tried); !errors.Is(err, request.ErrWaitOver) {
			return err
		}
		p.inquire(g.entry)
	}
	_, err := request.Wait(ctx, p.c.Server, &w, tried)
	return err
}

// inVainLocked says whether one of the members waits less long than the lock stays. All are told to join again: then that one
// sees it. entry.mu is locked.
func (g *readerGroup) inVainLocked(s seen) bool {
	for m := range g.members.All() {
		if !m.Until.IsZero() && m.Until.Before(s.free) && !s.asked.Before(m.Since) {
			return true
		}
	}
	return false
}

// rejoin has the members join again.
func (g *readerGroup) rejoin() { g.cancel(errRejoin) }

// claims adds the members to a list.
func (g *readerGroup) claims(list *claim.List) {
	inLine(&g.members, list, func(m *reader) *wait { return &m.wait })
}
