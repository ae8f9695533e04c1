package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// A tenure is the time for which one owner field stands in Redis. Holds of one
// process nest in it, and it may pass from one goroutine to the next. Its owner
// id is never used again: whatever request of it arrives late finds nothing of
// its own.
//
//	new ── taken ──► live ── passed on ──► live ...
//	 │                │
//	 └── given up     └── released, lost, moved to another id, closed ──► over
type tenure struct {
	c      *Locks
	line   *line
	lock   *Spec
	id     string    // the owner field that stands in Redis
	args   [4]string // lease in ms, id, channel, own subscriptions: the arguments of take and release
	lease  renew.Lease
	length time.Duration // the lease that it is taken with
	fenced bool          // whether it is to have a fencing token
	alone  bool          // it does not pass to another goroutine; guarded by mu once it lives
	member bool          // of a Multi: it owes nobody a turn
	watch  bool          // whether that is the watchdog's

	mu       sync.Mutex // guards what follows
	token    int64      // the fencing token, if it is fenced
	state    tenureState
	err      error         // why it is over
	count    int           // holds that are live or being entered
	watched  int           // of the live ones, how many the watchdog keeps
	renewing bool          // what the clock was told
	inside   bool          // its holder is inside the gate, and has to leave it
	queued   bool          // it may stand in a fair lock's queue
	holds    *Hold         // the live holds, linked by hold.next
	longest  time.Duration // lease that was ever asked for, if longer than length
	unfreed  int           // so many holds have ended by a window, and count until they are released
	suspect  bool          // a request of unknown outcome may still make it the owner

	sharing  // of those who read
	counting // what Redis shows

	first Hold // the first hold, to save an allocation
}

type tenureState uint8

const (
	tenureNew tenureState = iota
	tenureLive
	tenureOver
)

// newTenure makes a tenure that has yet to be taken, by whoever is inside.
func (c *Locks) newTenure(ln *line, l *Spec, o *Params) *tenure {
	t := &tenure{c: c, line: ln, lock: l, watch: !o.HasLease, length: c.Watchdog, fenced: o.Fenced, alone: o.Member, member: o.Member, id: c.NewID()}
	t.args = [4]string{c.watchdogMs, t.id, l.channel, "0"}
	if o.HasLease {
		t.length = o.Lease
		t.args[0] = wire.Millis(o.Lease)
	}
	t.lease.Kind, t.lease.Holder, t.lease.Length = c.kind, t, t.length
	switch {
	case l.side != neither:
		t.lease.Kind = c.rwKind
	case l.group != nil:
		t.lease.Kind = c.groups
	}
	if c.Server.Traits.Cluster {
		t.lease.Group = wire.Slot(l.name)
	}
	ln.setCurrent(t) // from here on it can be revoked
	return t
}

func (t *tenure) live() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == tenureLive
}

// op prepares a request about this tenure.
func (t *tenure) op(s *script.Script, args []string) request.Call {
	o := request.Call{Server: t.c.Server, Script: s, Keys: t.lock.keys, Args: t.lock.args(args), Lease: t.length, Stop: t.c.Server.Over}
	if s == t.lock.kind.renew {
		o.Keys = o.Keys[:1] // it takes any number of locks
		o.Acks = t.c.Server.Acks.Renews
	}
	return o
}

// fence makes the request that takes the lock count the acquisition.
func (t *tenure) fence(o *request.Call) {
	if t.lock.side == reading && t.lock.writers != "" {
		o.Keys = []string{t.lock.name, t.lock.writers}
	}
	if t.fenced {
		o.Keys = t.lock.fencedKeys
		o.Args = append(slices.Clip(o.Args), wire.Millis(t.c.TokenTTL))
	}
}

// taken notes that the server made t the owner.
func (t *tenure) taken(sent time.Time, token int64) {
	if t.fenced {
		t.mu.Lock()
		t.token = token
		t.mu.Unlock()
	}
	t.confirm(sent, t.length)
}

// suspected notes that a request of unknown outcome may still make t the owner.
func (t *tenure) suspected() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspect = true
}

// confirm notes that the server confirmed a request sent at sent.
func (t *tenure) confirm(sent time.Time, length time.Duration) { t.lease.Confirm(sent, length) }

// begin makes a taken tenure live, with its first hold. It returns nil if the
// tenure was revoked, or the client closed, before it could begin.
func (t *tenure) begin(ctx context.Context, o *Params, at callsite.Site, now time.Time) *Hold {
	h := t.newHold(ctx, o, at, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.startLocked() {
		return nil
	}
	t.inside, t.count = true, 1
	if t.lock.side == reading {
		h.reads, t.reads = true, 1
	}
	t.addLocked(h)
	return h
}

// arrive makes a taken tenure live without a hold: it is to be passed on. It
// returns false when begin returns nil.
func (t *tenure) arrive() bool {
	t.mu.Lock()
	started := t.startLocked()
	t.mu.Unlock()
	if started {
		t.line.turns.Begin(time.Now(), true)
	}
	return started
}

func (t *tenure) startLocked() bool {
	if t.state != tenureNew {
		return false
	}
	t.renewing = t.watch
	if !t.c.Clock.Add(&t.lease, t.watch) {
		t.state, t.err = tenureOver, request.ErrClosed
		return false
	}
	t.state = tenureLive
	return true
}

// adopt gives a live tenure that was passed on to its next hold. It returns
// nil if the tenure has been lost in between.
func (t *tenure) adopt(ctx context.Context, o *Params, at callsite.Site, now time.Time) *Hold {
	h := t.newHold(ctx, o, at, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != tenureLive {
		return nil
	}
	t.inside, t.count = true, 1
	t.token = 0 // it was the last holder's
	t.correctLocked()
	t.addLocked(h)
	t.watchLocked()
	return h
}

// watchLocked has the lease renewed if the watchdog keeps one of the holds.
func (t *tenure) watchLocked() {
	if renewing := t.watched > 0; renewing != t.renewing {
		t.renewing = renewing
		t.c.Clock.SetRenewing(&t.lease, renewing, t.c.Watchdog)
	}
}

// site returns where a hold of this tenure was acquired.
func (t *tenure) site() callsite.Site {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds == nil {
		return 0
	}
	return t.holds.at
}

func (t *tenure) addLocked(h *Hold) {
	h.next = t.holds
	if t.holds != nil {
		t.holds.prev = h
	}
	t.holds = h
	if h.Watchdog {
		t.watched++
		h.boundByMaxHold()
	}
	if h.own != nil {
		t.c.Clock.Add(h.own, false)
	}
}

// removeLocked ends h with err, and its context: under the lock, which is safe because
// that runs no code of users.
func (t *tenure) removeLocked(h *Hold, err error) {
	h.err = err
	if h.prev == nil {
		t.holds = h.next
	} else {
		h.prev.next = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	h.prev, h.next = nil, nil
	if h.Watchdog {
		t.watched--
	}
	if h.own != nil {
		t.c.Clock.Remove(h.own)
	}
	h.end.End(err)
}

// endLocked ends the tenure and all its holds, and returns these.
func (t *tenure) endLocked(err error) (ended []*Hold) {
	t.state, t.err = tenureOver, err
	for t.holds != nil {
		h := t.holds
		t.removeLocked(h, err)
		ended = append(ended, h)
	}
	return ended
}

// finish ends the tenure's last hold: the next goroutine of this process gets
// the lock, or it is released in Redis and the gate is left. ctx only bounds
// the waiting for that.
func (t *tenure) finish(ctx context.Context) error {
	ln := t.line
	if t.passable(time.Now()) {
		ln.turns.Hands++
		if ln.gate.Pass(t) {
			t.c.lines.put(ln)
			return nil
		}
	}
	return t.release(ctx)
}

// passable says whether the tenure may go to another goroutine of this process.
func (t *tenure) passable(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.c.HandOff && t.lock.kind.turn != nil && t.state == tenureLive && !t.alone && !t.shared && t.lease.Left(now) > 0
}

// release ends the tenure in Redis, then lets the next in. Once it has been
// sent the id is never taken again. ctx only bounds the waiting for the reply.
func (t *tenure) release(ctx context.Context) error {
	t.c.Clock.Remove(&t.lease)
	t.line.dropCurrent(t)
	t.mu.Lock()
	if t.state == tenureOver {
		err := t.err
		t.mu.Unlock()
		t.c.leave(t.line)
		return err
	}
	t.state, t.err = tenureOver, holdctx.ErrReleased
	others := t.others
	t.mu.Unlock()
	foreign := t.line.news.Foreign()
	t.args[3] = t.c.Server.Own(&t.line.news, t.lock.channel)
	o := t.releasing()
	reply, err := o.Run(ctx)
	if o.Left && ctx.Err() != nil {
		rest := o
		t.c.Server.Go(func() {
			reply, err := rest.Finish()
			_ = t.released(&rest, reply, err)
			t.depart(max(others, int(reply.Int)-1), foreign)
		})
		return err
	}
	err = t.released(&o, reply, err)
	t.depart(max(others, int(reply.Int)-1), foreign)
	return err
}

// releasing prepares the release of t's id.
func (t *tenure) releasing() request.Call {
	t.line.news.Expect()
	return t.op(t.lock.kind.release, t.lock.kind.releaseArgs(t.args[1:]))
}

// sendRelease releases the id of a tenure that is over.
func (t *tenure) sendRelease() error {
	o := t.releasing()
	reply, err := o.Run(context.Background())
	return t.released(&o, reply, err)
}

// released judges the server's answer to the release.
func (t *tenure) released(o *request.Call, reply driver.Reply, err error) error {
	t.line.news.Answered(o.Unknown || (err == nil && reply.Int >= 1))
	switch {
	case err != nil:
		t.c.Events.ReleaseFailed(t.lock.name, t.id, err)
		t.suspected()
	case reply.Int == 0 && (!o.Unknown || t.lease.Left(time.Now()) <= 0):
		// Not ours any more. (If an attempt went unanswered it was that one
		// which released the lock, provided that the lock was still ours then.)
		err = t.lostError(holdctx.Gone)
	}
	t.orphan()
	return err
}

// orphan hands over an id that a late request may still make an owner, now
// that the tenure has ended.
func (t *tenure) orphan() {
	t.mu.Lock()
	suspect := t.suspect
	t.suspect = false
	t.mu.Unlock()
	if suspect {
		t.c.Server.Orphans.Add(t.id, func() { t.c.reap(t.lock, t.id) })
	}
}

func (t *tenure) lostError(reason holdctx.Reason) error {
	return t.c.Errors.Lost(t.lock.name, t.id, reason, t.lease.Confirmed())
}

// Lane implements renew.Holder.
func (t *tenure) Lane() string { return t.c.Server.Driver.Lane(t.lock.name) }

// Expired implements renew.Holder. Of many that end at one moment the contexts end
// first.
func (t *tenure) Expired() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, after := t.loseLocked(holdctx.Expired); after != nil {
		t.c.aftermath.Add(after)
	}
}

// Gone implements renew.Holder.
func (t *tenure) Gone() { t.lose(holdctx.Gone) }

// lose ends the tenure without its holder's doing: the contexts of its holds end,
// with the reason as their cause, before anything else happens. It does no I/O
// itself. It reports whether the tenure was live, or about to be.
func (t *tenure) lose(reason holdctx.Reason) bool {
	t.mu.Lock()
	was, after := t.loseLocked(reason)
	t.mu.Unlock()
	if after != nil {
		after()
	}
	return was
}

// loseLocked ends the contexts, and returns what has to happen then.
func (t *tenure) loseLocked(reason holdctx.Reason) (was bool, after func()) {
	state := t.state
	if state == tenureOver {
		return false, nil
	}
	err, inside := t.lostError(reason), t.inside
	t.inside = false
	ended := t.endLocked(err)
	if state == tenureNew {
		return true, nil // whoever takes it will see, and release it
	}
	if reason == holdctx.Expired || reason == holdctx.MaxHold {
		for _, h := range ended {
			h.lapsed = true
		}
		t.unfreed += len(ended)
	} else {
		t.unfreed = 0 // there is nothing left to free
	}
	if !inside {
		t.c.lines.retain(t.line) // before whoever is to get the tenure can see that it is over
	}
	lapsed, longest := t.unfreed > 0, max(t.length, t.longest)
	return true, func() {
		if lapsed {
			t.c.lapsed.add(t.id, longest)
		}
		t.bury(reason, err, ended, inside, lapsed)
	}
}

// bury does what follows from a loss.
func (t *tenure) bury(reason holdctx.Reason, err error, ended []*Hold, inside, lapsed bool) {
	t.c.Clock.Remove(&t.lease)
	t.line.dropCurrent(t)
	if inside {
		t.line.gate.Exit()
	}
	for _, h := range ended {
		t.c.Events.Lost(err, h.since, h.at)
	}
	switch {
	case lapsed: // until its lease ends in Redis, or all its holders release it
	case reason == holdctx.Gone && t.lock.group == nil: // of a group's values some may be left
		t.orphan()
	default:
		t.c.Server.Go(func() {
			_ = t.sendRelease()
			t.c.lines.put(t.line)
		})
		return
	}
	t.c.lines.put(t.line)
}

// freeLapsed releases a lock that was lost by its window, now that all who held it
// have said that they stopped.
func (t *tenure) freeLapsed() {
	o := t.op(t.lock.kind.release, t.lock.kind.releaseArgs(t.args[1:]))
	if _, err := o.Run(context.Background()); err != nil {
		t.suspected()
	}
	t.orphan()
	t.c.lapsed.remove(t.id)
}

// Close ends the holds and leaves the lock to its TTL. A tenure on its way from
// one hold to the next is released: no section runs under it.
func (t *tenure) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != tenureLive {
		return
	}
	t.endLocked(request.ErrClosed)
	if t.count > 0 {
		return
	}
	t.c.lines.retain(t.line)
	t.c.Server.Go(func() {
		_ = t.sendRelease()
		t.c.lines.put(t.line)
	})
}

// refuse releases a hold that came too late: the client has been closed.
func (h *Hold) refuse() {
	t := h.t
	t.c.Clock.Remove(&t.lease)
	t.mu.Lock()
	if t.state == tenureLive {
		t.endLocked(request.ErrClosed)
	}
	t.mu.Unlock()
	t.c.Server.Go(func() {
		_ = t.sendRelease()
		t.c.leave(t.line)
	})
}

// forgo gives up a tenure that never began. If it was taken or put into a queue,
// or a request of it may still be executed, its id is released.
func (t *tenure) forgo() {
	t.line.dropCurrent(t)
	t.mu.Lock()
	t.state = tenureOver
	if t.err == nil {
		t.err = errNotBegun
	}
	suspect := t.suspect || t.queued
	t.mu.Unlock()
	if !suspect && t.lease.Confirmed().IsZero() {
		return
	}
	t.c.lines.retain(t.line)
	if t.lock.kind.fair {
		t.c.quit(t.lock, quitter{id: t.id, t: t})
		return
	}
	t.c.Server.Go(func() {
		_ = t.sendRelease()
		t.c.lines.put(t.line)
	})
}

var errNotBegun = errors.New("redlatch: the tenure never began")
