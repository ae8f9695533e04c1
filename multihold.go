package redlatch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
)

// A MultiHold is one acquisition of a Multi. It is used as a Hold is: released
// once, by anybody, and its methods are safe for concurrent use. It is live for
// as long as every member's hold is, or, of a RedLock, a majority.
type MultiHold struct {
	in      *holding
	cleanup runtime.Cleanup
	ctx     holdctx.Context
}

// holding is what the library keeps of a MultiHold; it does not refer to it, as
// a hold does not refer to its Hold.
type holding struct {
	need     int             // how many holds must be live
	bound    time.Duration   // how long to wait for a member that does not answer, once there are enough; 0: as long as for any
	watchdog bool            // the members have no Lease
	end      context.Context //nolint:containedctx // what Context is made of
	cancel   context.CancelCauseFunc

	mu    sync.Mutex // guards what follows
	holds []*hold    // in the order in which they were acquired
	begun bool
	err   error // why it is over; nil while it is live
	told  bool  // it has been released
	stops []func() bool

	// Of a RedLock: attempts at members that are under way, and how to let the
	// next caller of this process in.
	away  int
	idle  chan struct{} // closed when away is 0 again
	quit  context.CancelCauseFunc
	leave func() // nil: nobody is kept waiting
}

func newHolding(ctx context.Context, q *quest, need int) *holding {
	g := &holding{need: need, watchdog: !q.option.hasLease}
	g.end, g.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return g
}

// add adds a member's hold, and says whether it still counts.
func (g *holding) add(h *hold) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return false
	}
	g.holds = append(g.holds, h)
	if g.begun {
		g.watchLocked(h)
	}
	return true
}

// watchLocked has the end of h noticed.
func (g *holding) watchLocked(h *hold) {
	g.stops = append(g.stops, context.AfterFunc(h.context(), func() { _ = g.Err() }))
}

// begin makes the holding live, unless some of its holds have ended already.
func (g *holding) begin() error {
	g.mu.Lock()
	g.begun = true
	for _, h := range g.holds {
		g.watchLocked(h)
	}
	g.mu.Unlock()
	return g.Err()
}

// Err returns why the holding is over, if it is. It looks at the clock.
func (g *holding) Err() error {
	g.mu.Lock()
	err, holds := g.err, g.holds
	g.mu.Unlock()
	if err != nil {
		return err
	}
	var ends []error
	for _, h := range holds {
		if err := h.Err(); err != nil {
			ends = append(ends, err)
		}
	}
	if len(holds)-len(ends) >= g.need {
		return nil
	}
	defer g.goOut()
	return g.over(join(ends))
}

// over ends the holding, if nothing else has, and returns what did.
func (g *holding) over(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
		g.cancel(err) // runs no code of users, as in endLocked
	}
	return g.err
}

// join is errors.Join that leaves a single error as it is.
func join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// holderOf returns the hold which err says has the lock.
func (g *holding) holderOf(err error) *hold {
	var busy *BusyError
	if !errors.As(err, &busy) || busy.Owner == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.holds {
		if h.t.id == busy.Owner {
			return h
		}
	}
	return nil
}

// has says whether a member is held.
func (g *holding) has(l *Lock) bool { return g.find(l.c, l.held) != nil }

// find returns the hold of a lock; c is nil if that of any client will do.
func (g *holding) find(c *Client, held any) *hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.holds {
		if h.t.lock.held == held && (c == nil || h.t.c == c) {
			return h
		}
	}
	return nil
}

// overlapping returns a live hold of some of a group's values.
func (g *holding) overlapping(o *overlap) *hold {
	g.mu.Lock()
	holds := g.holds
	g.mu.Unlock()
	for _, h := range holds {
		if o.with(h) {
			return h
		}
	}
	return nil
}

// level raises the leases of the members that were acquired first, if the others
// took long, so that they end together.
func (g *holding) level(ctx context.Context, o Option) error {
	if !o.hasLease {
		return nil
	}
	now := time.Now()
	for _, h := range g.holds {
		if h.t.lease.Left(now) > o.lease*4/5 {
			continue
		}
		if err := h.t.extend(ctx, time.Time{}, o.lease); err != nil {
			return memberError(h.t.lock, err)
		}
	}
	return nil
}

// undo releases what was acquired of a holding that was not to be.
func (g *holding) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, memberPatience)
	defer cancel()
	_ = g.over(errReleased)
	_ = g.letGo(ctx)
}

// release ends the holding.
func (g *holding) release(ctx context.Context) error {
	_ = g.Err() // a window that is over ends it as lost
	g.mu.Lock()
	if g.told {
		g.mu.Unlock()
		return errReleased
	}
	g.told = true
	g.mu.Unlock()
	_ = g.over(errReleased)
	defer g.goOut()
	return g.letGo(ctx)
}

// pace is how long the release of one member waits for that of the one after
// it, which was acquired later.
const pace = 100 * time.Millisecond

// letGo releases the holds in reverse order; those of a RedLock all at once. A
// member that does not answer does not hold up the others.
func (g *holding) letGo(ctx context.Context) error {
	g.mu.Lock()
	holds, stops, quit, idle := g.holds, g.stops, g.quit, g.idle
	g.stops = nil
	g.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	if quit != nil {
		quit(errReleased)
	}
	results := make(chan error, len(holds))
	var errs []error
	for _, h := range slices.Backward(holds) {
		h.t.c.server.Go(func() {
			err := h.release(ctx)
			if err != nil {
				err = memberError(h.t.lock, err)
			}
			results <- err
		})
		if g.bound == 0 && ctx.Err() == nil {
			t := time.NewTimer(pace)
			select {
			case err := <-results:
				errs = append(errs, err)
			case <-t.C:
			}
			t.Stop()
		}
	}
	var enough <-chan time.Time
	failed := func() error {
		ends := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
		if len(errs)-len(ends) >= g.need {
			return nil
		}
		return errors.Join(ends...)
	}
	for len(errs) < len(holds) {
		if enough == nil && g.bound > 0 && len(errs) >= g.need && failed() == nil {
			t := time.NewTimer(g.bound)
			defer t.Stop()
			enough = t.C
		}
		select {
		case err := <-results:
			errs = append(errs, err)
		case <-enough:
			return nil // the rest goes on without us
		}
	}
	if idle != nil {
		t := time.NewTimer(max(g.bound, pace))
		defer t.Stop()
		select {
		case <-idle:
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return failed()
}

// newMultiHold wraps g for the user.
func newMultiHold(g *holding) *MultiHold {
	H := &MultiHold{in: g}
	H.ctx.Make(g.end, g, H)
	H.cleanup = runtime.AddCleanup(H, (*holding).dropped, g)
	return H
}

// dropped has a holding that its user lost given up by the first of its clients
// that gets to it. Like hold.dropped it does nothing itself.
func (g *holding) dropped() {
	giveUp := sync.OnceFunc(g.giveUp)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.holds {
		h.t.c.dropped.Add(giveUp)
	}
}

func (g *holding) giveUp() {
	_ = g.over(errReleased) // whatever is under way is not to join it
	g.mu.Lock()
	holds, quit := g.holds, g.quit
	g.mu.Unlock()
	if quit != nil {
		quit(errReleased)
	}
	for _, h := range holds {
		h.giveUp()
	}
	g.goOut()
}

// Holds returns the members' holds, in the order in which they were acquired:
// each has its Owner, its Token, its Err. Those of a RedLock may become more
// after Acquire has returned, up to all. To release one ends the whole hold, or
// costs a RedLock a vote.
func (h *MultiHold) Holds() []*Hold {
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	holds := make([]*Hold, len(h.in.holds))
	for i, in := range h.in.holds {
		m := &memberHold{Hold: Hold{in: in}, whole: h}
		holds[i] = &m.Hold
	}
	return holds
}

// A memberHold keeps its MultiHold from being dropped: a pointer to its first
// field keeps all of it.
type memberHold struct {
	Hold
	whole *MultiHold
}

// Expires returns until when the hold can be trusted if no renewal is confirmed
// from now on: the earliest of the members' Expires, or of a RedLock that of the
// last one that makes a majority. It is the zero Time when the hold is over.
func (h *MultiHold) Expires() time.Time {
	if h.in.Err() != nil {
		return time.Time{}
	}
	h.in.mu.Lock()
	holds := h.in.holds
	h.in.mu.Unlock()
	ends := make([]time.Time, len(holds))
	for i, in := range holds {
		if in.Err() == nil {
			ends[i] = (&Hold{in: in}).Expires()
		}
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[h.in.need-1]
}

// Err returns nil while the hold is live, then why it is not: the error of the
// member that ended it, those of all that have ended if it is of a RedLock, or
// ErrNotHeld if it was released. Like Hold.Err it looks at the clock.
func (h *MultiHold) Err() error { return h.in.Err() }

// Context returns the hold's context, which is as Hold.Context says: it ends
// when the hold does, with the same cause that Err returns. Acquiring a member,
// or the same Multi, with a context that descends from it re-enters the member.
func (h *MultiHold) Context() context.Context { return &h.ctx }

// With returns ctx, its cancellation, deadline and values, together with the
// hold's end and ownership: it ends when either does.
func (h *MultiHold) With(ctx context.Context) context.Context {
	return holdctx.Join(ctx, h.in.end, h.in, h)
}

// Release ends the hold: its context at once, then the members, in the reverse
// order of their acquisition, or all at the same time if it is of a RedLock. A
// member whose server does not answer does not keep the others. As with
// Hold.Release, everything is sent even if ctx has ended, which only bounds the
// waiting.
//
// It returns nil if every member was released, or a majority of a RedLock's;
// else what the members' releases returned, joined: ErrLost if the hold had been
// lost. After the first call it returns ErrNotHeld.
func (h *MultiHold) Release(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	h.cleanup.Stop()
	return h.in.release(ctx)
}

// Extend raises the lease of every member to d from now, as Hold.Extend does, all
// at the same time. It returns nil if that succeeded for every member, or for a
// majority of a RedLock's; else the members' errors, joined.
func (h *MultiHold) Extend(ctx context.Context, d time.Duration) error {
	if err := h.Err(); err != nil {
		return err
	}
	holds := h.Holds()
	results := make(chan error, len(holds))
	for _, m := range holds {
		m.in.t.c.server.Go(func() { results <- m.Extend(ctx, d) })
	}
	var errs []error
	for i := range holds {
		if err := <-results; err != nil {
			errs = append(errs, err)
		}
		if i+1-len(errs) >= h.in.need {
			return nil
		}
	}
	return fmt.Errorf("redlatch: not every lock was extended: %w", errors.Join(errs...))
}

// Value implements holdctx.Held: it answers which hold of a lock a context descends
// from.
func (g *holding) Value(key any) any {
	var m *hold
	switch k := key.(type) {
	case memberKey:
		m = g.find(k.c, k.held)
	case *overlap:
		m = g.overlapping(k)
	default:
		m = g.find(nil, key)
	}
	if m == nil {
		return nil
	}
	return m
}

// memberKey is heldKey for the locks of one client, where those of several have
// one name.
type memberKey struct {
	c    *Client
	held any
}
