package permit

import (
	"cmp"
	"context"
	"encoding/hex"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Permit is what the library keeps of a permit. It must not refer to what its
// user has, or a dropped one would never be noticed. Its id is never taken again
// once it has been released: whatever request of it arrives late finds nothing of
// its own.
type Permit struct {
	sem       *Expirable
	id        string // as it stands in Redis: 16 bytes
	lease     renew.Lease
	kept      bool // by the watchdog
	uncertain bool // a request of unknown outcome may still create it
	site      callsite.Site
	since     time.Time

	state holdctx.State  // ended by stop and nothing else; its mutex guards what follows, too
	lost  holdctx.Reason // how it was lost, if it was
	note  string         // what its holder says that it is for
}

// Name returns the semaphore's name.
func (p *Permit) Name() string { return p.sem.Name() }

// ID returns its 32 hexadecimal digits.
func (p *Permit) ID() string { return hex.EncodeToString([]byte(p.id)) }

// Token returns none.
func (p *Permit) Token() int64 { return 0 }

// End returns the context that ends with the permit.
func (p *Permit) End() context.Context { return p.state.Context() }

// Observe has o told of the permit's end, at once if that has come already.
func (p *Permit) Observe(o holdctx.Observer) { p.state.Observe(o) }

// Kept says whether the watchdog keeps it.
func (p *Permit) Kept() bool { return p.kept }

// Expires returns until when it can be trusted: the zero Time if it is over.
func (p *Permit) Expires() time.Time {
	if p.Err() != nil {
		return time.Time{}
	}
	return p.lease.Trusted()
}

func newPermit(s *Expirable, w *expirableWaiter, id string, now time.Time) *Permit {
	want := &w.Want
	p := &Permit{sem: s, id: id, kept: !want.HasLease, uncertain: want.uncertain, site: w.Site, note: want.Note, since: now}
	p.state.Under(w.Ctx)
	p.lease.Kind, p.lease.Holder, p.lease.Length = s.all.kind, p, want.Lease
	p.lease.Group = wire.Slot(s.Key)
	p.lease.Confirm(want.sent, want.Lease)
	if d := cmp.Or(want.MaxHold, s.all.MaxHold); d > 0 && p.kept {
		p.lease.Until = now.Add(d)
	}
	return p
}

// Value implements holdctx.Held: nothing nests in a permit, and the permit is
// looked after if it is in doubt.
func (p *Permit) Value(key any) any {
	switch k := key.(type) {
	case *holdctx.Owners:
		if p.live(time.Now()) {
			k.Add(p.ID())
		}
	case holdctx.Doubt:
		p.state.Mu.Lock()
		apart := p.state.Detached
		p.state.Mu.Unlock()
		if !apart {
			p.sem.all.Clock.Check(&p.lease)
		}
		return !apart
	}
	return nil
}

// begin makes the permit live. It returns false if the client is closed.
func (p *Permit) begin() bool {
	p.sem.all.live.add(p)
	if !p.sem.all.Clock.Add(&p.lease, p.kept) {
		p.stop(request.ErrClosed, "")
		return false
	}
	return true
}

// Detach leaves the permit to whoever has its id, unless it is over.
func (p *Permit) Detach() error {
	if err := p.Err(); err != nil {
		return err
	}
	p.state.Mu.Lock()
	err := p.state.Why
	p.state.Detached = err == nil
	p.state.Mu.Unlock()
	if err != nil {
		return err
	}
	p.sem.all.Clock.Remove(&p.lease)
	p.sem.all.live.remove(p)
	p.state.TellRelease(holdctx.EndDetached, time.Now(), nil)
	return nil
}

// SetNote says what a live permit is for, from now on.
func (p *Permit) SetNote(text string) error {
	if err := p.Err(); err != nil {
		return err
	}
	p.state.Mu.Lock()
	defer p.state.Mu.Unlock()
	err := p.state.MineLocked()
	if err == nil {
		p.note = text
	}
	return err
}

// Err looks at the clock itself.
func (p *Permit) Err() error {
	if err := p.state.Over(); err != nil {
		return err
	}
	now := time.Now()
	if p.lease.Left(now) <= 0 {
		p.lose(holdctx.Expired)
	} else if !p.lease.Until.IsZero() && !now.Before(p.lease.Until) {
		p.lose(holdctx.MaxHold)
	}
	return p.state.Over()
}

// stop ends the permit, if nothing else has, and says whether it did. Its context
// ends before anything else happens. how is empty if it was not lost.
func (p *Permit) stop(err error, how holdctx.Reason) bool {
	p.state.Mu.Lock()
	if (p.state.Detached && err != holdctx.ErrReleased) || !p.state.EndLocked(err) { //nolint:errorlint // the value itself
		p.state.Mu.Unlock()
		return false
	}
	p.lost = how
	p.state.Mu.Unlock()
	p.sem.all.Clock.Remove(&p.lease)
	p.sem.all.live.remove(p)
	return true
}

// lose ends the permit without its holder's doing. It does no I/O itself.
func (p *Permit) lose(how holdctx.Reason) {
	if how == holdctx.Expired && !p.kept {
		how = holdctx.Lease
	}
	err := p.lostError(how)
	if !p.stop(err, how) {
		return
	}
	p.sem.all.Events.Lost(p.loss(err, time.Now()))
	p.state.Tell(holdctx.EndLost, err)
	if how == holdctx.Gone && p.uncertain {
		p.sem.reap([]string{p.id}, nil)
	}
}

// loss is all that is known of the permit, which was lost then.
func (p *Permit) loss(err error, at time.Time) claim.Loss {
	loss := claim.Loss{Claim: p.claim(), Err: err, At: at, Lease: p.lease.Granted(), Node: p.Node()}
	if f := p.lease.Failure(); f != nil && p.kept {
		loss.Failure, loss.FailureAt = f.Err, f.At
	}
	return loss
}

func (p *Permit) lostError(how holdctx.Reason) error {
	return p.sem.all.Server.Public(fact.Lost{Name: p.sem.Name(), Kind: claim.Expirable, Owner: p.ID(), Reason: how, Confirmed: p.lease.Confirmed()})
}

// Node implements renew.Holder.
func (p *Permit) Node() string { return p.sem.all.Server.Driver.Node(p.sem.Key) }

// Expired implements renew.Holder.
func (p *Permit) Expired() {
	if p.lease.Left(time.Now()) <= 0 {
		p.lose(holdctx.Expired)
	} else {
		p.lose(holdctx.MaxHold)
	}
}

// Gone implements renew.Holder.
func (p *Permit) Gone() { p.lose(holdctx.Gone) }

// EndContext ends the permit's context, and nothing else.
func (p *Permit) EndContext() { p.state.CutContext(request.ErrClosed) }

// Close ends the permit and leaves it to its lease: a section may still run.
func (p *Permit) Close() {
	if p.stop(request.ErrClosed, "") {
		p.state.Tell(holdctx.EndClosed, nil)
	}
}

// Dropped notes that its user lost the permit.
func (p *Permit) Dropped() { dropped([]*Permit{p}) }

// An ending is what became of a permit when its holder let go of it.
type ending struct {
	live     bool  // it was, until then
	detached bool  // and had been detached
	lapsed   bool  // it was not, because its time was over, and this is the first to tell its holder
	err      error // why it was not
}

// letGo ends the permit for its holder.
func (p *Permit) letGo() ending {
	_ = p.Err() // a window that is over ends the permit as lost
	live := p.stop(holdctx.ErrReleased, "")
	first, why := p.state.NoteRelease()
	p.state.Mu.Lock()
	defer p.state.Mu.Unlock()
	return ending{live: live, detached: p.state.Detached, lapsed: first && p.lost.Lapsed(), err: why}
}

// Release ends the permit, then it is free for whoever waits. ctx bounds only the
// waiting for the reply.
func (p *Permit) Release(ctx context.Context) error {
	live := &p.sem.all.live
	live.releasing(1)
	defer live.releasing(-1)
	e := p.letGo()
	switch {
	case e.live && e.detached:
		return p.releaseApart(ctx)
	case e.live:
		return p.sem.giveUp(ctx, []*Permit{p})
	case e.lapsed:
		p.sem.discard([]string{p.id}, p.uncertain) // until now its time was its holder's
	}
	return e.err
}

// releaseApart releases a permit that had been detached, and that its holder has
// ended.
func (p *Permit) releaseApart(ctx context.Context) error {
	if p.sem.all.Server.Left() {
		return request.ErrClosed
	}
	return p.sem.Release(ctx, []string{p.id})
}

// Extend raises the lease to d from now. It is not for a permit that the watchdog
// keeps.
func (p *Permit) Extend(ctx context.Context, d time.Duration) error {
	if err := p.Err(); err != nil {
		return err
	}
	p.state.Mu.Lock()
	apart := p.state.Detached
	p.state.Mu.Unlock()
	if apart {
		if p.sem.all.Server.Left() {
			return request.ErrClosed
		}
		return p.sem.Extend(ctx, p.id, d)
	}
	live, sent, err := p.sem.raise(ctx, p.id, d)
	switch {
	case err != nil:
		return err
	case !live:
		p.lose(holdctx.Gone)
	case p.lease.Left(time.Now()) > 0: // a late reply never revives a permit
		p.lease.Confirm(sent, d)
	}
	return p.Err()
}
