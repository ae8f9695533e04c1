package permit

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/request"
)

// What becomes of permits that were acquired at once, by one caller, when their
// holder gives them up: one, or several as one. They are of one semaphore. One
// request releases them all: in an outage each request takes as long as that may
// last.

// dropped notes that their user lost permits.
func dropped(ps []*Permit) {
	all := ps[0].sem.all
	all.Dropped.Add(func() {
		var live []*Permit
		for _, p := range ps {
			p.state.Mu.Lock()
			if p.state.Why == nil && !p.state.Detached {
				live = append(live, p)
			}
			p.state.Mu.Unlock()
		}
		if len(live) == 0 {
			return
		}
		all.Events.Dropped(ps[0].sem.Name(), ps[0].site)
		for _, p := range live {
			p.state.Tell(holdctx.EndDropped, nil)
		}
		all.Server.Go(func() { _ = Together(live).Release(context.Background()) })
	})
}

// giveUp releases permits that their holder has ended.
func (s *Expirable) giveUp(ctx context.Context, ps []*Permit) error {
	now := time.Now()
	err := s.sendRelease(ctx, ps, now)
	for _, p := range ps {
		p.state.TellRelease(holdctx.EndOfRelease(err), now, err)
	}
	return err
}

// sendRelease sends the ids of permits that their holder ended then. ctx only
// bounds the waiting for the answer.
func (s *Expirable) sendRelease(ctx context.Context, ps []*Permit, ended time.Time) error {
	all := s.all
	call := s.release(idsOf(ps))
	call.Lease, call.Acks = ps[0].lease.Length, all.Server.Acks.Holds
	q, own, foreign := all.expirable.releasing(s)
	call.Args[1] = own
	reply, err := call.Run(ctx)
	if call.Left && ctx.Err() != nil {
		rest := call
		all.Server.Go(func() {
			reply, err := rest.Finish()
			_ = released(s, &rest, ps, ended, reply, err)
			all.expirable.released(q, reply, foreign, rest.Sent)
		})
		return err
	}
	all.expirable.released(q, reply, foreign, call.Sent)
	return released(s, &call, ps, ended, reply, err)
}

// released judges the server's answer to the release, and tells of those that were
// gone, of whose loss nobody has heard before.
func released(s *Expirable, call *request.Call, ps []*Permit, ended time.Time, reply driver.Reply, failed error) (err error) {
	first, live := ps[0], min(max(int(request.First(reply).Int), 0), len(ps)) // whatever a proxy makes of the answer
	id := ""
	if len(ps) == 1 {
		id = first.ID()
	}
	switch {
	case failed != nil:
		err = failed
		s.all.Events.ReleaseFailed(s.Name(), id, err)
	case live < len(ps) && (live > 0 || !call.Unknown || first.lease.Left(time.Now()) <= 0):
		// If an attempt went unanswered and none is left it was that one which released
		// them, provided that they were still ours then.
		if live == 0 {
			id = first.ID()
		}
		err = s.all.Server.Public(fact.Lost{Name: s.Name(), Kind: claim.Expirable, Owner: id, Reason: holdctx.Gone, Confirmed: first.lease.Confirmed()})
		lost := ps[live:]
		if call.Unheard() { // that attempt may have released them in time
			lost = nil
		}
		for _, p := range lost {
			loss := p.loss(err, ended)
			if live > 0 {
				loss.Owner = "" // nobody knows which
			} else {
				loss.Err = p.lostError(holdctx.Gone)
			}
			s.all.Events.Lost(loss)
		}
	default:
		call.Unacked()
	}
	if first.uncertain || failed != nil {
		s.reap(idsOf(ps), failed)
	}
	return err
}

func idsOf(ps []*Permit) []string {
	ids := make([]string, len(ps))
	for i, p := range ps {
		ids[i] = p.id
	}
	return ids
}
