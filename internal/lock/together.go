package lock

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// Members of one client and, where slots count, of one slot are taken with one request,
// all of them or none, if nobody of this process has or wants one of them. Who
// has to wait for a member does that as for any lock.

// Joint returns the locks that can be taken together with the first one, and that; nil if there are none.
func Joint(ctx context.Context, order []*Spec) []*Spec {
	first := order[0]
	var locks []*Spec
	for _, l := range order {
		switch {
		case l.c != first.c, l.kind.joint == nil, l.kind.joint != first.kind.joint, l.wish.Lease != first.wish.Lease, l.wish.Fenced, l.Within(ctx):
			continue
		case request.SlotsCount(l.c.Server) && wire.Slot(l.key) != wire.Slot(first.key):
			continue
		}
		locks = append(locks, l)
	}
	if len(locks) < 2 || locks[0] != first {
		return nil
	}
	return locks
}

// Together takes joint locks, if all are free. It returns their holds, or which one is not free,
// with the error that says so, or an error of the request; or nothing if the locks are to be taken
// one by one.
func Together(ctx context.Context, locks []*Spec, p *Params) (holds []*Hold, missing *Spec, err error) {
	c := locks[0].locks
	if c.Server.Closed() || !c.Join() { // as acquireAlone does
		return nil, nil, request.ErrClosed
	}
	defer c.Part()
	ts := enterAll(locks, p)
	if ts == nil {
		return nil, nil, nil
	}
	o := ts[0].op(locks[0].kind.joint, make([]string, 1, len(ts)+1))
	o.Keys, o.Args[0] = make([]string, len(ts)), ts[0].args[0]
	var asks []*request.Refusals
	for i, t := range ts {
		o.Keys[i] = t.lock.key
		o.Args = append(o.Args, t.id)
		asks = append(asks, &entryOf(t).refused)
	}
	o.Refusals = request.AllRefusals(asks)
	o.Stop, o.Until, o.Since, o.Acks = c.Server.Done, p.Until, p.Since, c.Server.Acks.Holds
	reply, err := o.Run(ctx)
	err = judge(&o, reply, err, ts...)
	w := waiter{c: &c.table, key: locks[0].key}
	switch {
	case err != nil:
		abandon(&o, ts...)
		if driver.Failure(err).Code == "CROSSSLOT" {
			return nil, nil, nil
		}
		return nil, nil, w.giveUpError(err)
	case reply.Kind == driver.ReplyInt:
		holds, err := beginAll(ctx, ts, p, &o)
		return holds, nil, err
	}
	abandon(&o, ts...)
	if len(reply.List) != 3 || reply.List[0].Int < 1 || reply.List[0].Int > int64(len(ts)) {
		return nil, nil, request.Unexpected(reply, o.Script)
	}
	missing = locks[reply.List[0].Int-1]
	s := sawAt(o.Sent, reply.List[2].Str, wire.FromMillis(reply.List[1].Int))
	c.reapFound(&missing.Lock, s.owner)
	return nil, missing, s.busy(missing.Name())
}

// enterAll goes through the gates of all locks, or of none.
func enterAll(locks []*Spec, p *Params) []*term {
	ts := make([]*term, 0, len(locks))
	for _, l := range locks {
		each := *p
		each.Wish = l.wish
		e := l.locks.get(&l.Lock)
		if !e.gate.TryEnter() {
			e.put()
		} else if t := e.newTerm(&l.Lock, &each); e.budget.Owes(e.news.Foreign(), time.Now()) > 0 {
			t.withdraw()
		} else {
			ts = append(ts, t)
			continue
		}
		for _, t := range ts {
			t.withdraw()
		}
		return nil
	}
	return ts
}

// beginAll returns the holds of terms that were taken, if that is known in time;
// else none.
func beginAll(ctx context.Context, ts []*term, p *Params, o *request.Call) ([]*Hold, error) {
	holds := make([]*Hold, 0, len(ts))
	for _, t := range ts {
		t.taken(o.Sent, 1)
		each := *p
		each.Wish = t.lock.wish
		h, _ := entryOf(t).start(ctx, t, &each, true)
		if h == nil {
			t.home.leave()
			continue
		}
		holds = append(holds, h)
	}
	closed := ts[0].c.Server.Closed()
	for _, h := range holds {
		switch {
		case closed:
			h.t.refuse()
		case len(holds) < len(ts):
			h.t.c.Server.Go(func() { _ = h.Release(context.Background()) })
		}
	}
	switch {
	case closed:
		return nil, request.ErrClosed
	case len(holds) < len(ts):
		return nil, nil
	}
	return holds, nil
}
