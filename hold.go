package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lock"
)

// A Hold is one acquisition of a lock. It must be released, once, by anybody:
// it is not tied to a goroutine. Its methods are safe for concurrent use.
//
// A Hold that is garbage collected without having been released is reported
// (observe.Hooks.Dropped) and released.
type Hold struct {
	in    *lock.Hold
	leash holdctx.Leash[lock.Hold]
}

var holdLeashes = holdctx.NewLeashes((*lock.Hold).Dropped)

// newHold wraps h for the user.
func newHold(h *lock.Hold) *Hold {
	H := &Hold{in: h}
	holdLeashes.PutOn(&H.leash, h)
	return H
}

// HoldFrom returns the hold that ctx descends from, the innermost if there are several, live or
// not: in the function that Do calls, it is Do's. It is nil if there is none. Of a Multi no member's
// hold is found: see MultiHoldFrom.
func HoldFrom(ctx context.Context) *Hold { return holdctx.From[*Hold](ctx) }

// Name returns the lock's name.
func (h *Hold) Name() string { return h.in.Name() }

// Owner returns the owner field that Redis shows for this hold:
// "<client uuid>:<n>".
func (h *Hold) Owner() string { return h.in.Owner() }

// Token returns the hold's fencing token, or 0 if it was acquired without
// Fenced. Tokens of one lock rise with each acquisition by a client that counts
// it: redlatch with Fenced, or Redisson's fenced lock. Whoever guards the
// resource and refuses tokens lower than the highest it has seen (package fence)
// keeps out a holder that has lost the lock and does not know it yet.
//
// A token means nothing where some holders have none. A failover to a replica
// that has not seen the last acquisition gives the same token twice. A hold that
// is nested in another has the outer one's token.
func (h *Hold) Token() int64 { return h.in.Token() }

// Expires returns until when the hold can be trusted if no renewal is
// confirmed from now on. It is earlier than the moment at which Redis may give
// the lock away by the safety margin of 10 ms + lease/50.
//
// It is no later than what Config.MaxHold allows. It is the zero Time when the hold is over.
func (h *Hold) Expires() time.Time { return h.in.Expires() }

// Err returns nil while the hold is live, then why it is not: a *LostError if
// it was lost, ErrNotHeld if it was released, ErrClosed after Close. While Shutdown waits for the
// hold to be released it is live, also when Shutdown has ended its context. Err looks
// at the clock itself, so that code which wakes from a pause of the process or
// the machine sees the loss at its first check, before any timer has run.
func (h *Hold) Err() error { return h.in.Err() }

// Context returns the hold's context: it has the values of the context that
// the lock was acquired with (and what observe.Hooks.AcquireStart has added), but not its cancellation or deadline. It ends
// when the hold ends, with a *LostError (which is ErrLost), ErrNotHeld or
// ErrClosed as its cause. It has no deadline, with a Lease either: Expires says
// until when the hold can be trusted. Each call returns a context of its own.
//
// Acquiring the same lock with a context that descends from it re-enters the
// lock.
func (h *Hold) Context() context.Context {
	return holdctx.New(h.in.End(), h.in, h)
}

// With returns ctx, its cancellation, deadline and values, together with the
// hold's end and ownership: it ends when either does.
func (h *Hold) With(ctx context.Context) context.Context {
	return holdctx.Join(ctx, h.in.End(), h.in, h)
}

// Release ends the hold. Its context ends at once, with cause ErrNotHeld; then
// the lock passes to the goroutine of this process that has waited longest, or
// is released in Redis, unless an outer or inner hold still keeps it.
//
// While another hold of the nest is left, Release asks nobody, and reports only a
// loss that is known already; Redis shows one hold less soon after. (The Release of a
// write hold that leaves read holds of the nest behind waits until others may read, too.)
//
// Release works with a context that has ended: the request is sent all the
// same, and ctx only bounds the waiting for the reply. If it ends first,
// Release returns its error and the request goes on.
//
// It returns nil if the lock was released, also if the reply was lost and a
// repeated request found it released. It returns a *LostError, once, if the
// hold had been lost before (the lock, if it still stands, is freed when all whose
// loss it was have called Release), ErrNotHeld if it had been released before,
// ErrClosed if the client was closed before, and
// ErrUnavailable if the server did not answer; the lock is then left to its
// TTL, and a later request may free it sooner.
func (h *Hold) Release(ctx context.Context) error {
	if ctx == nil {
		return args.ErrNilContext
	}
	h.leash.TakeOff()
	return h.in.Release(ctx)
}

// Extend raises the lease of the hold to d from now, if it is not longer
// already; it never shortens it. It is for holds acquired with Lease: the
// watchdog extends the others, and Extend refuses them.
//
// It returns a *LostError if the hold has been lost. After ErrInvalid nothing has changed.
// After any other error the lease may have been raised or not; Expires says what can be
// relied on.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	d, err := args.Extension(ctx, d, h.in.Watchdog, "holds")
	if err != nil {
		return err
	}
	if err := h.Err(); err != nil {
		return err
	}
	return h.in.Extend(ctx, time.Time{}, d)
}
