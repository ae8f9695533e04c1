package redlatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/barrier"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/multi"
	"github.com/redlatch/redlatch/internal/permit"
	"github.com/redlatch/redlatch/internal/request"
)

// An acquisition is one that somebody observes. It tells how it goes, and how what
// was acquired ends.
type acquisition struct {
	hooks.Acquisition

	observers hooks.List // that there were when it began
	report    *reporter
	ctx       context.Context //nolint:containedctx // for its values, until the hold has ended
	tries     bool            // it does not wait
	start     time.Time       // when it began
	since     time.Time       // when it had what it wanted
}

// begin tells that an acquisition begins. It goes on with the context that is
// returned with it.
func (r *reporter) begin(ctx context.Context, of hooks.Acquisition, tries bool) *acquisition {
	a := &acquisition{Acquisition: of, observers: r.hooks.Now(), report: r, tries: tries}
	a.ctx = a.observers.AcquireStart(ctx, &a.Acquisition)
	a.start = time.Now()
	return a
}

// end tells how the acquisition went: as that says, if it did not fail.
func (a *acquisition) end(how hooks.Outcome, count int, err error) {
	a.since = time.Now()
	if err != nil {
		how = outcomeOf(err, a.tries)
	}
	a.observers.AcquireEnd(a.ctx, &a.Acquisition, hooks.AcquireEnd{Waited: a.since.Sub(a.start), Outcome: how, Err: err, Count: count})
}

// hold tells how it went with a lock.
func (a *acquisition) hold(h *term.Hold, err error) {
	if err != nil {
		a.end("", 0, err)
		return
	}
	a.Owner = h.ID()
	handedOff, reentered, count := h.Acquired()
	a.end(success(handedOff, reentered), count, nil)
	a.watch(h)
}

// multi tells how it went with several locks as one.
func (a *acquisition) multi(g *multi.Hold, err error) {
	if err != nil {
		a.end("", 0, err)
		return
	}
	fresh := slices.ContainsFunc(g.Holds(), func(h *term.Hold) bool {
		_, reentered, _ := h.Acquired()
		return !reentered
	})
	a.end(success(false, !fresh), 0, nil)
	a.watch(g)
}

// observed is begin for the packages beside this one.
func (r *reporter) observed(ctx context.Context, of hooks.Acquisition, tries bool) bridge.Observed {
	return r.begin(ctx, of, tries)
}

// Context returns the context to go on with.
func (a *acquisition) Context() context.Context { return a.ctx }

// Counted tells how it went with what nobody holds.
func (a *acquisition) Counted(handedOff bool, err error) { a.end(success(handedOff, false), 0, err) }

// Permits tells how it went with permits that have leases. Each ends by itself.
func (a *acquisition) Permits(ps []*permit.Permit, err error) {
	if err != nil {
		a.end("", 0, err)
		return
	}
	if len(ps) == 1 {
		a.Owner = ps[0].ID()
		a.end(hooks.Acquired, 0, nil)
		a.watch(ps[0])
		return
	}
	a.end(hooks.Acquired, 0, nil)
	for _, p := range ps {
		each := *a
		each.Owner = p.ID()
		each.watch(p)
	}
}

// watch has the end of what was acquired told: from here on, so that it comes
// behind AcquireEnd.
func (a *acquisition) watch(held interface{ Observe(o holdctx.Observer) }) {
	if a.observers.HoldEnds() {
		held.Observe(a)
	}
}

// Released implements holdctx.Observer.
func (a *acquisition) Released(how holdctx.End, at time.Time, err error) {
	if how != holdctx.EndReleased && how != holdctx.EndDetached {
		a.Ended(how, at, err)
		return
	}
	a.observers.HoldEnd(a.ctx, &a.Acquisition, a.ended(how, at, nil))
}

// Ended implements holdctx.Observer.
func (a *acquisition) Ended(how holdctx.End, at time.Time, err error) {
	a.report.ends.Add(func() { a.observers.HoldEnd(a.ctx, &a.Acquisition, a.ended(how, at, err)) })
}

func (a *acquisition) ended(how holdctx.End, at time.Time, err error) hooks.HoldEnd {
	e := hooks.HoldEnd{Held: at.Sub(a.since), Reason: how}
	if how == holdctx.EndLost {
		e.Err = err
	}
	return e
}

// closeEnds waits until the ends of holds have been told, at most for d.
func (r *reporter) closeEnds(d time.Duration) {
	if !r.hooks.Now().HoldEnds() {
		return
	}
	told := make(chan struct{})
	r.ends.Add(func() { close(told) })
	_, _ = request.Pause(context.Background(), nil, told, time.Time{}, d)
}

// success is the outcome of an acquisition that did not fail.
func success(handedOff, reentered bool) hooks.Outcome {
	switch {
	case reentered:
		return hooks.Reentered
	case handedOff:
		return hooks.HandedOff
	}
	return hooks.Acquired
}

// outcomeOf is the outcome of an acquisition that failed; tries says that it would
// not have waited.
func outcomeOf(err error, tries bool) hooks.Outcome {
	busy, unavailable := errors.Is(err, ErrBusy), errors.Is(err, ErrUnavailable)
	if _, is := err.(*BusyError); is { //nolint:errorlint // what it is made of may be why its context has ended
		unavailable = false
	}
	switch {
	case unavailable:
		return hooks.Unavailable
	case busy && errors.Is(err, context.DeadlineExceeded):
		return hooks.TimedOut
	case busy && errors.Is(err, context.Canceled):
		return hooks.Cancelled
	case busy && tries:
		return hooks.Busy
	case busy:
		return hooks.TimedOut
	case errors.Is(err, ErrClosed):
		return hooks.Closed
	case errors.Is(err, barrier.ErrBroken):
		return hooks.Broken
	case IsRetryable(err):
		return hooks.Unavailable
	}
	return hooks.Refused
}
