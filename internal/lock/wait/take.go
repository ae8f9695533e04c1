package wait

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
)

// Take asks for the lock. If it does not get it, it returns what the server says:
// so many facts. On failure it leaves the gate once it is known that the lock was
// not taken, or has been released.
func Take(ctx context.Context, t *term.Term, call *request.Call, n int) (facts []driver.Reply, err error) {
	reply, err := call.Run(ctx)
	if err = judge(call, reply, err, t); err != nil {
		abandon(call, t)
		return nil, err
	}
	if reply.Kind == driver.ReplyInt {
		t.Taken(call.Sent, reply.Int)
		return nil, nil
	}
	if len(reply.List) != n {
		abandon(call, t)
		return nil, request.Unexpected(reply, call.Script)
	}
	return reply.List, nil
}

// judge returns why a request has not taken these terms: too few replicas may know
// of what the server has, and may forget. What it leaves is like what a lost reply
// may have left: an orphan, which is released on whatever server is the primary by
// then.
func judge(call *request.Call, reply driver.Reply, err error, ts ...*term.Term) error {
	if short := call.Doubt(err == nil && reply.Kind == driver.ReplyInt); short != nil {
		call.Unknown, err = true, short
	}
	if call.Uncertain(err) {
		for _, t := range ts {
			t.MarkUncertain()
		}
	}
	return err
}

// abandon leaves the gates of terms that one request was to take. If it is in
// flight its outcome is waited for first: a release sent now could overtake it.
// Should it succeed, the next goroutine of this process inherits the lock.
func abandon(call *request.Call, ts ...*term.Term) {
	leave := func() {
		for _, t := range ts {
			t.Withdraw()
		}
	}
	if call.Pending == nil {
		leave()
		return
	}
	pending := *call
	pending.Server.Go(func() {
		reply, err := pending.Outcome()
		if judge(&pending, reply, err, ts...) != nil || reply.Kind != driver.ReplyInt {
			leave()
			return
		}
		for _, t := range ts {
			t.Taken(pending.Sent, reply.Int)
			passOn(t)
		}
	})
}

// passOn gives a taken term that nobody wants any more to the next goroutine
// of this process, or releases it.
func passOn(t *term.Term) {
	now := time.Now()
	live, passable := t.StartPassing(now)
	if !live {
		t.Withdraw()
		return
	}
	e := entryOf(t)
	if e.budget.Owed > 0 { // as start says
		e.budget.Settled(e.news.Foreign(), now)
	}
	e.budget.Begin(now, true)
	_ = t.Finish(context.Background(), nil, now, passable)
}

// start makes a term that was just taken live, with its first hold, and begins a
// quantum if fresh says that the lock came from elsewhere. It gives the term up,
// and returns nil, if the term is no longer trusted, was revoked, or the client
// was closed meanwhile.
func (e *Entry) start(ctx context.Context, t *term.Term, want *term.Params, fresh bool) (h *term.Hold, trusted bool) {
	now := time.Now()
	if trusted = t.Trusted(ctx, want.Until, now); trusted {
		// Before it begins: it can be lost at once, and the entry with it.
		if fresh && e.budget.Owed > 0 {
			e.budget.Settled(e.news.Foreign(), now)
		}
		if fresh {
			e.budget.Begin(now, true)
		}
		if t.Lock.Kind.Part {
			e.news.Stop() // only who waits listens
		}
		h = t.Begin(ctx, want, now)
	}
	if h == nil {
		t.Discard()
	}
	return h, trusted
}
