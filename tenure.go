package redlatch

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/wire"
)

// A tenure is the time for which one owner field stands in Redis. Holds of one
// process nest in it, and it may pass from one goroutine to the next. Its owner
// id is never used again: whatever request of it arrives late finds nothing of
// its own.
type tenure struct {
	c     *Client
	line  *line
	lock  *Lock
	lease renew.Lease
	watch bool // kept by the watchdog when its first hold asked for no lease

	ops chan struct{} // one slot: requests about the hold count go one at a time

	mu     sync.Mutex // guards what follows
	id     string
	args   *[3]string // lease in ms, id, channel: the arguments of take and release
	state  tenureState
	err    error // why it is over
	moving bool  // a re-entry is about to change id
	// miscounted: Redis may show another count than the true one; such a
	// tenure is not passed on.
	miscounted bool
	count      int      // holds that are live or being entered: what Redis shows
	watched    int      // of these, how many the watchdog keeps
	inside     bool     // its holder is inside the gate, and has to leave it
	holds      *hold    // the live holds, linked by hold.next
	suspect    []string // ids that a request of unknown outcome may still create

	first hold // the first hold, to save an allocation
	args0 [3]string
}

type tenureState uint8

const (
	tenureLive tenureState = iota
	tenureOver             // released, passed to another id, lost or closed
)

// newTenure makes a tenure that has yet to be taken.
func (c *Client) newTenure(ln *line, l *Lock, o *options) *tenure {
	t := &tenure{c: c, line: ln, lock: l, watch: !o.hasLease, state: tenureOver}
	t.id = c.nextID()
	length := c.cfg.WatchdogTimeout
	t.args0 = [3]string{c.watchdogMs, t.id, l.channel}
	if o.hasLease {
		length = o.lease
		t.args0[0] = millis(length)
	}
	t.args = &t.args0
	t.lease.Kind, t.lease.Holder, t.lease.Length = c.kind, t, length
	t.lease.Lane = c.redis.Lane(l.name)
	if c.traits.Cluster {
		t.lease.Group = wire.Slot(l.name)
	}
	return t
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// owner returns the field that stands in Redis.
func (t *tenure) owner() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.id
}

// op prepares a request about this tenure.
func (t *tenure) op(s *Script, args []string) op {
	return op{c: t.c, script: s, keys: t.lock.keys, args: args, lease: t.lease.Length, stop: t.c.over}
}

// suspected notes an id that a request of unknown outcome may create.
func (t *tenure) suspected(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspect = append(t.suspect, id)
}

// confirm notes that the server confirmed a request sent at sent.
func (t *tenure) confirm(sent time.Time, length time.Duration) { t.lease.Confirm(sent, length) }

// begin makes the tenure live with its first hold.
func (t *tenure) begin(ctx context.Context, o *options, at site, now time.Time) *hold {
	h := t.newHold(ctx, o, at, now)
	t.mu.Lock()
	starting := t.state != tenureLive
	t.state, t.inside = tenureLive, true
	t.count = 1
	t.addLocked(h)
	t.mu.Unlock()
	if t.c.cfg.MaxHold > 0 && h.watchdog {
		t.c.clock.SetUntil(&t.lease, now.Add(t.c.cfg.MaxHold))
	}
	if starting {
		t.line.setCurrent(t)
		t.c.clock.Add(&t.lease, h.watchdog)
	}
	return h
}

// adopt gives a live tenure that was passed on to its next hold. It returns
// nil if the tenure has been lost in between.
func (t *tenure) adopt(ctx context.Context, o *options, at site, now time.Time) *hold {
	h := t.newHold(ctx, o, at, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != tenureLive {
		return nil
	}
	t.inside, t.count = true, 1
	t.addLocked(h)
	if t.c.cfg.MaxHold > 0 {
		t.c.clock.SetUntil(&t.lease, now.Add(t.c.cfg.MaxHold))
	}
	return h
}

// site returns where a hold of this tenure was acquired.
func (t *tenure) site() site {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds == nil {
		return 0
	}
	return t.holds.at
}

func (t *tenure) addLocked(h *hold) {
	h.next = t.holds
	if t.holds != nil {
		t.holds.prev = h
	}
	t.holds = h
	if h.watchdog {
		t.watched++
	}
}

// removeLocked ends h with err and returns how to end its context, which the
// caller does without the lock.
func (t *tenure) removeLocked(h *hold, err error) (cancel context.CancelCauseFunc) {
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
	if h.watchdog {
		t.watched--
	}
	return h.cancel
}

// passable says whether the tenure may go to another goroutine of this process.
func (t *tenure) passable(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.c.cfg.HandOff == HandOffLocal && t.state == tenureLive && !t.miscounted && t.lease.Left(now) > 0
}

// finish ends the tenure's last hold: the next goroutine of this process gets
// the lock, or it is released in Redis and the gate is left.
func (t *tenure) finish(ctx context.Context) error {
	if t.counted() {
		// A request about the hold count is under way; it must not reach the
		// next holder's tenure.
		return t.c.detached(ctx, t.lease.Length, func() error {
			_ = t.lockOps(context.Background())
			t.unlockOps()
			return t.passOrRelease(context.Background())
		})
	}
	return t.passOrRelease(ctx)
}

func (t *tenure) passOrRelease(ctx context.Context) error {
	now := time.Now()
	ln := t.line
	if t.passable(now) {
		ln.turns.hands++
		if ln.gate.Pass(t) {
			t.c.lines.put(ln)
			return nil
		}
	}
	return t.release(ctx)
}

// release ends the tenure in Redis, then lets the next in. Once it has been
// sent the id is never taken again. ctx only bounds the waiting for the reply.
func (t *tenure) release(ctx context.Context) error {
	t.c.clock.Remove(&t.lease)
	t.line.dropCurrent(t)
	t.mu.Lock()
	if t.state == tenureOver {
		err := t.err
		t.mu.Unlock()
		t.c.leave(t.line)
		return err
	}
	t.state, t.err = tenureOver, errReleased
	id, args := t.id, t.args
	t.mu.Unlock()
	t.line.news.Expect()
	o := t.op(releaseScript, args[1:])
	reply, err := o.run(ctx)
	if o.left && ctx.Err() != nil {
		rest := o
		t.c.settle(func() {
			reply, err := rest.finish()
			_ = t.released(id, &rest, reply, err)
			t.c.leave(t.line)
		})
		return err
	}
	err = t.released(id, &o, reply, err)
	t.c.leave(t.line)
	return err
}

// sendRelease releases an id of this tenure, whose args are the id and the
// channel.
func (t *tenure) sendRelease(id string, args []string) error {
	t.line.news.Expect()
	o := t.op(releaseScript, args)
	reply, err := o.run(context.Background())
	return t.released(id, &o, reply, err)
}

// released judges the server's answer to the release of an id.
func (t *tenure) released(id string, o *op, reply Reply, err error) error {
	switch {
	case err != nil:
		t.c.report.releaseFailed(ReleaseFailedEvent{Name: t.lock.name, Owner: id, Err: err})
		t.suspected(id)
	case reply.Int == 0:
		t.line.news.Unexpect()
		// Not ours any more. If an attempt went unanswered it was that one
		// which released the lock, provided that the lock was still ours then.
		if !o.unknown || t.lease.Left(time.Now()) <= 0 {
			err = t.lostError(LostGone, id)
		}
	}
	t.settleDebts()
	return err
}

// settleDebts hands over the ids that a late request may still create, now
// that the tenure has ended.
func (t *tenure) settleDebts() {
	t.mu.Lock()
	ids := t.suspect
	t.suspect = nil
	t.mu.Unlock()
	for _, id := range ids {
		t.c.debts.add(t.lock, id)
	}
}

func (t *tenure) lostError(reason LossReason, id string) *LostError {
	return &LostError{Name: t.lock.name, Owner: id, Reason: reason, Confirmed: t.lease.Confirmed()}
}

// Expired implements renew.Holder.
func (t *tenure) Expired() {
	if t.lease.Left(time.Now()) > 0 {
		t.lose(LostMaxHold)
		return
	}
	t.lose(LostExpired)
}

// Gone implements renew.Holder.
func (t *tenure) Gone() { t.lose(LostGone) }

// lose ends the tenure without its holder's doing: the contexts of its holds
// end, with the reason as their cause, before anything else happens. It does
// no I/O itself. It reports whether the tenure was live.
func (t *tenure) lose(reason LossReason) bool {
	t.mu.Lock()
	if t.state != tenureLive {
		t.mu.Unlock()
		return false
	}
	err := t.lostError(reason, t.id)
	t.state, t.err = tenureOver, err
	id, args, inside := t.id, t.args, t.inside
	t.inside = false
	var ended []*hold
	for t.holds != nil {
		h := t.holds
		h.endCtxLocked(t.removeLocked(h, err), err)
		ended = append(ended, h)
	}
	t.mu.Unlock()
	t.c.clock.Remove(&t.lease)
	t.line.dropCurrent(t)
	for _, h := range ended {
		t.c.report.lost(LostEvent{Err: err, Held: time.Since(h.since), Site: h.at.String()})
	}
	if !inside {
		return true // it was on its way to somebody, who finds it over
	}
	ln := t.line
	t.c.settle(func() {
		if reason == LostGone {
			t.settleDebts()
		} else {
			_ = t.sendRelease(id, args[1:])
		}
		t.c.lines.put(ln)
	})
	ln.gate.Exit()
	return true
}

// close ends the holds' contexts and leaves the lock to its TTL.
func (t *tenure) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state, t.err = tenureOver, ErrClosed
	for t.holds != nil {
		h := t.holds
		h.endCtxLocked(t.removeLocked(h, ErrClosed), ErrClosed)
	}
}
