package observe

import (
	"context"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/hooks"
)

// Hooks are functions to be called when something happens to a client: see [Add].
// Each may be nil. The structs may gain fields. No function may panic.
//
// AcquireStart, AcquireEnd and HoldEnd tell of every acquisition, its begin and
// its ends: traces and metrics can be made of them. They are called by the
// goroutine that acquires or releases, several at a time; they must not block and
// must not call back into the client.
//
// An acquisition is a call that may wait: Acquire, Do, TryAcquire and TryDo of
// locks, semaphores and rate limiters, Wait of a latch and Await of a barrier. A
// MultiLock or a RedLock is acquired as one, and told of by the first of its
// members' clients that has one of these functions. A call with a nil context is
// not told of.
//
// All others are called one at a time, in the order in which things happened, and
// nothing waits for them: a slow one delays only those behind it. Of those at most
// 10,000 wait, the rest are summed up by Skipped, and Close drops them, but for
// ReleaseFailed, which may also be called after Close.
type Hooks struct {
	// AcquireStart is called when an acquisition begins, before anything is asked. The
	// context that it returns is the one that the acquisition goes on with, and of
	// which redlatch.Hold.Context and the function that Do calls have the values. It
	// must descend from ctx, or nobody could end the call or re-enter a lock; nil
	// stands for ctx.
	AcquireStart func(ctx context.Context, e AcquireStartEvent) context.Context
	// AcquireEnd is called once for each call of AcquireStart, before the acquisition
	// returns, with the context that AcquireStart returned. That may have ended.
	AcquireEnd func(ctx context.Context, e AcquireEndEvent)
	// HoldEnd is called once for whatever was acquired and is held: a lock, several
	// locks, or each permit, also of several that are one Hold. That is after
	// AcquireEnd, and with the same context, of which the values count: it may have
	// ended.
	//
	// A Release calls it when it is known whether the hold had been lost, and before
	// it returns. For holds that end otherwise it is called one at a time, in the
	// order in which they ended, and nothing waits for it but Close, at most for
	// redlatch.Config.CloseTimeout. None of them is skipped or dropped; that of
	// several locks, or of a hold that was lost when the client was being closed, may
	// come just after Close.
	//
	// The next holder of the same lock may have begun, and its AcquireEnd may have
	// been called, before.
	HoldEnd func(ctx context.Context, e HoldEndEvent)
	// Lost is called when a hold is lost, after its context has ended. A Release may
	// be the first to learn that.
	Lost func(LostEvent)
	// ReleaseFailed is called when a release could not be confirmed. The lock is then
	// left to its TTL, and a later request may still free it sooner. Permits of a
	// Semaphore are not given back again.
	ReleaseFailed func(ReleaseFailedEvent)
	// RenewFailed is called for each batch of renewals that failed; they are tried
	// again until the holds' trust ends.
	RenewFailed func(RenewFailedEvent)
	// SlowWait is called once for an acquisition that has waited for
	// redlatch.Config.SlowWait for a lock that this process itself holds.
	SlowWait func(SlowWaitEvent)
	// PossibleDeadlock is called when admin.Admin.Participants has found callers, of
	// whatever clients, that seem to wait for one another: once for each circle while
	// it stands. See admin.Participants.PossibleDeadlocks.
	PossibleDeadlock func(PossibleDeadlockEvent)
	// Requeued is called when a caller that waits for a fair lock has lost its place
	// in the queue and has to stand at its end again: its client could not be heard
	// for six seconds, or a Redisson client took it for dead.
	Requeued func(RequeuedEvent)
	// NotAcknowledged is called when an acquisition went on without its replicas
	// (redlatch.AckBestEffort), or when they do not know of permits that were given
	// back, or of another change of their number.
	NotAcknowledged func(NotAcknowledgedEvent)
	// Skipped is called when more happened than could be told one by one.
	Skipped func(SkippedEvent)
	// Dropped is called when a Hold was garbage collected without having been
	// released. redlatch releases it then.
	Dropped func(DroppedEvent)
}

// Add has the functions of h called for a client, in addition to those that were
// added before. They are told of acquisitions, and of the holds of acquisitions,
// that begin after Add, and of everything else that happens after it. Add may be
// called at any time.
//
// AcquireStart functions are called in the order in which they were added, each
// with the context that the one before has returned. AcquireEnd and HoldEnd
// functions are called in the opposite order, with the last of these contexts, so
// that what one function has begun, such as a span, lasts while those behind it
// are called. All others are called in the order in which they were added.
//
// After remove has returned, no further call of the functions begins: also not for
// the end of what they were told to have begun. Remove does not wait for calls
// that have begun, so a function may call it. It may be called more than once.
func Add(c *redlatch.Client, h Hooks) (remove func()) {
	in := bridge.Open(c)
	return in.Hooks.Add(&observer{h, redlatch.Identity(in.Identity)}, hooks.Needs{
		Acquisitions: h.AcquireStart != nil || h.AcquireEnd != nil || h.HoldEnd != nil,
		HoldEnds:     h.HoldEnd != nil,
		Sites:        h.Lost != nil || h.SlowWait != nil || h.Dropped != nil,
	})
}
