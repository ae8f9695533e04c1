package redlatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// reenter adds a hold to a live tenure. If it is to nest in outer the caller
// has the turn for that, and loses it on failure. It fails with errNotNested if
// outer, or every hold of the scope, has ended.
func (t *tenure) reenter(ctx context.Context, outer *hold, l *Lock, o *options, p *patience, at site) (*hold, error) {
	h := &hold{}
	h.set(ctx, t, o, at, time.Now())
	var n tally
	err := p.slot(ctx, t.opsSlot())
	if err == nil {
		if n, err = t.reserve(h, outer, l, o); err != nil {
			t.unlockOps()
		}
	}
	if err != nil {
		if outer != nil {
			outer.siblings().Exit()
		}
		return nil, err
	}
	lease := t.c.cfg.WatchdogTimeout
	if o.hasLease {
		lease = o.lease
	}
	r := t.newCounting(n, lease)
	r.op.stop, r.op.until, r.op.acks = t.c.done, p.until, t.c.acks.holds
	owned, err := false, t.settleCount(ctx)
	if err == nil {
		owned, err = r.run(ctx)
	}
	short := r.op.doubt(err == nil && owned)
	if short != nil {
		err = short
	}
	if err != nil {
		t.unreserve(h, r, short != nil)
		return nil, err
	}
	defer t.unlockOps()
	now := time.Now()
	switch {
	case !owned:
		t.lose(LostGone)
	case t.lease.Left(now) <= 0:
		t.lose(LostExpired) // a late reply never revives a hold
	default:
		t.confirm(r.op.sent, lease)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != tenureLive {
		return nil, t.err
	}
	h.since = now
	if h.reads {
		h.bound(now, min(t.lease.Left(now), o.trust()), o)
	}
	t.addLocked(h)
	t.watchLocked()
	t.c.clock.Touch(&t.lease)
	return h, nil
}

// reserve counts a hold that is about to be entered, so that neither the tenure
// nor its siblings' turn is given up meanwhile. It returns the count that Redis
// is to show.
func (t *tenure) reserve(h, outer *hold, l *Lock, o *options) (tally, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != tenureLive || t.count == 0 {
		return tally{}, errNotNested
	}
	if l.side == writing && t.shared {
		return tally{}, writeInRead(l.name)
	}
	if o.fenced && t.token == 0 {
		return tally{}, fmt.Errorf("%w: the hold of lock %q that is to be re-entered has no fencing token; acquire that one with Fenced too", ErrReentry, l.name)
	}
	if outer != nil {
		if outer.err != nil {
			return tally{}, errNotNested
		}
		h.parent = outer
		outer.open++
	} else {
		first := t.firstOfLocked(o.scope)
		switch {
		case first == nil:
			return tally{}, errNotNested
		case l.nonReentrant:
			return tally{}, fmt.Errorf("%w: lock %q is non-reentrant and this owner has it", ErrReentry, l.name)
		}
		h.joined = first
		first.open++
	}
	t.alone = t.alone || o.member
	t.count++
	if l.side == reading {
		h.reads = true
		t.reads++
	}
	return t.tallyLocked(), nil
}

// A tally is how many holds a tenure has, and how many of them only read.
type tally struct{ count, reads int }

func (t *tenure) tallyLocked() tally { return tally{t.count, t.reads} }

// firstOfLocked returns the hold whose turn the live holds of a scope share.
func (t *tenure) firstOfLocked(sc *scope) *hold {
	for h := t.holds; h != nil; h = h.next {
		if h.scope != sc {
			continue
		}
		if h.joined != nil {
			return h.joined
		}
		return h
	}
	return nil
}

// unreserve takes back a reservation whose request has failed, once it is
// known what became of the request, unless that is done, and is to be undone. It
// gives the ops slot back.
func (t *tenure) unreserve(h *hold, r *counting, done bool) {
	open := !done && (r.op.pending != nil || r.op.unknown)
	asked := done || open
	undo := func() {
		if open {
			if _, err := r.resume(); err != nil && (r.op.unknown || r.next != "") {
				t.leaveUnresolved(r)
			}
		}
		t.mu.Lock()
		t.count--
		if h.reads {
			t.reads--
		}
		drop := t.count > 0 && t.count == t.reads && !t.shared // who wrote has been released meanwhile
		if drop {
			t.shareLocked(time.Now())
		}
		last := t.recounts == 0 && t.lastLocked()
		t.mu.Unlock()
		if (asked || drop) && !last {
			_ = t.recountHolds()
		}
		if drop {
			t.line.reopen()
		}
		t.unlockOps()
		if last {
			_ = t.finish(context.Background())
		}
	}
	t.c.settle(undo)
	h.closed()
}

// recount tells Redis how many holds there are after one has been released that
// was not the last.
func (t *tenure) recount() error {
	t.lockOps()
	t.mu.Lock()
	last := t.lastLocked() // a re-entry that was under way has been undone
	t.mu.Unlock()
	var err error
	if !last {
		err = t.recountHolds()
	}
	// Only now: until then the tenure must not pass to somebody, with a count that
	// Redis does not show.
	t.mu.Lock()
	t.recounts--
	t.mu.Unlock()
	t.unlockOps()
	if last {
		return t.finish(context.Background())
	}
	return err
}

// lastLocked says whether it is for the caller to finish the tenure.
func (t *tenure) lastLocked() bool {
	if t.count > 0 || t.state != tenureLive || !t.inside {
		return false
	}
	t.inside = false
	return true
}

// recountHolds sets the count in Redis to the true one. The caller has the ops
// slot.
func (t *tenure) recountHolds() error {
	err := t.settleCount(context.Background())
	t.mu.Lock()
	n, state, over := t.tallyLocked(), t.state, t.err
	if n.count == 0 {
		t.miscounted = true // about to be released for good, by somebody who waits for the slot
	}
	t.mu.Unlock()
	switch {
	case state != tenureLive && errors.Is(over, ErrNotHeld):
		return nil
	case state != tenureLive:
		return over
	case n.count == 0:
		return nil
	}
	var owned bool
	r := t.newCounting(n, 0)
	if err == nil {
		owned, err = r.run(context.Background())
	}
	switch {
	case err != nil:
		t.leaveUnresolved(r)
		t.c.report.releaseFailed(ReleaseFailedEvent{Name: t.lock.name, Owner: t.owner(), Err: err})
		return err
	case !owned:
		id := t.owner()
		t.lose(LostGone)
		return t.lostError(LostGone, id)
	}
	return nil
}

// leaveUnresolved has a request that nobody knows the outcome of tried again
// until it is known, or the tenure is over. No other request about the count is
// made before: it could be overtaken.
func (t *tenure) leaveUnresolved(r *counting) {
	t.mu.Lock()
	first := !t.miscounted
	t.miscounted = true
	if t.unresolved == nil && r.op.unknown {
		t.unresolved = r
	}
	t.mu.Unlock()
	if !first {
		return // somebody is at it
	}
	t.c.settle(func() {
		for t.live() && t.c.sleepOver(time.Second) {
			t.lockOps()
			err := t.recountHolds()
			t.unlockOps()
			if err == nil {
				return
			}
		}
	})
}

// settleCount brings a request of unknown outcome to its end.
func (t *tenure) settleCount(ctx context.Context) error {
	t.mu.Lock()
	r := t.unresolved
	t.mu.Unlock()
	if r == nil {
		return nil
	}
	r.op.stop, r.op.until = t.c.over, time.Time{}
	r.move()
	if _, err := r.run(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unresolved = nil
	return nil
}

// A counting is a request that sets the hold count. Its first attempt names the
// tenure's id; if nobody knows what became of it, the next ones move the lock
// to a new id, so that the first, should it arrive late, changes nothing.
type counting struct {
	t        *tenure
	op       op
	id, next string
	rest     []string // of the arguments: count, lease, ...
}

func (t *tenure) newCounting(n tally, lease time.Duration) *counting {
	r := &counting{t: t, op: t.op(t.lock.kind.reenter, nil), id: t.owner()}
	r.rest = []string{strconv.Itoa(n.count), millis(lease)}
	if t.lock.side != neither {
		r.rest = []string{strconv.Itoa(n.count - n.reads), millis(lease), strconv.Itoa(min(1, n.reads)), t.lock.channel}
	}
	r.rest = t.lock.args(r.rest)
	r.op.args = append([]string{r.id, r.id}, r.rest...)
	r.op.retried = r.move
	return r
}

// run sends the request and says whether the lock is still ours.
func (r *counting) run(ctx context.Context) (owned bool, err error) {
	reply, err := r.op.run(ctx)
	if err != nil {
		return false, err
	}
	return r.decided(reply), nil
}

// resume brings a run that returned early to its end.
func (r *counting) resume() (owned bool, err error) {
	reply, err := r.op.finish()
	if err != nil {
		return false, err
	}
	return r.decided(reply), nil
}

// move makes the request's next attempt move the lock to a new id, if the
// outcome of an earlier one is not known.
func (r *counting) move() {
	if !r.op.unknown || r.next != "" {
		return
	}
	r.next = r.t.c.nextID()
	r.op.args = append([]string{r.id, r.next}, r.rest...)
	r.t.suspected(r.id)
	r.t.suspected(r.next)
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	r.t.moving = true
}

// decided notes the server's answer.
func (r *counting) decided(reply Reply) (owned bool) {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moving = false
	if reply.Int != 1 {
		return false
	}
	if r.next != "" {
		t.id = r.next
		t.args = &[3]string{t.args[0], r.next, t.lock.channel}
	}
	return true
}

// counted says whether requests about the hold count have been made.
func (t *tenure) counted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ops != nil
}

// opsSlot returns the slot for requests about the hold count.
func (t *tenure) opsSlot() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ops == nil {
		t.ops = make(chan struct{}, 1)
	}
	return t.ops
}

func (t *tenure) lockOps()   { t.opsSlot() <- struct{}{} }
func (t *tenure) unlockOps() { <-t.opsSlot() }
