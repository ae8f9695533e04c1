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
	for _, lock := range order {
		switch {
		case lock.c != first.c, lock.kind.joint == nil, lock.kind.joint != first.kind.joint, lock.wish.Lease != first.wish.Lease, lock.wish.Fenced, lock.Within(ctx):
			continue
		case request.SlotsCount(lock.c.Server) && wire.Slot(lock.key) != wire.Slot(first.key):
			continue
		}
		locks = append(locks, lock)
	}
	if len(locks) < 2 || locks[0] != first {
		return nil
	}
	return locks
}

// Together takes joint locks, if all are free. It returns their holds, or which one is not free,
// with the error that says so, or an error of the request; or nothing if the locks are to be taken
// one by one.
func Together(ctx context.Context, locks []*Spec, want *Params) (holds []*Hold, missing *Spec, err error) {
	c := locks[0].locks
	if c.Server.Closed() || !c.Join() { // as acquireAlone does
		return nil, nil, request.ErrClosed
	}
	defer c.Part()
	ts := enterAll(locks, want)
	if ts == nil {
		return nil, nil, nil
	}
	call := ts[0].op(locks[0].kind.joint, make([]string, 1, len(ts)+1))
	call.Keys, call.Args[0] = make([]string, len(ts)), ts[0].args[0]
	var asks []*request.Refusals
	for i, t := range ts {
		call.Keys[i] = t.lock.key
		call.Args = append(call.Args, t.id)
		asks = append(asks, &entryOf(t).refused)
	}
	call.Refusals = request.AllRefusals(asks)
	call.Stop, call.Until, call.Since, call.Acks = c.Server.Done, want.Until, want.Since, c.Server.Acks.Holds
	reply, err := call.Run(ctx)
	err = judge(&call, reply, err, ts...)
	p := waiter{c: &c.table, key: locks[0].key}
	switch {
	case err != nil:
		abandon(&call, ts...)
		if driver.Failure(err).Code == "CROSSSLOT" {
			return nil, nil, nil
		}
		return nil, nil, p.giveUpError(err)
	case reply.Kind == driver.ReplyInt:
		holds, err := beginAll(ctx, ts, want, &call)
		return holds, nil, err
	}
	abandon(&call, ts...)
	if len(reply.List) != 3 || reply.List[0].Int < 1 || reply.List[0].Int > int64(len(ts)) {
		return nil, nil, request.Unexpected(reply, call.Script)
	}
	missing = locks[reply.List[0].Int-1]
	seen := sawAt(call.Sent, reply.List[2].Str, wire.FromMillis(reply.List[1].Int))
	c.reapFound(&missing.Lock, seen.owner)
	return nil, missing, seen.busy(missing.Name())
}

// enterAll goes through the gates of all locks, or of none.
func enterAll(locks []*Spec, want *Params) []*term {
	ts := make([]*term, 0, len(locks))
	for _, lock := range locks {
		each := *want
		each.Wish = lock.wish
		e := lock.locks.get(&lock.Lock)
		if !e.gate.TryEnter() {
			e.put()
		} else if t := e.newTerm(&lock.Lock, &each); e.budget.Owes(e.news.Foreign(), time.Now()) > 0 {
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
func beginAll(ctx context.Context, ts []*term, want *Params, call *request.Call) ([]*Hold, error) {
	holds := make([]*Hold, 0, len(ts))
	for _, t := range ts {
		t.taken(call.Sent, 1)
		each := *want
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
