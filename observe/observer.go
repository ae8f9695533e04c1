package observe

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/hooks"
)

// An observer calls the user's functions.
type observer struct {
	h      Hooks
	client redlatch.Identity
}

// call calls a function for an event, if there is one.
func call[E any](f func(E), e E) {
	if f != nil {
		f(e)
	}
}

func (o *observer) AcquireStart(ctx context.Context, a *hooks.Acquisition) context.Context {
	if o.h.AcquireStart != nil {
		if with := o.h.AcquireStart(ctx, AcquireStartEvent{Name: a.Name, Kind: redlatch.Kind(a.Kind), Mode: a.Mode, N: a.N}); with != nil {
			return with
		}
	}
	return ctx
}

func (o *observer) AcquireEnd(ctx context.Context, a *hooks.Acquisition, e hooks.AcquireEnd) {
	if o.h.AcquireEnd != nil {
		o.h.AcquireEnd(ctx, AcquireEndEvent{
			Name: a.Name, Kind: redlatch.Kind(a.Kind), Mode: a.Mode, N: a.N, Owner: a.Owner,
			Waited: e.Waited, Outcome: Outcome(e.Outcome), Err: e.Err, Count: e.Count,
		})
	}
}

func (o *observer) HoldEnd(ctx context.Context, a *hooks.Acquisition, e hooks.HoldEnd) {
	if o.h.HoldEnd != nil {
		o.h.HoldEnd(ctx, HoldEndEvent{
			Name: a.Name, Kind: redlatch.Kind(a.Kind), Mode: a.Mode, Owner: a.Owner, Held: e.Held, Reason: EndReason(e.Reason), Err: e.Err,
		})
	}
}

func (o *observer) Lost(loss *claim.Loss, held, late time.Duration) {
	if o.h.Lost == nil {
		return
	}
	e := LostEvent{
		Kind: redlatch.Kind(loss.Kind), Mode: loss.Mode, Several: loss.Several, Token: loss.Token, At: loss.At, Held: held, Site: loss.Site.String(),
		Renewed: loss.Renewed, Lease: loss.Lease, Late: late, RenewErr: loss.Failure, RenewFailed: loss.FailureAt, Node: loss.Node, Client: o.client,
	}
	errors.As(loss.Err, &e.Err)
	o.h.Lost(e)
}

func (o *observer) ReleaseFailed(name, owner string, err error) {
	call(o.h.ReleaseFailed, ReleaseFailedEvent{Name: name, Owner: owner, Err: err})
}

func (o *observer) RenewFailed(holds int, err error) {
	call(o.h.RenewFailed, RenewFailedEvent{Holds: holds, Err: err})
}

func (o *observer) SlowWait(name string, waited time.Duration, waiting, holding string) {
	call(o.h.SlowWait, SlowWaitEvent{Name: name, Waited: waited, WaitSite: waiting, HoldSite: holding})
}

func (o *observer) PossibleDeadlock(circle []census.Wait) {
	if o.h.PossibleDeadlock == nil {
		return
	}
	e := PossibleDeadlockEvent{Waits: make([]admin.CircularWait, len(circle))}
	for i, w := range circle {
		e.Waits[i] = admin.CircularWait(w)
	}
	o.h.PossibleDeadlock(e)
}

func (o *observer) Requeued(name, owner string, waited time.Duration) {
	call(o.h.Requeued, RequeuedEvent{Name: name, Owner: owner, Waited: waited})
}

func (o *observer) NotAcknowledged(name string, err error) {
	e := NotAcknowledgedEvent{Name: name}
	errors.As(err, &e.Err)
	call(o.h.NotAcknowledged, e)
}

func (o *observer) Skipped(n int) { call(o.h.Skipped, SkippedEvent{Events: n}) }

func (o *observer) Dropped(name, site string) {
	call(o.h.Dropped, DroppedEvent{Name: name, Site: site})
}
