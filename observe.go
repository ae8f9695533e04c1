package redlatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/multi"
	"github.com/redlatch/redlatch/internal/permit"
	"github.com/redlatch/redlatch/internal/request"
)

// An acquisition is one that somebody observes. It tells how it goes, and how what was
// acquired ends.
type acquisition struct {
	AcquireStartEvent

	report *reporter
	ctx    context.Context //nolint:containedctx // for its values, until the hold has ended
	tries  bool            // it does not wait
	owner  string
	start  time.Time // when it began
	since  time.Time // when it had what it wanted
}

// begin tells that an acquisition begins. It goes on with the context that is returned
// with it.
func (r *reporter) begin(ctx context.Context, e AcquireStartEvent, tries bool) *acquisition {
	if f := r.events.AcquireStart; f != nil {
		if with := f(ctx, e); with != nil {
			ctx = with
		}
	}
	return &acquisition{AcquireStartEvent: e, report: r, ctx: ctx, tries: tries, start: time.Now()}
}

// end tells how the acquisition went: as that says, if it did not fail.
func (a *acquisition) end(how Outcome, count int, err error) {
	a.since = time.Now()
	if err != nil {
		how = outcomeOf(err, a.tries)
	}
	if f := a.report.events.AcquireEnd; f != nil {
		f(a.ctx, AcquireEndEvent{
			Name: a.Name, Kind: a.Kind, Mode: a.Mode, N: a.N, Owner: a.owner,
			Waited: a.since.Sub(a.start), Outcome: how, Err: err, Count: count,
		})
	}
}

// observe has call acquire what nobody holds, and tells of it if anybody observes that.
func (r *reporter) observe(ctx context.Context, e AcquireStartEvent, tries bool, call func(ctx context.Context) (handedOff bool, err error)) error {
	if !r.observes || ctx == nil {
		_, err := call(ctx)
		return err
	}
	a := r.begin(ctx, e, tries)
	handedOff, err := call(a.ctx)
	a.end(success(handedOff, false), 0, err)
	return err
}

// hold tells how it went with a lock.
func (a *acquisition) hold(h *lock.Hold, err error) {
	if err != nil {
		a.end("", 0, err)
		return
	}
	a.owner = h.Owner()
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
	fresh := slices.ContainsFunc(g.Holds(), func(h *lock.Hold) bool {
		_, reentered, _ := h.Acquired()
		return !reentered
	})
	a.end(success(false, !fresh), 0, nil)
	a.watch(g)
}

// permits tells how it went with permits that have leases. Each ends by itself.
func (a *acquisition) permits(ps []*permit.Permit, err error) {
	if err != nil {
		a.end("", 0, err)
		return
	}
	if len(ps) == 1 {
		a.owner = ps[0].ID()
		a.end(OutcomeAcquired, 0, nil)
		a.watch(ps[0])
		return
	}
	a.end(OutcomeAcquired, 0, nil)
	for _, p := range ps {
		each := *a
		each.owner = p.ID()
		each.watch(p)
	}
}

// watch has the end of what was acquired told: from here on, so that it comes behind
// AcquireEnd.
func (a *acquisition) watch(held interface{ Observe(o holdctx.Observer) }) {
	if a.report.events.HoldEnd != nil {
		held.Observe(a)
	}
}

// Released implements holdctx.Observer.
func (a *acquisition) Released(how holdctx.End, at time.Time, err error) {
	if how != holdctx.EndReleased && how != holdctx.EndDetached {
		a.Ended(how, at, err)
		return
	}
	a.report.events.HoldEnd(a.ctx, a.ended(how, at, nil))
}

// Ended implements holdctx.Observer.
func (a *acquisition) Ended(how holdctx.End, at time.Time, err error) {
	a.report.ends.Add(func() { a.report.events.HoldEnd(a.ctx, a.ended(how, at, err)) })
}

func (a *acquisition) ended(how holdctx.End, at time.Time, err error) HoldEndEvent {
	e := HoldEndEvent{Name: a.Name, Kind: a.Kind, Mode: a.Mode, Owner: a.owner, Held: at.Sub(a.since), Reason: EndReason(how)}
	if e.Reason == EndLost {
		e.Err = err
	}
	return e
}

// closeEnds waits until the ends of holds have been told, at most for d.
func (r *reporter) closeEnds(d time.Duration) {
	if r.events.HoldEnd == nil {
		return
	}
	told := make(chan struct{})
	r.ends.Add(func() { close(told) })
	_, _ = request.Pause(context.Background(), nil, told, time.Time{}, d)
}

// success is the outcome of an acquisition that did not fail.
func success(handedOff, reentered bool) Outcome {
	switch {
	case reentered:
		return OutcomeReentered
	case handedOff:
		return OutcomeHandedOff
	}
	return OutcomeAcquired
}

// outcomeOf is the outcome of an acquisition that failed; tries says that it would not
// have waited.
func outcomeOf(err error, tries bool) Outcome {
	busy, unavailable := errors.Is(err, ErrBusy), errors.Is(err, ErrUnavailable)
	if _, is := err.(*BusyError); is { //nolint:errorlint // what it is made of may be why its context has ended
		unavailable = false
	}
	switch {
	case unavailable:
		return OutcomeUnavailable
	case busy && errors.Is(err, context.DeadlineExceeded):
		return OutcomeTimedOut
	case busy && errors.Is(err, context.Canceled):
		return OutcomeCancelled
	case busy && tries:
		return OutcomeBusy
	case busy:
		return OutcomeTimedOut
	case errors.Is(err, ErrClosed):
		return OutcomeClosed
	case errors.Is(err, ErrBroken):
		return OutcomeBroken
	case IsRetryable(err):
		return OutcomeUnavailable
	}
	return OutcomeRefused
}
