package term

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Term is the time for which one owner field stands in Redis. Holds of one
// process nest in it, and it may pass from one goroutine to the next. Its owner
// id is never used again: whatever request of it arrives late finds nothing of
// its own.
//
//	new ── taken ──► live ── passed on ──► live ...
//	 │                │
//	 └── given up     └── released, lost, detached, moved to another id, closed ──► over
type Term struct {
	nest

	Home   Home
	Member bool // of several as one: it owes nobody a turn
	queued bool // it stands in a fair lock's queue, or soon will
	inside bool // its holder is inside the gate, and has to leave it; guarded by mu
	first  Hold // the first hold, to save an allocation
}

// An owner is what Redis knows of a term.
type owner struct {
	Env    *Env
	Lock   *Lock
	ID     string    // the owner field that stands in Redis
	Args   [4]string // lease in ms, id, channel, own subscriptions: the arguments of take and release
	Lease  renew.Lease
	Length time.Duration // the lease that it is taken with
	Fenced bool          // whether it is to have a fencing token
	Watch  bool          // whether the length is the watchdog's
}

type termState uint8

const (
	termNew termState = iota
	termLive
	termOver
)

// NewTerm makes a term that has yet to be taken, with that owner id; empty: with
// one that nobody has had.
func (c *Env) NewTerm(at Home, id string, l *Lock, want *Params) *Term {
	if id == "" {
		id = c.NewID()
	}
	t := &Term{Home: at, Member: want.Member, queued: l.Kind.Queues && !want.Try, nest: nest{
		owner: owner{Env: c, Lock: l, ID: id, Length: want.Lease, Fenced: want.Fenced, Watch: !want.HasLease}, alone: want.Member,
	}}
	t.Args = [4]string{c.watchdogMs, t.ID, l.Channel, "0"}
	if want.Lease != c.Watchdog {
		t.Args[0] = wire.Millis(want.Lease)
	}
	if t.Watch {
		t.keep = t.Length
	}
	t.proves = l.Kind.Shared
	t.Lease.Kind, t.Lease.Holder, t.Lease.Length = c.renewals[l.Kind.Renew], (*renewed)(t), t.Length
	t.Lease.Group = wire.Slot(l.Key)
	return t
}

// NewID returns an owner id that nobody has had.
func (c *Env) NewID() string {
	n := c.seq.Add(1)
	if n == 1 {
		c.Events.First()
	}
	return wire.Owner(c.ID, n)
}

// Live says whether somebody has the term, or it is on its way to the next holder.
func (t *nest) Live() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == termLive
}

// Node implements renew.Holder.
func (t *owner) Node() string { return t.Env.Server.Driver.Node(t.Lock.Key) }

// Op prepares a request about this term.
func (t *owner) Op(s *script.Script, args []string) request.Call {
	if t.Lock.More != nil {
		args = slices.Concat(args, t.Lock.More)
	}
	return request.Call{Server: t.Env.Server, Script: s, Keys: t.Lock.AllKeys(), Args: args, Lease: t.Length, Stop: t.Env.Server.Over}
}

// raising prepares a request that raises the lease to so many milliseconds, and
// shows a hold count.
func (t *nest) raising(lease, count string) request.Call {
	call := t.Op(t.Lock.Kind.Renew, []string{t.ID, lease, count})
	t.mu.Lock()
	call.Keys = t.keysLocked() // the script takes any number of locks
	t.mu.Unlock()
	call.Acks = t.Env.Server.Acks.Renews
	return call
}

// Taken notes that the server made t the owner.
func (t *nest) Taken(sent time.Time, token int64) {
	if t.Fenced {
		t.mu.Lock()
		t.token = token
		t.mu.Unlock()
	}
	t.Lease.Confirm(sent, t.Length)
}

// MarkUncertain notes that a request of unknown outcome may still make t the
// owner.
func (t *nest) MarkUncertain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uncertain = true
}

// Begin makes a taken term live, with its first hold. It returns nil if the
// term was revoked, or the client closed, before it could begin.
func (t *Term) Begin(ctx context.Context, want *Params, now time.Time) *Hold {
	h := &t.first
	h.t, h.open = t, 1
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.startLocked() {
		return nil
	}
	t.inside, t.count = true, 1
	if t.Lock.Kind.Shared {
		h.Reads, t.reads = true, 1
	}
	t.addLocked(ctx, h, want, now)
	return h
}

func (t *nest) startLocked() bool {
	if t.state != termNew {
		return false
	}
	t.renewing = t.keep
	if !t.Env.Clock.Add(&t.Lease, t.Watch) {
		t.state, t.err = termOver, request.ErrClosed
		return false
	}
	t.state = termLive
	return true
}

// StartPassing makes a taken term live without a hold, and says whether it may
// pass to another goroutine of this process.
func (t *Term) StartPassing(now time.Time) (live, passable bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.startLocked(), t.passableLocked(now)
}

// Adopt gives a live term that was passed on to its next hold. It returns
// nil if the term has been lost in between.
func (t *Term) Adopt(ctx context.Context, want *Params, now time.Time) *Hold {
	h := &Hold{origin: origin{passed: true}, nesting: nesting{t: t, open: 1}}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != termLive {
		return nil
	}
	t.inside, t.count = true, 1
	t.token = 0 // it was the last holder's
	t.correctLocked()
	t.addLocked(ctx, h, want, now)
	t.watchLocked()
	return h
}

// Suits says whether the next hold of a term, of l and wanted so, can have it as
// it is, without a round trip.
func (want *Params) Suits(t *Term, l *Lock, now time.Time) bool {
	fresh := renew.Elapsed(t.Lease.Confirmed(), now) <= t.Length/3
	alike := t.Lock.Kind == l.Kind // a spin lock's release tells nobody
	same := t.Watch && !want.HasLease && want.Lease == t.Length && want.Lease == t.keep
	return fresh && alike && same && !want.Fenced && !want.Member && t.Lease.Left(now) <= t.Length
}

// watchLocked has the lease renewed if the watchdog keeps one of the holds.
func (t *nest) watchLocked() {
	var renewing time.Duration
	if t.watched > 0 {
		renewing = t.keep
	}
	if renewing != t.renewing {
		t.renewing = renewing
		t.Env.Clock.SetRenewing(&t.Lease, renewing > 0, renewing)
	}
}

// Site returns where a hold of this term was acquired.
func (t *nest) Site() callsite.Site {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds == nil {
		return 0
	}
	return t.holds.at
}

// endLocked ends the term and all its holds, and returns these.
func (t *nest) endLocked(err error) (ended []*Hold) {
	t.state, t.err = termOver, err
	for t.holds != nil {
		h := t.holds
		t.removeLocked(h, err)
		ended = append(ended, h)
	}
	return ended
}

// Finish ends a term without holds. h is the hold whose release this is, and which
// ended then; nil: nobody is told of a loss. The next goroutine of this process
// gets the lock, if it is passable, or it is released in Redis and the gate is
// left. ctx only bounds the waiting for that.
func (t *Term) Finish(ctx context.Context, h *Hold, ended time.Time, passable bool) error {
	if passable && t.Home.Pass(t) {
		return nil
	}
	return t.release(ctx, h, ended)
}

// passableLocked says whether the term may go to another goroutine of this
// process.
func (t *nest) passableLocked(now time.Time) bool {
	return t.Env.HandOff && t.Lock.Kind.Yield != nil && t.state == termLive && !t.alone && !t.shared && t.Lease.Left(now) > 0 && t.stays.left() == 0
}

// release ends the term in Redis, then lets the next in. Once it has been
// sent the id is never taken again. ctx only bounds the waiting for the reply.
func (t *Term) release(ctx context.Context, h *Hold, ended time.Time) error {
	t.Env.Clock.Remove(&t.Lease)
	t.Home.Forget(t, true)
	t.mu.Lock()
	if t.state == termOver {
		err := t.err
		t.mu.Unlock()
		t.Home.Leave()
		return found(h, ended, err)
	}
	t.state, t.err = termOver, holdctx.ErrReleased
	others, rest := t.others, t.stays.left()
	t.mu.Unlock()
	foreign := t.Home.Notices().Foreign()
	t.Args[3] = t.Env.Server.Own(t.Home.Notices(), t.Lock.Channel)
	call := t.releasing(rest)
	reply, err := call.Run(ctx)
	if call.Left && ctx.Err() != nil {
		rest := call
		t.Env.Server.Go(func() {
			reply, err := rest.Finish()
			err = depart(context.Background(), t, &rest, reply, err, others, foreign)
			if !rest.Unheard() { // or else that attempt may have released it in time
				_ = found(h, ended, err)
			}
		})
		return err
	}
	return found(h, ended, depart(ctx, t, &call, reply, err, others, foreign))
}

// depart judges the server's answer to the release, and leaves the gate.
func depart(ctx context.Context, t *Term, call *request.Call, reply driver.Reply, err error, others, foreign int) error {
	reply = t.Lock.left(ctx, reply)
	err = t.Released(call, reply, err)
	t.Home.Depart(t, max(others, int(reply.Int)-1), foreign)
	return err
}

// releasing prepares the release of t's id, or if its lock is to stay for so long
// the request that has it stay.
func (t *Term) releasing(rest time.Duration) request.Call {
	t.Home.Notices().Expect()
	if rest > 0 {
		return t.staying(rest, t.longest)
	}
	call := t.Op(t.Lock.Kind.Release, t.Lock.releaseArgs(t.Args[1:]))
	call.Patient = true
	return call
}

// SendRelease releases the id of a term that is over. since is what its request
// counts as sent at; zero: when it is.
func (t *Term) SendRelease(since time.Time) error {
	call := t.releasing(0)
	call.Since = since
	reply, err := call.Run(context.Background())
	return t.Released(&call, t.Lock.left(context.Background(), reply), err)
}

// releaseLater is SendRelease in the background, and then calls then.
func releaseLater(t *Term, then func()) {
	t.Env.Server.Go(func() {
		_ = t.SendRelease(time.Time{})
		then()
	})
}

// Released judges the server's answer to the release.
func (t *Term) Released(call *request.Call, reply driver.Reply, err error) error {
	t.Home.Notices().Answered(call.Unknown || (err == nil && reply.Int >= 1))
	switch {
	case err != nil:
		t.Env.Events.ReleaseFailed(t.Lock.Name(), t.ID, err)
	case reply.Int == 0 && (!call.Unknown || t.Lease.Left(time.Now()) <= 0):
		// Not ours any more. (If an attempt went unanswered it was that one
		// which released the lock, provided that the lock was still ours then.)
		t.orphan(nil)
		return t.lostError(holdctx.Gone)
	}
	t.orphan(err)
	return err
}

// orphan hands over an id that a late request may still make an owner, now
// that the term has ended, or that nobody knows to be released, because of failed.
func (t *nest) orphan(failed error) {
	t.mu.Lock()
	uncertain, rest := t.uncertain || failed != nil, t.stays.left()
	t.uncertain = false
	t.mu.Unlock()
	if uncertain {
		t.Env.Server.Orphans.Add(t.ID, rest, failed, func() { t.Env.Reap(t.Lock, t.ID) })
	}
}

// A renewed term is what the clock of renewals sees of it.
type renewed Term

// EndContext ends the contexts of the holds, and nothing else.
func (r *renewed) EndContext() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := r.holds; h != nil; h = h.next {
		h.life.CutLocked(request.ErrClosed)
	}
}

// Close ends the holds and leaves the lock to its TTL. A term is released if no
// section can run under it: it is on its way from one hold to the next, or to
// readers who have only their place in it, or its holds are parts of several that
// are not all there yet.
func (r *renewed) Close() {
	t := (*Term)(r)
	t.mu.Lock()
	if t.state != termLive {
		t.mu.Unlock()
		return
	}
	ended := t.endLocked(request.ErrClosed)
	works := t.lapsedHolds > 0 || slices.ContainsFunc(ended, func(h *Hold) bool { return !h.forming })
	t.mu.Unlock()
	for _, h := range ended {
		h.t.mu.Lock()
		observer := h.life.ObserverLocked()
		h.t.mu.Unlock()
		holdctx.Tell(observer, holdctx.EndClosed, nil)
	}
	if works {
		return
	}
	t.Home.Retain()
	releaseLater(t, t.Home.Put)
}

// Refuse releases a term that came too late: the client has been closed.
func (t *Term) Refuse() {
	t.Env.Clock.Remove(&t.Lease)
	t.mu.Lock()
	if t.state == termLive {
		t.endLocked(request.ErrClosed)
	}
	t.mu.Unlock()
	releaseLater(t, t.Home.Leave)
}

// Discard gives up a term that never began. If it was taken or put into a queue,
// or a request of it may still be executed, its id is released: one script leaves
// the queue and releases.
func (t *Term) Discard() {
	t.Home.Forget(t, false)
	t.mu.Lock()
	t.state = termOver
	if t.err == nil {
		t.err = errNotBegun
	}
	uncertain := t.uncertain || t.queued
	t.mu.Unlock()
	if !uncertain && t.Lease.Confirmed().IsZero() {
		return
	}
	t.Home.Retain()
	if t.Lock.Kind.Gathers {
		t.Env.Quit(t.Lock, t.ID, t)
		return
	}
	releaseLater(t, t.Home.Put)
}

// Withdraw gives up a term that never began, and lets the next caller in.
func (t *Term) Withdraw() {
	t.Discard()
	t.Home.Leave()
}

var errNotBegun = errors.New("redlatch: the term never began")
