package term

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/holdctx"
)

// A term is lost when its window ends, when the server says that it is not ours,
// or when somebody takes it away. Then the contexts of its holds end first.
// Everything else follows: the gate, the clean-up, and what is told.

func (t *owner) lostError(reason holdctx.Reason) error {
	return t.Env.Server.Public(fact.Lost{Name: t.Lock.Name(), Owner: t.ID, Reason: reason, Confirmed: t.Lease.Confirmed()})
}

// Expired implements renew.Holder. Of many that end at one moment the contexts end
// first.
func (r *renewed) Expired() {
	t := (*Term)(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, after := t.loseLocked(holdctx.Expired); after != nil {
		t.Env.lossWork.Add(after)
	}
}

// Gone implements renew.Holder.
func (r *renewed) Gone() { (*Term)(r).Lose(holdctx.Gone) }

// Lose ends the term without its holder's doing: the contexts of its holds end,
// with the reason as their cause, before anything else happens. It does no I/O
// itself. It reports whether the term was live, or about to be.
func (t *Term) Lose(reason holdctx.Reason) bool {
	t.mu.Lock()
	was, after := t.loseLocked(reason)
	t.mu.Unlock()
	if after != nil {
		after()
	}
	return was
}

// loseLocked ends the contexts, and returns what has to happen then.
func (t *Term) loseLocked(reason holdctx.Reason) (was bool, after func()) {
	state := t.state
	if state == termOver {
		return false, nil
	}
	if reason == holdctx.Expired && t.watched == 0 {
		reason = holdctx.Lease
	}
	err, inside := t.lostError(reason), t.inside
	t.inside = false
	ended := t.endLocked(err)
	if state == termNew {
		return true, nil // whoever takes it will see, and release it
	}
	if reason.Lapsed() {
		for _, h := range ended {
			h.lapsed = true
		}
		t.lapsedHolds += len(ended)
	} else {
		t.lapsedHolds = 0 // there is nothing left to free
	}
	if !inside {
		t.Home.Retain() // before whoever is to get the term can see that it is over
	}
	lapsed, longest, now := t.lapsedHolds > 0, max(t.Length, t.longest), time.Now()
	return true, func() {
		if lapsed {
			t.Env.lapsed.add(t.ID, longest, false)
		}
		t.afterLoss(reason, err, now, ended, inside, lapsed)
	}
}

// afterLoss does what follows from a loss.
func (t *Term) afterLoss(reason holdctx.Reason, err error, at time.Time, ended []*Hold, inside, lapsed bool) {
	t.Env.Clock.Remove(&t.Lease)
	t.Home.Forget(t, true)
	if inside {
		t.Home.Exit()
	}
	for _, h := range ended {
		h.lost(err, at)
	}
	switch {
	case lapsed: // until its lease ends in Redis, or all its holders release it
	case reason == holdctx.Gone && !t.Lock.Kind.Part: // of a group's values some may be left
		t.orphan(nil)
	default:
		releaseLater(t, t.Home.Put)
		return
	}
	t.Home.Put()
}

// lost tells that the hold was lost then, and all that is known of it.
func (h *Hold) lost(err error, at time.Time) {
	t := h.t
	end, lease := t.Lease.End(), t.Lease.Granted()
	if h.own != nil && !h.watchdog {
		lease = h.own.Granted()
	}
	t.mu.Lock()
	observer := h.life.ObserverLocked()
	loss := claim.Loss{Claim: claimLocked(h, end), Err: err, At: at, Lease: lease, Several: h.several}
	t.mu.Unlock()
	loss.Count = max(1, loss.Count) // it is not counted any more if its release has found out
	loss.Node = t.Node()
	if f := t.Lease.Failure(); f != nil && h.watchdog {
		loss.Failure, loss.FailureAt = f.Err, f.At
	}
	t.Env.Events.Lost(loss)
	holdctx.Tell(observer, holdctx.EndLost, err)
}

// freeLapsed releases a lock that was lost by its window, now that all who held it
// have said that they stopped.
func (t *Term) freeLapsed() {
	t.mu.Lock()
	rest := t.stays.left()
	t.mu.Unlock()
	call := t.Op(t.Lock.Kind.Release, t.Lock.releaseArgs(t.Args[1:]))
	if rest > 0 {
		call = t.staying(rest, t.longest)
	}
	reply, err := call.Run(context.Background())
	t.Lock.left(context.Background(), reply)
	t.orphan(err)
	if rest == 0 {
		t.Env.lapsed.remove(t.ID)
	}
}
