package wait

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// Together takes locks that one request can take, if all are free. It returns
// their holds; or which one is not free, else -1, with the error that says so, or
// an error of the request; or nothing if the locks are to be taken one by one.
func (c *Table) Together(ctx context.Context, locks []*term.Lock, want *term.Params) (holds []*term.Hold, missing int, err error) {
	if c.Server.Closed() || !c.Join() { // as Alone does
		return nil, -1, request.ErrClosed
	}
	defer c.Part()
	ts := enterAll(c, locks, want)
	if ts == nil {
		return nil, -1, nil
	}
	call := ts[0].Op(locks[0].Kind.Joint, make([]string, 1, len(ts)+1))
	call.Keys, call.Args[0] = make([]string, len(ts)), ts[0].Args[0]
	var asks []*request.Refusals
	for i, t := range ts {
		call.Keys[i] = t.Lock.Key
		call.Args = append(call.Args, t.ID)
		asks = append(asks, &entryOf(t).refused)
	}
	call.Refusals = request.AllRefusals(asks)
	call.Stop, call.Until, call.Since, call.Acks = c.Server.Done, want.Until, want.Since, c.Server.Acks.Holds
	reply, err := call.Run(ctx)
	err = judge(&call, reply, err, ts...)
	p := Waiter{c: c, key: locks[0].Key}
	switch {
	case err != nil:
		abandon(&call, ts...)
		if driver.Failure(err).Code == "CROSSSLOT" {
			return nil, -1, nil
		}
		return nil, -1, p.GiveUpError(err)
	case reply.Kind == driver.ReplyInt:
		holds, err := beginAll(ctx, ts, want, &call)
		return holds, -1, err
	}
	abandon(&call, ts...)
	if len(reply.List) != 3 || reply.List[0].Int < 1 || reply.List[0].Int > int64(len(ts)) {
		return nil, -1, request.Unexpected(reply, call.Script)
	}
	missing = int(reply.List[0].Int - 1)
	seen := sawAt(call.Sent, reply.List[2].Str, wire.FromMillis(reply.List[1].Int))
	c.ReapFound(locks[missing], seen.owner)
	return nil, missing, seen.busy(locks[missing].Name())
}

// enterAll goes through the gates of all locks, or of none.
func enterAll(c *Table, locks []*term.Lock, want *term.Params) []*term.Term {
	ts := make([]*term.Term, 0, len(locks))
	for _, lock := range locks {
		each := *want
		each.Wish = lock.Wish
		e := c.Get(lock)
		if !e.gate.TryEnter() {
			e.Put()
		} else if t := e.newTerm(lock, &each); e.budget.Owes(e.news.Foreign(), time.Now()) > 0 {
			t.Withdraw()
		} else {
			ts = append(ts, t)
			continue
		}
		for _, t := range ts {
			t.Withdraw()
		}
		return nil
	}
	return ts
}

// beginAll returns the holds of terms that were taken, if that is known in time;
// else none.
func beginAll(ctx context.Context, ts []*term.Term, want *term.Params, call *request.Call) ([]*term.Hold, error) {
	holds := make([]*term.Hold, 0, len(ts))
	for _, t := range ts {
		t.Taken(call.Sent, 1)
		each := *want
		each.Wish = t.Lock.Wish
		h, _ := entryOf(t).start(ctx, t, &each, true)
		if h == nil {
			t.Home.Leave()
			continue
		}
		holds = append(holds, h)
	}
	closed := ts[0].Env.Server.Closed()
	for _, h := range holds {
		switch {
		case closed:
			h.Term().Refuse()
		case len(holds) < len(ts):
			h.Term().Env.Server.Go(func() { _ = h.Release(context.Background()) })
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
