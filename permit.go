package redlatch

import (
	"context"
	"encoding/hex"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Permit is one permit of an ExpirableSemaphore. It must be released, once, by
// anybody: it is not tied to a goroutine. Its methods are safe for concurrent
// use.
//
// A Permit that is garbage collected without having been released is reported
// (Events.Dropped) and released, unless it was detached.
type Permit struct {
	in      *permit
	cleanup runtime.Cleanup
	ctx     holdctx.Context // Context's result, once asked for; guarded by in.mu
}

// permit is what the library keeps of a Permit. It must not refer to it, or a
// dropped one would never be noticed. Its id is never taken again once it has
// been released: whatever request of it arrives late finds nothing of its own.
type permit struct {
	sem      *ExpirableSemaphore
	id       string // as it stands in Redis: 16 bytes
	lease    renew.Lease
	watchdog bool
	suspect  bool // a request of unknown outcome may still create it
	at       callsite.Site
	since    time.Time
	values   context.Context //nolint:containedctx // those of the acquire context, for Context

	mu    sync.Mutex   // guards what follows
	err   error        // why it is over; nil while it is live
	told  bool         // the holder has been told of the loss by Release
	apart bool         // Detach was called: it is over here when it is released here, and not before
	stop  holdctx.Lazy // what Context is made of
}

func newPermit(ctx context.Context, s *ExpirableSemaphore, a *asker, id string, o *options, now time.Time) *permit {
	p := &permit{sem: s, id: id, watchdog: !o.hasLease, suspect: a.suspect, at: a.at, since: now, values: ctx}
	p.lease.Kind, p.lease.Holder, p.lease.Length = s.c.permitKind, p, a.length
	if s.c.server.Traits.Cluster {
		p.lease.Group = wire.Slot(s.name)
	}
	p.lease.Confirm(a.sent, a.length)
	if s.c.cfg.MaxHold > 0 && p.watchdog {
		p.lease.Until = now.Add(s.c.cfg.MaxHold)
	}
	return p
}

// Name returns the semaphore's name.
func (p *Permit) Name() string { return p.in.sem.name }

// ID returns the permit's id, 32 hexadecimal digits, by which any client,
// Redisson's too, can release and extend it.
func (p *Permit) ID() string { return hex.EncodeToString([]byte(p.in.id)) }

// Expires returns until when the permit can be trusted if no renewal is
// confirmed from now on. It is earlier than the moment at which anybody may give
// its place away, Redisson clients whose clock is ahead by Config.MaxClockSkew
// included, by the safety margin of 10 ms + lease/50.
//
// It is no later than what Config.MaxHold allows.
func (p *Permit) Expires() time.Time {
	end := p.in.lease.End()
	if until := p.in.lease.Until; !until.IsZero() && until.Before(end) {
		return until
	}
	return end
}

// Err returns nil while the permit is live, then why it is not, as Hold.Err
// does. It looks at the clock itself.
func (p *Permit) Err() error { return p.in.Err() }

// Context returns the permit's context. It has the values of the context that
// the permit was acquired with, and ends when the permit ends, with the same
// cause that Err returns. It has no deadline, with a Lease either: Expires says
// until when the permit can be trusted.
func (p *Permit) Context() context.Context {
	end := p.in.context()
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if !p.ctx.Made() {
		p.ctx.Make(end, p.in, p)
	}
	return &p.ctx
}

// With returns ctx, its cancellation, deadline and values, together with the
// permit's end: it ends when either does.
func (p *Permit) With(ctx context.Context) context.Context {
	return holdctx.Join(ctx, p.in.context(), p.in, p)
}

// Release ends the permit: its context at once, with cause ErrNotHeld, then the
// permit is free for whoever waits, in any process. ctx bounds only the waiting
// for the reply, as with Hold.Release.
//
// It returns nil if the permit was released, also if the reply was lost and a
// repeated request found it released. It returns a *LostError, once, if the
// permit had been lost before, ErrNotHeld if it had been released before,
// ErrClosed if the client was closed before, and ErrUnavailable if the server
// did not answer; the permit is then left to its lease, and a later request may
// free it sooner.
func (p *Permit) Release(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	p.cleanup.Stop()
	return p.in.release(ctx)
}

// Extend raises the lease of the permit to d from now, if it is not longer
// already; it never shortens it. It is for permits acquired with Lease: the
// watchdog extends the others, and Extend refuses them.
//
// It returns a *LostError if the permit has been lost. After any other error the
// lease may have been raised or not; Expires says what can be relied on.
func (p *Permit) Extend(ctx context.Context, d time.Duration) error {
	if ctx == nil {
		return errNilContext
	}
	return p.in.extend(ctx, d)
}

// Detach hands the permit over by its id, which it returns: whoever has the id
// extends and releases it from now on, in whatever process, and if nobody does, it is
// free again when its lease is over. It is for permits acquired with Lease. It
// returns "" and changes nothing if the watchdog keeps the permit, as nobody would do
// that any more, or if the permit is no longer live.
//
// From then on the Permit is the id and nothing else, and may be dropped. Release and
// Extend do what those of the ExpirableSemaphore do with that id. Err returns nil and
// Context does not end until Release is called on this Permit: not when the lease is
// over, when others release the permit, or with Close. Expires stays what it was;
// ExpirableSemaphore.LeaseLeft asks the server.
func (p *Permit) Detach() (id string) {
	if !p.in.detach() {
		return ""
	}
	p.cleanup.Stop()
	return p.ID()
}

// Value implements holdctx.Held: nothing nests in a permit.
func (p *permit) Value(any) any { return nil }

// begin makes the permit live. It returns false if the client is closed.
func (p *permit) begin() bool {
	p.sem.c.permits.add(p)
	if !p.sem.c.clock.Add(&p.lease, p.watchdog) {
		p.end(ErrClosed)
		return false
	}
	return true
}

func (p *permit) context() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop.Get(p.values, p.err)
}

// detach leaves the permit to whoever has its id, and says whether it did.
func (p *permit) detach() bool {
	if p.watchdog || p.Err() != nil {
		return false
	}
	p.mu.Lock()
	p.apart = p.err == nil
	apart := p.apart
	p.mu.Unlock()
	if apart {
		p.sem.c.clock.Remove(&p.lease)
		p.sem.c.permits.remove(p)
	}
	return apart
}

func (p *permit) detached() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.apart
}

// Err looks at the clock itself.
func (p *permit) Err() error {
	if err := p.over(); err != nil {
		return err
	}
	now := time.Now()
	if p.lease.Left(now) <= 0 {
		p.lose(LostExpired)
	} else if !p.lease.Until.IsZero() && !now.Before(p.lease.Until) {
		p.lose(LostMaxHold)
	}
	return p.over()
}

func (p *permit) over() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// end ends the permit, if nothing else has, and says whether it did. Its context
// ends before anything else happens; that runs no code of users.
func (p *permit) end(err error) bool {
	p.mu.Lock()
	if p.err != nil || (p.apart && err != holdctx.ErrReleased) { //nolint:errorlint // the value itself
		p.mu.Unlock()
		return false
	}
	p.err = err
	p.stop.End(err)
	p.mu.Unlock()
	p.sem.c.clock.Remove(&p.lease)
	p.sem.c.permits.remove(p)
	return true
}

// lose ends the permit without its holder's doing. It does no I/O itself.
func (p *permit) lose(reason LossReason) {
	err := p.lostError(reason)
	if !p.end(err) {
		return
	}
	p.sem.c.report.lost(err, p.since, p.at)
	if reason == LostGone && p.suspect {
		p.sem.owe([]string{p.id})
	}
}

func (p *permit) lostError(reason LossReason) *LostError {
	return &LostError{Name: p.sem.name, Owner: hex.EncodeToString([]byte(p.id)), Reason: reason, Confirmed: p.lease.Confirmed(), what: aPermit}
}

// Lane implements renew.Holder.
func (p *permit) Lane() string { return p.sem.c.server.Driver.Lane(p.sem.name) }

// Expired implements renew.Holder.
func (p *permit) Expired() {
	if p.lease.Left(time.Now()) <= 0 {
		p.lose(LostExpired)
	} else {
		p.lose(LostMaxHold)
	}
}

// Gone implements renew.Holder.
func (p *permit) Gone() { p.lose(LostGone) }

// Close ends the permit and leaves it to its lease: a section may still run.
func (p *permit) Close() { p.end(ErrClosed) }

// dropped notes a permit that its user lost.
func (p *permit) dropped() { p.sem.c.dropped.Add(p.giveUp) }

// giveUp reports and releases a permit that was dropped.
func (p *permit) giveUp() {
	if p.over() == nil {
		p.sem.c.report.dropped(p.sem.name, p.at)
		p.sem.c.server.Go(func() { _ = p.release(context.Background()) })
	}
}

func (p *permit) release(ctx context.Context) error {
	_ = p.Err() // a window that is over ends the permit as lost
	released := p.end(holdctx.ErrReleased)
	p.mu.Lock()
	err, again := p.err, p.told
	p.told = true
	p.mu.Unlock()
	switch {
	case released:
	case again:
		return holdctx.ErrReleased
	default:
		var lost *LostError
		if errors.As(err, &lost) && lost.Reason != LostGone {
			p.sem.drop([]string{p.id}, p.suspect) // until now its time was its holder's
		}
		return err
	}
	s := p.sem
	if p.detached() {
		return s.Release(ctx, hex.EncodeToString([]byte(p.id)))
	}
	if f := s.c.report.events.Released; f != nil {
		f(ReleasedEvent{Name: s.name, Owner: hex.EncodeToString([]byte(p.id)), Held: time.Since(p.since)})
	}
	o := s.releaseOp([]string{p.id})
	o.Lease, o.Acks = p.lease.Length, s.c.server.Acks.Holds
	d, own, foreign := s.c.desks.releasing(s)
	o.Args[1] = own
	reply, err := o.Run(ctx)
	if o.Left && ctx.Err() != nil {
		rest := o
		s.c.server.Go(func() {
			reply, err := rest.Finish()
			_ = p.released(&rest, reply, err)
			s.c.desks.released(d, reply, foreign)
		})
		return err
	}
	s.c.desks.released(d, reply, foreign)
	return p.released(&o, reply, err)
}

// released judges the server's answer to the release.
func (p *permit) released(o *request.Call, reply driver.Reply, err error) error {
	owes := p.suspect
	switch {
	case err != nil:
		owes = true
		p.sem.c.report.releaseFailed(p.sem.name, hex.EncodeToString([]byte(p.id)), err)
	case request.First(reply).Int == 0 && (!o.Unknown || p.lease.Left(time.Now()) <= 0):
		// If an attempt went unanswered it was that one which released it,
		// provided that the permit was still ours then.
		err = p.lostError(LostGone)
	default:
		o.Unacked()
	}
	if owes {
		p.sem.owe([]string{p.id})
	}
	return err
}

func (p *permit) extend(ctx context.Context, d time.Duration) error {
	if p.watchdog {
		return errors.New("redlatch: Extend is for permits acquired with Lease; the watchdog extends this one by itself")
	}
	if err := checkLease(d); err != nil {
		return err
	}
	if err := p.Err(); err != nil {
		return err
	}
	if p.detached() {
		return p.sem.Extend(ctx, hex.EncodeToString([]byte(p.id)), d)
	}
	d = (d + time.Millisecond - 1).Truncate(time.Millisecond)
	live, sent, err := p.sem.raise(ctx, p.id, d)
	switch {
	case err != nil:
		return err
	case !live:
		p.lose(LostGone)
	case p.lease.Left(time.Now()) > 0: // a late reply never revives a permit
		p.lease.Confirm(sent, d)
	}
	return p.Err()
}

// renewPermits raises the times of a batch of permits with one script, each with
// a result of its own.
func (c *Client) renewPermits(batch []*renew.Lease) {
	keys := make([]string, len(batch))
	args := make([]string, 0, 2*len(batch))
	prolongs := false
	for i, l := range batch {
		p := l.Holder.(*permit) //nolint:forcetypeassert // this kind's holders are permits
		prolongs = prolongs || l.Ask > 0
		keys[i] = p.sem.keys[1]
		args = append(args, p.id, c.permitMs(l.Ask))
	}
	o := request.Call{Server: c.server, Script: lua.ExpirableRenew, Keys: keys, Args: args, Lease: c.cfg.WatchdogTimeout, Stop: c.server.Over, Single: true, Acks: c.server.Acks.Renews && prolongs}
	reply, err := o.Run(context.Background())
	if err == nil && len(reply.List) != len(keys) {
		err = request.Unexpected(reply, lua.ExpirableRenew)
	}
	if err != nil {
		c.report.renewFailed(len(keys), err)
		return // each result is Failed already
	}
	short := o.DoubtRenewals(len(keys))
	for i, l := range batch {
		switch r := reply.List[i]; {
		case r.Kind == driver.ReplyInt && r.Int == 1:
			if !short || l.Ask == 0 {
				l.Result = renew.Confirmed
			}
		case r.Kind == driver.ReplyInt || request.WrongType(r.Str):
			l.Result = renew.Gone
		default:
			c.report.renewFailed(1, errors.New(wire.Text(r.Str)))
		}
	}
}

// permitMs returns what a permit's lease is written as. Redisson clients take a
// permit back when it is over by their own clock, which may be ahead of the
// server's by Config.MaxClockSkew: so it is written so much later, and trusted
// for what was asked for. 0, which only asks, stays 0.
func (c *Client) permitMs(lease time.Duration) string {
	if lease > 0 {
		lease += c.cfg.MaxClockSkew
	}
	return wire.Millis(lease)
}

// permits are a client's live permits, by their ids.
type permits struct {
	mu sync.Mutex
	m  map[string]*permit
}

func (ps *permits) add(p *permit) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.m == nil {
		ps.m = map[string]*permit{}
	}
	ps.m[p.id] = p
}

func (ps *permits) remove(p *permit) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.m, p.id)
}

// of returns the live permits of a semaphore that have these ids, or all of
// them.
func (ps *permits) of(name string, ids ...string) (found []*permit) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ids) == 0 {
		for _, p := range ps.m {
			if p.sem.name == name {
				found = append(found, p)
			}
		}
	}
	for _, id := range ids {
		if p := ps.m[id]; p != nil && p.sem.name == name {
			found = append(found, p)
		}
	}
	return found
}
