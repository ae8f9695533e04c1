package wait

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
)

// handOff gives the caller the term that was passed to it, or makes a new
// one of it with one round trip: a yield, if the quantum is over, or a transfer,
// if it is not a watchdog's or not asked for one, or the two are released
// differently. It returns neither a hold nor
// an error if there is nothing to take over any more: then the caller competes.
// On failure the gate has been left, or will be.
func (c *Table) handOff(ctx context.Context, old *term.Term, l *term.Lock, want *term.Params) (*term.Hold, error) {
	if l.Kind.Transfer != old.Lock.Kind.Transfer {
		if old.EndForMove() { // the caller is to read what was held to write
			_ = old.SendRelease(time.Time{})
		}
		return nil, nil
	}
	now := time.Now()
	e := entryOf(old)
	turn := e.budget.Over(now)
	if !turn && want.Suits(old, l, now) {
		return old.Adopt(ctx, want, now), nil
	}
	if !old.EndForMove() {
		return nil, nil
	}
	m := move{c: c, old: old, t: e.newTerm(l, want)}
	if turn {
		return m.yield(ctx, want)
	}
	return m.transfer(ctx, want)
}

// A move is that of the lock from one id to another, for the caller to which a
// term was passed.
type move struct {
	c      *Table
	old, t *term.Term
}

// listens says whether a process that owes a turn listens for it to be taken.
// Messages of a group are about any of its values, and two that each listen would
// take one another for waiters.
func listens(k *term.Kind) bool { return k.Pause == nil && !k.Part }

// yield lets other processes have the lock, if any of them waits; else it moves
// from old to t. A replica that does not know of it yet has the lock as old's,
// which keeps everybody else out as well. So replicas are asked only where t is to
// have more than old had, or where its renewals would need them. The retry of a
// yield that was executed finds neither id: nobody held the term at that moment,
// so that is no loss.
func (m move) yield(ctx context.Context, want *term.Params) (*term.Hold, error) {
	c, t, e := m.c, m.t, entryOf(m.t)
	own, last := c.Server.Own(&e.news, t.Lock.Channel), "0"
	if t.Lock.Kind.Pause != nil || e.budget.Last(time.Now()) { // nobody sees who spins
		last = "1"
	}
	foreign := e.news.Foreign()
	e.news.Expect()
	call := t.Taking(t.Lock.Kind.Yield, []string{m.old.ID, t.ID, t.Args[0], t.Lock.Channel, own, last}, want, &e.refused)
	call.Acks = c.Server.Acks.Renews || (c.Server.Acks.Holds && (t.Fenced || !t.Watch || t.Length > m.old.Length))
	reply, err := call.Run(ctx)
	if short := call.Doubt(err == nil && len(reply.List) == 1); short != nil {
		err = short
	}
	if call.Unknown {
		t.MarkUncertain()
	}
	switch {
	case err != nil:
		e.news.Answered(call.Unknown || call.Pending != nil)
		m.abandon(&call, func(r driver.Reply) bool { return len(r.List) == 1 })
		return nil, err
	case len(reply.List) == 1:
		e.news.Answered(false)
		e.budget.Begin(time.Now(), false) // nobody has wanted the turn
		return m.done(ctx, &call, reply.List[0].Int, want), nil
	case reply.Kind != driver.ReplyInt:
		e.news.Answered(true)
		m.abandon(&call, nil)
		return nil, request.Unexpected(reply, call.Script)
	case reply.Int < 0 && !call.Unknown:
		e.news.Answered(false) // lost on the way; nobody held it
	default:
		e.news.Answered(true)
		now := time.Now()
		e.budget.Yield(int(max(0, reply.Int)), foreign, now, now)
		if listens(t.Lock.Kind) {
			e.Listen(t.Env, t.Lock.Channel)
		}
	}
	t.Discard()
	return nil, nil
}

// transfer moves the lock from old to t with a lease of its own.
func (m move) transfer(ctx context.Context, want *term.Params) (*term.Hold, error) {
	t := m.t
	call := t.Taking(t.Lock.Kind.Transfer, []string{m.old.ID, t.ID, t.Args[0]}, want, &entryOf(t).refused)
	reply, err := call.Run(ctx)
	if short := call.Doubt(err == nil && reply.Int > 0); short != nil {
		err = short
	}
	if call.Unknown {
		t.MarkUncertain()
	}
	switch {
	case err != nil:
		m.abandon(&call, func(r driver.Reply) bool { return r.Int > 0 })
		return nil, err
	case reply.Int > 0:
		return m.done(ctx, &call, reply.Int, want), nil
	}
	t.Discard()
	return nil, nil
}

// done begins the term that the server has confirmed, if that came in time.
func (m move) done(ctx context.Context, call *request.Call, token int64, want *term.Params) *term.Hold {
	m.t.Taken(call.Sent, token)
	h, _ := entryOf(m.t).start(ctx, m.t, want, false)
	return h
}

// abandon leaves the gate for a caller whose yield or transfer has failed.
// What is in flight is waited for; if it made t the owner, the next goroutine
// of this process gets the lock.
func (m move) abandon(call *request.Call, isMoved func(driver.Reply) bool) {
	old, t, sent := m.old, m.t, *call
	m.c.Server.Go(func() {
		reply, err := sent.Outcome()
		if err == nil && isMoved != nil && isMoved(reply) && sent.Doubt(true) == nil {
			t.Lease.Confirm(sent.Sent, t.Length)
			passOn(t)
			return
		}
		// Nobody knows whose it is, so both ids are released, now and later.
		for _, x := range []*term.Term{old, t} {
			x.MarkUncertain()
			_ = x.SendRelease(sent.Since) // the next caller waits for that, too
		}
		t.Home.Leave()
	})
}
