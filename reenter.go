package redlatch

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// reenter adds a hold to a live tenure. It fails with errNotNested if outer,
// or every hold of the scope, has ended.
func (t *tenure) reenter(ctx context.Context, outer *hold, l *Lock, o *options, until time.Time, at site) (*hold, error) {
	if err := t.lockOps(ctx); err != nil {
		return nil, err
	}
	count, err := t.reserve(outer, l, o)
	if err != nil {
		t.unlockOps()
		return nil, err
	}
	lease := t.c.cfg.WatchdogTimeout
	if o.hasLease {
		lease = o.lease
	}
	r := t.newRecount(count, lease)
	r.op.stop, r.op.until = t.c.done, until
	owned, err := r.run(ctx)
	if err != nil {
		t.unreserve(&r)
		return nil, err
	}
	defer t.unlockOps()
	if owned && t.lease.Left(time.Now()) > 0 {
		t.confirm(r.op.sent, lease)
	} else if owned {
		t.lose(LostExpired)
	} else {
		t.lose(LostGone)
	}
	h := &hold{}
	h.set(t, ctx, o, at, time.Now())
	h.parent = outer
	t.mu.Lock()
	if t.state != tenureLive {
		err := t.err
		t.mu.Unlock()
		return nil, err
	}
	t.addLocked(h)
	if outer != nil {
		outer.open++
	}
	t.mu.Unlock()
	if h.watchdog {
		t.c.clock.SetRenewing(&t.lease, true)
	}
	t.c.clock.Touch(&t.lease)
	return h, nil
}

// reserve counts a hold that is about to be entered, so that the tenure is not
// released meanwhile, and returns the count that Redis is to show.
func (t *tenure) reserve(outer *hold, l *Lock, o *options) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	within := t.state == tenureLive && t.count > 0
	if outer != nil {
		within = within && outer.err == nil
	} else {
		within = within && t.isOfLocked(o.scope)
	}
	switch {
	case !within:
		return 0, errNotNested
	case outer == nil && l.nonReentrant:
		return 0, fmt.Errorf("%w: lock %q is non-reentrant and this owner has it", ErrReentry, l.name)
	}
	t.count++
	return t.count, nil
}

// isOfLocked says whether a live hold is of the scope.
func (t *tenure) isOfLocked(sc *scope) bool {
	for h := t.holds; h != nil; h = h.next {
		if h.scope == sc {
			return true
		}
	}
	return false
}

// unreserve takes back a reservation whose request has failed, once it is
// known what became of the request. It gives the ops slot back.
func (t *tenure) unreserve(r *counting) {
	t.c.settle(func() {
		_, _ = r.resolve()
		t.mu.Lock()
		t.count--
		last := t.count == 0 && t.state == tenureLive
		if last {
			t.inside = false
		}
		t.mu.Unlock()
		if last {
			t.unlockOps()
			_ = t.finish(context.Background())
			return
		}
		_ = t.recountHolds()
		t.unlockOps()
	})
}

// recount tells Redis how many holds there are after one has been released that
// was not the last.
func (t *tenure) recount() error {
	_ = t.lockOps(context.Background())
	defer t.unlockOps()
	return t.recountHolds()
}

// recountHolds sets the count in Redis to the true one. The caller has the ops
// slot.
func (t *tenure) recountHolds() error {
	t.mu.Lock()
	count, state, err := t.count, t.state, t.err
	t.mu.Unlock()
	if state != tenureLive {
		return err
	}
	if count == 0 {
		return nil // released for good meanwhile
	}
	r := t.newRecount(count, 0)
	owned, err := r.run(context.Background())
	switch {
	case err != nil:
		t.mu.Lock()
		t.miscounted = true
		t.mu.Unlock()
		t.c.report.releaseFailed(ReleaseFailedEvent{Name: t.lock.name, Owner: t.owner(), Err: err})
		return err
	case !owned:
		id := t.owner()
		t.lose(LostGone)
		return t.lostError(LostGone, id)
	}
	return nil
}

// A counting is a request that sets the hold count. Its first attempt names the
// tenure's id; if nobody knows what became of it, the next ones move the lock
// to a new id, so that the first, should it arrive late, changes nothing.
type counting struct {
	t        *tenure
	op       op
	id, next string
	count    string
	lease    string
}

func (t *tenure) newRecount(count int, lease time.Duration) counting {
	r := counting{t: t, op: t.op(reenterScript, nil), id: t.owner(), count: strconv.Itoa(count), lease: millis(lease)}
	r.op.args = []string{r.id, r.id, r.count, r.lease}
	return r
}

// run sends the request and says whether the lock is still ours.
func (r *counting) run(ctx context.Context) (owned bool, err error) {
	r.op.retried = r.move
	reply, err := r.op.run(ctx)
	if err != nil {
		return false, err
	}
	return r.decided(reply), nil
}

// resolve finds out what became of a run that failed.
func (r *counting) resolve() (owned bool, err error) {
	if r.op.pending == nil && !r.op.unknown {
		return false, errNothingPending // it was not executed
	}
	reply, err := r.op.finish()
	if err != nil {
		return false, err
	}
	return r.decided(reply), nil
}

// move makes the request's next attempt move the lock to a new id.
func (r *counting) move() {
	if !r.op.unknown || r.next != "" {
		return
	}
	r.next = r.t.c.nextID()
	r.op.args = []string{r.id, r.next, r.count, r.lease}
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	r.t.moving = true
	r.t.suspect = append(r.t.suspect, r.id, r.next)
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

// lockOps takes the slot for requests about the hold count.
func (t *tenure) lockOps(ctx context.Context) error {
	t.mu.Lock()
	if t.ops == nil {
		t.ops = make(chan struct{}, 1)
	}
	ops := t.ops
	t.mu.Unlock()
	select {
	case ops <- struct{}{}:
		return nil
	default:
	}
	select {
	case ops <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctxError(ctx)
	}
}

func (t *tenure) unlockOps() { <-t.ops }
