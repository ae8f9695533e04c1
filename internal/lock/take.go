package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/request"
)

// Enter acquires or re-enters the lock.
func (l *Spec) Enter(ctx context.Context, o Params) (*Hold, error) {
	if l.err != nil {
		return nil, l.err
	}
	o.Wish = l.wish
	if l.c.Server.Closed() {
		return nil, request.ErrClosed
	}
	if l.twin != "" {
		if err := l.c.Twins.Use(l.twin, l.key); err != nil {
			return nil, err
		}
	}
	outer, sc, err := l.enclosing(ctx)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, l.c.Errors.Busy(Busy{Name: l.Name(), Cause: request.ContextError(ctx)})
	case sc != nil:
		return l.enterScope(ctx, sc, &o, outer)
	case outer != nil:
		return l.locks.nest(ctx, &l.Lock, outer, &o)
	}
	return l.acquire(l.locks, ctx, &l.Lock, o)
}

// enclosing returns the live hold of this lock that ctx descends from, and the
// scope it is in, if there are any. It fails if ctx descends from a hold that
// is over, or from one that would make the caller wait for itself.
func (l *Lock) enclosing(ctx context.Context) (*Hold, *scope, error) {
	sc, _ := ctx.Value(scopeKey{}).(*scope)
	h, _ := ctx.Value(nearest{l}).(*Hold)
	if h == nil {
		if l.kind.part {
			o := overlap{l}
			if other, _ := ctx.Value(o).(*Hold); other != nil {
				return nil, nil, o.refuse(other)
			}
		}
		return nil, sc, nil
	}
	if h.t.c != l.c {
		h, _ = ctx.Value(member{l}).(*Hold) // of several clients' as one
	}
	if h == nil {
		return nil, nil, fmt.Errorf("%w: the context descends from a hold of lock %q of another client, which cannot be re-entered from this one; acquire with a context that does not descend from it", ErrReentry, l.Name())
	}
	if err := h.unenterable(); err != nil {
		return nil, nil, err
	}
	if l.wish.NonReentrant {
		return nil, nil, fmt.Errorf("%w: lock %q is non-reentrant and the context descends from a hold of it; use that hold, or a context that does not descend from it", ErrReentry, l.Name())
	}
	return h, sc, nil
}

// take asks for the lock. If it does not get it, it returns what the server says: so
// many facts. On failure it leaves the gate once it is known that the lock was not
// taken, or has been released.
func take(ctx context.Context, t *term, o *request.Call, n int) (facts []driver.Reply, err error) {
	reply, err := o.Run(ctx)
	if err = judge(o, reply, err, t); err != nil {
		abandon(o, t)
		return nil, err
	}
	if reply.Kind == driver.ReplyInt {
		t.taken(o.Sent, reply.Int)
		return nil, nil
	}
	if len(reply.List) != n {
		abandon(o, t)
		return nil, request.Unexpected(reply, o.Script)
	}
	return reply.List, nil
}

// judge returns why a request has not taken these terms: too few replicas may know of what the server has, and may forget.
// What it leaves is like what a lost reply may have left: an orphan, which is released on whatever server is the primary by then.
func judge(o *request.Call, reply driver.Reply, err error, ts ...*term) error {
	if short := o.Doubt(err == nil && reply.Kind == driver.ReplyInt); short != nil {
		o.Unknown, err = true, short
	}
	if o.Uncertain(err) {
		for _, t := range ts {
			t.markUncertain()
		}
	}
	return err
}

// abandon leaves the gates of terms that one request was to take. If it is in flight its
// outcome is waited for first: a release sent now could overtake it. Should it succeed, the
// next goroutine of this process inherits the lock.
func abandon(o *request.Call, ts ...*term) {
	leave := func() {
		for _, t := range ts {
			t.discard()
			t.leave()
		}
	}
	if o.Pending == nil {
		leave()
		return
	}
	pending := *o
	pending.Server.Go(func() {
		reply, err := pending.Outcome()
		if judge(&pending, reply, err, ts...) != nil || reply.Kind != driver.ReplyInt {
			leave()
			return
		}
		for _, t := range ts {
			t.taken(pending.Sent, reply.Int)
			passOn(t)
		}
	})
}

// passOn gives a taken term that nobody wants any more to the next goroutine
// of this process, or releases it.
func passOn(t *term) {
	now := time.Now()
	live, passable := t.startPassing(now)
	if !live {
		t.discard()
		t.leave()
		return
	}
	e := entryOf(t)
	if e.budget.Owed > 0 { // as start says
		e.budget.Settled(e.news.Foreign(), now)
	}
	e.budget.Begin(now, true)
	_ = t.finish(context.Background(), passable)
}

// start makes a term that was just taken live, with its first hold, and begins a quantum;
// fresh says that the lock came from elsewhere. It gives the term up, and returns nil, if
// the term is no longer trusted, was revoked, or the client was closed meanwhile.
func (e *entry) start(ctx context.Context, t *term, o *Params, fresh bool) (h *Hold, trusted bool) {
	now := time.Now()
	if trusted = t.trusted(ctx, o.Until, now); trusted {
		// Before it begins: it can be lost at once, and the entry with it.
		if fresh && e.budget.Owed > 0 {
			e.budget.Settled(e.news.Foreign(), now)
		}
		e.budget.Begin(now, fresh)
		if t.lock.kind.part {
			e.news.Stop() // only who waits listens
		}
		h = t.begin(ctx, o, now)
	}
	if h == nil {
		t.discard()
	}
	return h, trusted
}
