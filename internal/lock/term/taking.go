package term

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// How a term comes to stand in Redis, and stays there: the request that takes it,
// the trust in the answer, its renewals, and its end when the lock moves to
// another id.

// Taking prepares a request that may make t the owner. x is where it notes what
// the server refuses.
func (t *owner) Taking(s *script.Script, args []string, want *Params, x *request.Refusals) request.Call {
	call := t.Op(s, args)
	call.Stop, call.Until, call.Since, call.Acks, call.Patient = t.Env.Server.Done, want.Until, want.Since, t.Env.Server.Acks.Holds, true
	call.Refusals = x
	if want.Asks != nil {
		call.Refusals = request.AllRefusals([]*request.Refusals{x, want.Asks})
	}
	if t.Lock.Taking != nil {
		call.Keys = t.Lock.Taking
	}
	if t.Fenced { // the script counts the acquisition
		call.Keys = append(slices.Clip(call.Keys), cmp.Or(t.Lock.tokens.key, tokenKey(t.Lock.Key)))
		call.Args = append(slices.Clip(call.Args), wire.Millis(cmp.Or(t.Lock.tokens.endless, t.Env.TokenTTL)))
	}
	return call
}

// Trusted says whether a term that was just taken may be given to a holder.
// One with less than half of its watchdog lease left is renewed first.
func (t *nest) Trusted(ctx context.Context, until, now time.Time) bool {
	left := t.Lease.Left(now)
	if left > t.Length/2 || (left > 0 && !t.Watch) {
		return true
	}
	if left <= 0 {
		return false
	}
	call := t.raising(t.Args[0], unchanged)
	call.Stop, call.Until = t.Env.Server.Done, until
	reply, err := call.Run(ctx)
	if err != nil || call.Short != nil || request.First(reply).Int != 1 || t.Lease.Left(time.Now()) <= 0 {
		return false
	}
	t.Lease.Confirm(call.Sent, t.Length)
	return t.Lease.Left(time.Now()) > 0
}

// renewLocks renews a batch of leases with one script, each with a result of
// its own.
func (c *Env) renewLocks(s *script.Script, batch []*renew.Lease) {
	keys := make([]string, 0, len(batch))
	args := make([]string, 0, 3*len(batch))
	counts := make([]string, 0, len(batch))
	asked := make([]*renew.Lease, 0, len(batch))
	bound, now := c.Watchdog, time.Now()
	prolongs := false
	for _, lease := range batch {
		t := lease.Holder.(*renewed) //nolint:forcetypeassert // this kind's holders are terms
		if lease.Ask > 0 {
			prolongs = true
			bound = min(bound, 3*lease.Left(now)) // there must be time for another attempt
		}
		t.mu.Lock()
		if t.state == termLive {
			count := t.showLocked(t.count - t.reads)
			asked, counts = append(asked, lease), append(counts, count)
			keys = append(keys, t.keysLocked()...)
			args = append(append(args, t.ID, wire.Millis(lease.Ask), count), t.Lock.More...)
		}
		t.mu.Unlock()
	}
	if len(asked) == 0 {
		return
	}
	call := request.Call{Server: c.Server, Script: s, Keys: keys, Args: args, Lease: bound, Acks: c.Server.Acks.Renews && prolongs}
	apart := call.Renew(asked)
	for i, lease := range asked {
		lease.Holder.(*renewed).shown(counts[i]) //nolint:forcetypeassert // as above
	}
	if apart {
		request.AtATime(len(asked), func(i int) bool { c.renewLocks(s, asked[i:i+1]); return true })
	}
}

// EndForMove ends a term that is to move to another id, and says whether it was
// still live.
func (t *Term) EndForMove() bool {
	t.Env.Clock.Remove(&t.Lease)
	t.Home.Forget(t, true)
	t.mu.Lock()
	live := t.state == termLive
	if live {
		t.state, t.err = termOver, holdctx.ErrReleased
	}
	t.mu.Unlock()
	t.orphan(nil)
	return live
}
