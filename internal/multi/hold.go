package multi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
)

// Hold is what the library keeps of a hold of several locks; it does not refer to
// its user's.
type Hold struct {
	holdctx.Whole

	name     string
	need     int           // how many holds must be live
	bound    time.Duration // how long to wait for a member that does not answer, once there are enough; 0: as long as for any
	watchdog bool          // the members have no Lease

	note note

	state holdctx.State // its mutex guards what follows, too
	holds []*term.Hold  // in the order in which they were acquired
	begun bool
	stops []func() bool

	// Of a RedLock: how to end the attempts at members, what is closed when none
	// is in flight any more, and how to let the next caller of this process in.
	quit  context.CancelCauseFunc
	idle  chan struct{}
	leave func() // nil: nobody is kept waiting
}

func newHold(ctx context.Context, q *acquisition, need int) *Hold {
	g := &Hold{name: q.m.Name, need: need, watchdog: !q.want.HasLease}
	g.state.Under(ctx)
	return g
}

// add adds a member's hold, and says whether it still counts.
func (g *Hold) add(h *term.Hold) bool {
	g.state.Mu.Lock()
	defer g.state.Mu.Unlock()
	if g.state.Why != nil {
		return false
	}
	g.holds = append(g.holds, h)
	if g.begun {
		term.Begin(h)
		g.watchLocked(h)
	}
	return true
}

// A note is what several holds have been said to be for, as one.
type note struct {
	mu   sync.Mutex // guards text, and keeps the members' notes in its order
	text *string    // nil: each member has what it was acquired with
}

// SetNote says what the hold is for, from now on, also of members that come later.
func (g *Hold) SetNote(text string) error {
	if err := g.Err(); err != nil {
		return err
	}
	g.note.mu.Lock()
	defer g.note.mu.Unlock()
	g.note.text = &text
	for _, h := range g.Holds() {
		_ = h.SetNote(text) // a majority may do without those that have ended
	}
	return g.Err()
}

// tell gives a member that has come late what SetNote has said before.
func (n *note) tell(h *term.Hold) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.text != nil {
		_ = h.SetNote(*n.text) // else it has ended already
	}
}

// watchLocked has the end of h noticed.
func (g *Hold) watchLocked(h *term.Hold) {
	end := h.End()
	g.stops = append(g.stops, context.AfterFunc(end, func() {
		if h.Err() == nil { // its client is shut down: it can still be released, or lost
			g.state.CutContext(context.Cause(end))
			h.Observe(recheck{g})
			return
		}
		_ = g.Err()
	}))
}

// A recheck looks at the whole hold again when a member ends whose context ended
// before the member did.
type recheck struct{ g *Hold }

// Released implements holdctx.Observer.
func (r recheck) Released(holdctx.End, time.Time, error) { _ = r.g.Err() }

// Ended implements holdctx.Observer.
func (r recheck) Ended(holdctx.End, time.Time, error) { _ = r.g.Err() }

// begin makes the hold live, unless some of its holds have ended already, or are
// about to: Close frees those under which nobody works. A Close that comes now
// waits until it is decided whether somebody will.
func (g *Hold) begin() error {
	g.state.Mu.Lock()
	g.begun = true
	var closed []error
	for _, h := range g.holds {
		if c := h.Client(); c.Join() {
			defer c.Part()
		} else {
			closed = append(closed, memberError(h.Name(), request.ErrClosed))
		}
		g.watchLocked(h)
	}
	holds := g.holds
	g.state.Mu.Unlock()
	if len(holds)-len(closed) < g.need {
		return join(closed)
	}
	if err := g.Err(); err != nil {
		return err
	}
	term.Begin(holds...)
	return nil
}

// Err returns why the hold is over, if it is. It looks at the clock.
func (g *Hold) Err() error {
	g.state.Mu.Lock()
	err, holds := g.state.Why, g.holds
	g.state.Mu.Unlock()
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
	return g.state.Finish(join(ends))
}

// End returns the context that ends with the hold.
func (g *Hold) End() context.Context { return g.state.Context() }

// Observe has o told of the hold's end, at once if that has come already.
func (g *Hold) Observe(o holdctx.Observer) { g.state.Observe(o) }

// join is errors.Join that leaves a single error as it is.
func join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// holderOf returns the hold which err says has the lock.
func (g *Hold) holderOf(err error) *term.Hold {
	var busy fact.Busy
	if !errors.As(err, &busy) || busy.Owner == "" {
		return nil
	}
	g.state.Mu.Lock()
	defer g.state.Mu.Unlock()
	for _, h := range g.holds {
		if h.ID() == busy.Owner {
			return h
		}
	}
	return nil
}

// has says whether a member is held.
func (g *Hold) has(l *lock.Spec) bool {
	g.state.Mu.Lock()
	defer g.state.Mu.Unlock()
	return slices.ContainsFunc(g.holds, func(h *term.Hold) bool { return h.Of(&l.Lock) })
}

// level raises the leases of the members that were acquired first, if the others
// took long, so that they end together.
func (g *Hold) level(ctx context.Context, q *acquisition) error {
	if !q.want.HasLease {
		return nil
	}
	for _, h := range g.holds {
		if time.Until(h.Expires()) > q.want.Lease*4/5 {
			continue
		}
		err := q.m.whileOpen(ctx, func(ctx context.Context) error { return h.ExtendUntil(ctx, q.want.Until, q.want.Lease) })
		if err != nil {
			return memberError(h.Name(), handoff.GaveUp(err, fact.Busy{Name: h.Name()}))
		}
	}
	return nil
}

// undo releases what was acquired of a hold that was not to be.
func (g *Hold) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, memberPatience)
	defer cancel()
	_ = g.state.Finish(holdctx.ErrReleased)
	_ = g.releaseAll(ctx)
}

// Release ends the hold.
func (g *Hold) Release(ctx context.Context) error {
	_ = g.Err() // a window that is over ends it as lost
	now := time.Now()
	if first, why := g.state.NoteRelease(); !first {
		return why
	}
	defer g.goOut()
	err := g.releaseAll(ctx)
	g.state.TellRelease(holdctx.EndOfRelease(err), now, err)
	return err
}

// pace is how long the release of one member waits for that of the one after
// it, which was acquired later.
const pace = 100 * time.Millisecond

// releaseAll releases the holds in reverse order; those of a RedLock all at once.
// A member that does not answer does not hold up the others.
func (g *Hold) releaseAll(ctx context.Context) error {
	g.state.Mu.Lock()
	holds, stops, quit, idle := g.holds, g.stops, g.quit, g.idle
	g.stops = nil
	g.state.Mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	if quit != nil {
		quit(holdctx.ErrReleased)
	}
	results := make(chan error, len(holds))
	var errs []error
	for _, h := range slices.Backward(holds) {
		h.Client().Server.Go(func() {
			err := h.Release(ctx)
			if err != nil {
				err = memberError(h.Name(), err)
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
	if quit != nil {
		_, _ = request.Await(ctx, nil, idle, time.Now().Add(max(g.bound, pace)))
	}
	return failed()
}

// Dropped has a hold that its user lost given up by the first of its clients
// that gets to it. Like term.Hold.Dropped it does nothing itself.
func (g *Hold) Dropped() {
	giveUp := sync.OnceFunc(g.giveUp)
	g.state.Mu.Lock()
	defer g.state.Mu.Unlock()
	for _, h := range g.holds {
		h.Client().Dropped.Add(giveUp)
	}
}

func (g *Hold) giveUp() {
	g.state.Tell(holdctx.EndDropped, nil)
	_ = g.state.Finish(holdctx.ErrReleased) // whatever is in flight is not to join it
	g.state.Mu.Lock()
	holds, quit := g.holds, g.quit
	g.state.Mu.Unlock()
	if quit != nil {
		quit(holdctx.ErrReleased)
	}
	for _, h := range holds {
		h.GiveUp()
	}
	g.goOut()
}

// Value implements holdctx.Held: it answers which hold of a lock a context
// descends from.
func (g *Hold) Value(key any) any {
	g.state.Mu.Lock()
	holds := g.holds
	g.state.Mu.Unlock()
	for _, h := range holds {
		if v := h.Value(key); v != nil {
			return v
		}
	}
	return nil
}

// Holds returns the members' holds, in the order in which they were acquired.
func (g *Hold) Holds() []*term.Hold {
	g.state.Mu.Lock()
	defer g.state.Mu.Unlock()
	return slices.Clone(g.holds)
}

// Kept says whether the watchdog keeps the members.
func (g *Hold) Kept() bool { return g.watchdog }

// Name returns the names of the locks.
func (g *Hold) Name() string { return g.name }

// Expires returns until when the hold can be trusted: the zero Time if it is over.
func (g *Hold) Expires() time.Time {
	if g.Err() != nil {
		return time.Time{}
	}
	holds := g.Holds()
	ends := make([]time.Time, len(holds))
	for i, h := range holds {
		ends[i] = h.Expires()
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[g.need-1]
}

// Extend raises the leases of all members at the same time, and returns when that
// has succeeded for so many as are needed.
func (g *Hold) Extend(ctx context.Context, d time.Duration) error {
	if err := g.Err(); err != nil {
		return err
	}
	holds := g.Holds()
	results := make(chan error, len(holds))
	for _, h := range holds {
		h.Client().Server.Go(func() {
			results <- h.Extend(ctx, d)
		})
	}
	var errs []error
	for i := range holds {
		if err := <-results; err != nil {
			errs = append(errs, err)
		}
		if i+1-len(errs) >= g.need {
			return nil
		}
	}
	return fmt.Errorf("redlatch: not every lock was extended: %w", errors.Join(errs...))
}
