package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// Members of one client and, in a cluster, one slot are taken with one request,
// all of them or none, if nobody of this process has or wants one of them. Who
// has to wait for a member does that as for any lock.

// joint returns the locks that can be taken together with the first one.
func joint(ctx context.Context, g *holding, order []*Lock, fenced bool) []*Lock {
	first := order[0]
	var locks []*Lock
	for _, l := range order {
		switch {
		case l.c != first.c, l.kind != plainLock, l.fenced || fenced, g.has(l):
			continue
		case l.c.server.Traits.Cluster && wire.Slot(l.name) != wire.Slot(first.name):
			continue
		}
		outer, sc, err := l.enclosing(ctx)
		if outer != nil || sc != nil || err != nil {
			continue
		}
		locks = append(locks, l)
	}
	if len(locks) < 2 || locks[0] != first {
		return nil
	}
	return locks
}

// together takes the first of the locks, and those that can be taken with it, if
// all are free. It returns which one is not, with a *BusyError, or an error of
// the request; or nothing if the locks are to be taken one by one.
func (q *quest) together(ctx context.Context, g *holding, order []*Lock, first bool) (missing *Lock, err error) {
	locks := joint(ctx, g, order, q.o.fenced)
	if locks == nil {
		return nil, nil
	}
	c := locks[0].c
	if err := c.open(); err != nil {
		return nil, err
	}
	start := time.Now()
	ts := q.enterAll(locks)
	if ts == nil {
		return nil, nil
	}
	o := ts[0].op(lua.MultiLockTake, make([]string, 1, len(ts)+1))
	o.Keys, o.Args[0] = make([]string, len(ts)), ts[0].args[0]
	for i, t := range ts {
		o.Keys[i] = t.lock.name
		o.Args = append(o.Args, t.id)
	}
	o.Stop, o.Until = c.server.Done, q.until
	if limit := start.Add(memberPatience); !first && (o.Until.IsZero() || limit.Before(o.Until)) {
		o.Until = limit
	}
	o.Acks = c.server.Acks.Holds
	reply, err := o.Run(ctx)
	if short := o.Doubt(err == nil && reply.Kind == driver.ReplyInt); short != nil {
		o.Unknown, err = true, short
	}
	if o.Uncertain(err) {
		for _, t := range ts {
			t.suspected()
		}
	}
	p := patience{c: c, name: locks[0].name}
	switch {
	case err != nil:
		abandonAll(ts, &o)
		return nil, p.asBusy(err)
	case reply.Kind == driver.ReplyInt:
		return nil, q.beginAll(ctx, g, ts, &o, start)
	}
	abandonAll(ts, &o)
	if len(reply.List) != 3 || reply.List[0].Int < 1 || reply.List[0].Int > int64(len(ts)) {
		return nil, request.Unexpected(reply, o.Script)
	}
	missing = locks[reply.List[0].Int-1]
	busy := &BusyError{Name: missing.name, Owner: reply.List[2].Str, TTL: max(0, wire.FromMillis(reply.List[1].Int))}
	c.stray(missing, busy.Owner)
	return missing, busy
}

// enterAll goes through the gates of all locks, or of none.
func (q *quest) enterAll(locks []*Lock) []*tenure {
	ts := make([]*tenure, 0, len(locks))
	for _, l := range locks {
		ln := l.c.lines.get(l)
		if !ln.gate.TryEnter() {
			l.c.lines.put(ln)
		} else if t := l.c.newTenure(ln, l, q.o); ln.turns.Owes(ln.news.Foreign(), time.Now()) > 0 {
			t.forgo()
			l.c.leave(ln)
		} else {
			ts = append(ts, t)
			continue
		}
		for _, t := range ts {
			t.forgo()
			t.c.leave(t.line)
		}
		return nil
	}
	return ts
}

// abandonAll is tenure.abandon for many.
func abandonAll(ts []*tenure, o *request.Call) {
	leave := func() {
		for _, t := range ts {
			t.forgo()
			t.c.leave(t.line)
		}
	}
	if o.Pending == nil {
		leave()
		return
	}
	pending := *o
	pending.Server.Go(func() {
		reply, err := pending.Outcome()
		short := pending.Doubt(err == nil && reply.Kind == driver.ReplyInt)
		if pending.Uncertain(err) || short != nil {
			for _, t := range ts {
				t.suspected()
			}
		}
		if err != nil || reply.Kind != driver.ReplyInt || short != nil {
			leave()
			return
		}
		for _, t := range ts {
			t.taken(pending.Sent, 1)
			t.passOn()
		}
	})
}

// beginAll makes tenures that were taken the holding's, if that is known in
// time; else none.
func (q *quest) beginAll(ctx context.Context, g *holding, ts []*tenure, o *request.Call, start time.Time) error {
	holds := make([]*hold, 0, len(ts))
	for _, t := range ts {
		t.taken(o.Sent, 1)
		now := time.Now()
		var h *hold
		if t.trusted(ctx, o.Until, now) {
			// Before it begins: it can be lost at once, and the line with it.
			t.line.turns.Settled(t.line.news.Foreign(), now)
			t.line.turns.Begin(now, true)
			h = t.begin(ctx, q.o, q.o.at, now)
		}
		if h == nil { // revoked, closed or too late
			t.forgo()
			t.c.leave(t.line)
			continue
		}
		holds = append(holds, h)
	}
	err := ts[0].c.open()
	for _, h := range holds {
		switch {
		case err != nil:
			h.refuse()
		case len(holds) < len(ts):
			h.t.c.server.Go(func() { _ = h.release(context.Background()) })
		default:
			g.add(h)
			h.t.c.acquired(h, start, false)
		}
	}
	return err
}
