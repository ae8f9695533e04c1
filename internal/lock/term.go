package lock

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

// A term is the time for which one owner field stands in Redis. Holds of one
// process nest in it, and it may pass from one goroutine to the next. Its owner
// id is never used again: whatever request of it arrives late finds nothing of
// its own.
//
//	new ── taken ──► live ── passed on ──► live ...
//	 │                │
//	 └── given up     └── released, lost, detached, moved to another id, closed ──► over
type term struct {
	nest

	home   home
	member bool // of several as one: it owes nobody a turn
	queued bool // it stands in a fair lock's queue, or soon will
	inside bool // its holder is inside the gate, and has to leave it; guarded by mu
	first  Hold // the first hold, to save an allocation
}

// An owner is what Redis knows of a term.
type owner struct {
	c      *env
	lock   *Lock
	id     string    // the owner field that stands in Redis
	args   [4]string // lease in ms, id, channel, own subscriptions: the arguments of take and release
	lease  renew.Lease
	length time.Duration // the lease that it is taken with
	fenced bool          // whether it is to have a fencing token
	watch  bool          // whether the length is the watchdog's
}

type termState uint8

const (
	termNew termState = iota
	termLive
	termOver
)

// newTerm makes a term that has yet to be taken, with that owner id; empty: with one that nobody has had.
func (c *env) newTerm(at home, id string, l *Lock, want *Params) *term {
	if id == "" {
		id = c.NewID()
	}
	t := &term{home: at, member: want.Member, queued: l.kind.queues && !want.Try, nest: nest{
		owner: owner{c: c, lock: l, id: id, length: want.Lease, fenced: want.Fenced, watch: !want.HasLease}, alone: want.Member,
	}}
	t.args = [4]string{c.watchdogMs, t.id, l.channel, "0"}
	if want.Lease != c.Watchdog {
		t.args[0] = wire.Millis(want.Lease)
	}
	if t.watch {
		t.keep = t.length
	}
	t.proves = l.kind.shared
	t.lease.Kind, t.lease.Holder, t.lease.Length = c.renewals[l.kind.renew], (*renewed)(t), t.length
	t.lease.Group = wire.Slot(l.Key)
	return t
}

// NewID returns an owner id that nobody has had.
func (c *env) NewID() string {
	n := c.seq.Add(1)
	if n == 1 {
		c.Events.First()
	}
	return wire.Owner(c.ID, n)
}

func (t *nest) live() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == termLive
}

// Node implements renew.Holder.
func (t *owner) Node() string { return t.c.Server.Driver.Node(t.lock.Key) }

// op prepares a request about this term.
func (t *owner) op(s *script.Script, args []string) request.Call {
	if t.lock.more != nil {
		args = slices.Concat(args, t.lock.more)
	}
	return request.Call{Server: t.c.Server, Script: s, Keys: t.lock.allKeys(), Args: args, Lease: t.length, Stop: t.c.Server.Over}
}

// raising prepares a request that raises the lease to so many milliseconds, and shows
// a hold count.
func (t *nest) raising(lease, count string) request.Call {
	call := t.op(t.lock.kind.renew, []string{t.id, lease, count})
	t.mu.Lock()
	call.Keys = t.keysLocked() // the script takes any number of locks
	t.mu.Unlock()
	call.Acks = t.c.Server.Acks.Renews
	return call
}

// taken notes that the server made t the owner.
func (t *nest) taken(sent time.Time, token int64) {
	if t.fenced {
		t.mu.Lock()
		t.token = token
		t.mu.Unlock()
	}
	t.lease.Confirm(sent, t.length)
}

// markUncertain notes that a request of unknown outcome may still make t the owner.
func (t *nest) markUncertain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uncertain = true
}

// begin makes a taken term live, with its first hold. It returns nil if the
// term was revoked, or the client closed, before it could begin.
func (t *term) begin(ctx context.Context, want *Params, now time.Time) *Hold {
	h := &t.first
	h.t, h.open = t, 1
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.startLocked() {
		return nil
	}
	t.inside, t.count = true, 1
	if t.lock.kind.shared {
		h.reads, t.reads = true, 1
	}
	t.addLocked(ctx, h, want, now)
	return h
}

func (t *nest) startLocked() bool {
	if t.state != termNew {
		return false
	}
	t.renewing = t.keep
	if !t.c.Clock.Add(&t.lease, t.watch) {
		t.state, t.err = termOver, request.ErrClosed
		return false
	}
	t.state = termLive
	return true
}

// startPassing makes a taken term live without a hold, and says whether it may pass to another goroutine of this process.
func (t *term) startPassing(now time.Time) (live, passable bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.startLocked(), t.passableLocked(now)
}

// adopt gives a live term that was passed on to its next hold. It returns
// nil if the term has been lost in between.
func (t *term) adopt(ctx context.Context, want *Params, now time.Time) *Hold {
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

// Suits says whether the next hold of a term, of l and wanted so, can have it as it is, without a round trip.
func (want *Params) Suits(t *term, l *Lock, now time.Time) bool {
	fresh := renew.Elapsed(t.lease.Confirmed(), now) <= t.length/3
	alike := t.lock.kind == l.kind // a spin lock's release tells nobody
	same := t.watch && !want.HasLease && want.Lease == t.length && want.Lease == t.keep
	return fresh && alike && same && !want.Fenced && !want.Member && t.lease.Left(now) <= t.length
}

// watchLocked has the lease renewed if the watchdog keeps one of the holds.
func (t *nest) watchLocked() {
	var renewing time.Duration
	if t.watched > 0 {
		renewing = t.keep
	}
	if renewing != t.renewing {
		t.renewing = renewing
		t.c.Clock.SetRenewing(&t.lease, renewing > 0, renewing)
	}
}

// site returns where a hold of this term was acquired.
func (t *nest) site() callsite.Site {
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

// finish ends the term's last hold: the next goroutine of this process gets
// the lock, if it is passable, or it is released in Redis and the gate is left. ctx only
// bounds the waiting for that.
func (t *term) finish(ctx context.Context, passable bool) error {
	if passable && t.home.pass(t) {
		return nil
	}
	return t.release(ctx)
}

// passableLocked says whether the term may go to another goroutine of this process.
func (t *nest) passableLocked(now time.Time) bool {
	return t.c.HandOff && t.lock.kind.yield != nil && t.state == termLive && !t.alone && !t.shared && t.lease.Left(now) > 0 && t.stays.left() == 0
}

// release ends the term in Redis, then lets the next in. Once it has been
// sent the id is never taken again. ctx only bounds the waiting for the reply.
func (t *term) release(ctx context.Context) error {
	t.c.Clock.Remove(&t.lease)
	t.home.forget(t, true)
	t.mu.Lock()
	if t.state == termOver {
		err := t.err
		t.mu.Unlock()
		t.home.leave()
		return err
	}
	t.state, t.err = termOver, holdctx.ErrReleased
	others, rest := t.others, t.stays.left()
	t.mu.Unlock()
	foreign := t.home.notices().Foreign()
	t.args[3] = t.c.Server.Own(t.home.notices(), t.lock.channel)
	call := t.releasing(rest)
	reply, err := call.Run(ctx)
	if call.Left && ctx.Err() != nil {
		rest := call
		t.c.Server.Go(func() {
			reply, err := rest.Finish()
			reply = t.lock.left(context.Background(), reply)
			_ = t.released(&rest, reply, err)
			t.home.depart(t, max(others, int(reply.Int)-1), foreign)
		})
		return err
	}
	reply = t.lock.left(ctx, reply)
	err = t.released(&call, reply, err)
	t.home.depart(t, max(others, int(reply.Int)-1), foreign)
	return err
}

// releasing prepares the release of t's id, or if its lock is to stay for so long the request
// that has it stay.
func (t *term) releasing(rest time.Duration) request.Call {
	t.home.notices().Expect()
	if rest > 0 {
		return t.staying(rest, t.longest)
	}
	call := t.op(t.lock.kind.release, t.lock.releaseArgs(t.args[1:]))
	call.Patient = true
	return call
}

// sendRelease releases the id of a term that is over. since is what its request counts as sent at; zero: when it is.
func (t *term) sendRelease(since time.Time) error {
	call := t.releasing(0)
	call.Since = since
	reply, err := call.Run(context.Background())
	return t.released(&call, t.lock.left(context.Background(), reply), err)
}

// releaseLater is sendRelease in the background, and then calls then.
func releaseLater(t *term, then func()) {
	t.c.Server.Go(func() {
		_ = t.sendRelease(time.Time{})
		then()
	})
}

// released judges the server's answer to the release.
func (t *term) released(call *request.Call, reply driver.Reply, err error) error {
	t.home.notices().Answered(call.Unknown || (err == nil && reply.Int >= 1))
	switch {
	case err != nil:
		t.c.Events.ReleaseFailed(t.lock.Name(), t.id, err)
	case reply.Int == 0 && (!call.Unknown || t.lease.Left(time.Now()) <= 0):
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
		t.c.Server.Orphans.Add(t.id, rest, failed, func() { t.c.reap(t.lock, t.id) })
	}
}

// A renewed term is what the clock of renewals sees of it.
type renewed term

// EndContext ends the contexts of the holds, and nothing else.
func (r *renewed) EndContext() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := r.holds; h != nil; h = h.next {
		h.end.Now(request.ErrClosed)
	}
}

// Close ends the holds and leaves the lock to its TTL. A term is released if no section can
// run under it: it is on its way from one hold to the next, or to readers who have only their
// place in it, or its holds are parts of several that are not all there yet.
func (r *renewed) Close() {
	t := (*term)(r)
	t.mu.Lock()
	if t.state != termLive {
		t.mu.Unlock()
		return
	}
	ended := t.endLocked(request.ErrClosed)
	works := t.lapsedHolds > 0 || slices.ContainsFunc(ended, func(h *Hold) bool { return !h.forming })
	t.mu.Unlock()
	for _, h := range ended {
		holdctx.Tell(h.observer, holdctx.EndClosed, nil)
	}
	if works {
		return
	}
	t.home.retain()
	releaseLater(t, t.home.put)
}

// refuse releases a term that came too late: the client has been closed.
func (t *term) refuse() {
	t.c.Clock.Remove(&t.lease)
	t.mu.Lock()
	if t.state == termLive {
		t.endLocked(request.ErrClosed)
	}
	t.mu.Unlock()
	releaseLater(t, t.home.leave)
}

// discard gives up a term that never began. If it was taken or put into a queue,
// or a request of it may still be executed, its id is released: one script leaves the queue and releases.
func (t *term) discard() {
	t.home.forget(t, false)
	t.mu.Lock()
	t.state = termOver
	if t.err == nil {
		t.err = errNotBegun
	}
	uncertain := t.uncertain || t.queued
	t.mu.Unlock()
	if !uncertain && t.lease.Confirmed().IsZero() {
		return
	}
	t.home.retain()
	if t.lock.kind.gathers {
		t.c.quit(t.lock, t.id, t)
		return
	}
	releaseLater(t, t.home.put)
}

// withdraw gives up a term that never began, and lets the next caller in.
func (t *term) withdraw() {
	t.discard()
	t.home.leave()
}

var errNotBegun = errors.New("redlatch: the term never began")
