package redlatch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/gate"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Hold is one acquisition of a lock. It must be released, once, by anybody:
// it is not tied to a goroutine. Its methods are safe for concurrent use.
//
// A Hold that is garbage collected without having been released is reported
// (Events.Dropped) and released.
type Hold struct {
	in      *hold
	cleanup runtime.Cleanup
	ctx     holdctx.Context // Context's result, once asked for; guarded by in.t.mu
}

// hold is what the library keeps of a Hold. It must not refer to the Hold, or
// a dropped one would never be noticed.
type hold struct {
	t        *tenure
	parent   *hold // the hold that this one is nested in; nil for the first
	scope    *scope
	values   context.Context //nolint:containedctx // the acquire context's values, for Context
	watchdog bool
	fenced   bool
	reads    bool         // it shares its tenure with others that read
	own      *renew.Lease // the end that only this hold has; nil: the tenure's
	at       callsite.Site
	since    time.Time

	// Guarded by t.mu.
	prev, next *hold
	err        error               // why it is over; nil while it is live
	lapsed     bool                // it ended by a window, and counts until it is released
	told       bool                // the holder has been told of the loss by Release
	end        holdctx.Lazy        // what Context is made of
	children   *gate.Gate[*tenure] // siblings nested in this hold take turns
	joined     *hold               // the first hold of the same scope, whose turn this one shares
	open       int                 // this hold, if live, plus the nested one that has its turn
}

// errReleased is the cause of a released hold's context.
var errReleased = fmt.Errorf("%w: it has been released", ErrNotHeld)

// newHold returns a hold of t that is yet to be added to it.
func (t *tenure) newHold(ctx context.Context, o *options, at callsite.Site, now time.Time) *hold {
	h := &t.first
	if h.t != nil {
		h = &hold{}
	}
	h.set(ctx, t, o, at, now)
	return h
}

func (h *hold) set(ctx context.Context, t *tenure, o *options, at callsite.Site, now time.Time) {
	h.t, h.values, h.scope, h.watchdog, h.fenced, h.at, h.since, h.open = t, ctx, o.scope, !o.hasLease, o.fenced, at, now, 1
}

// newHoldFor wraps h for the user.
func (c *Client) newHoldFor(h *hold) *Hold {
	H := &Hold{in: h}
	H.cleanup = runtime.AddCleanup(H, (*hold).dropped, h)
	return H
}

// dropped notes a hold that its user lost.
func (h *hold) dropped() { h.t.c.dropped.Add(h.giveUp) }

// giveUp reports and releases a hold that was dropped.
func (h *hold) giveUp() {
	h.t.mu.Lock()
	over := h.err != nil
	h.t.mu.Unlock()
	if over { // lost: nobody says that its section has stopped
		if h.scope != nil {
			h.scope.released(h.t.lock)
		}
		return
	}
	h.t.c.report.dropped(h.t.lock.name, h.at)
	h.t.c.server.Go(func() { _ = h.release(context.Background()) })
}

// Name returns the lock's name.
func (h *Hold) Name() string { return h.in.t.lock.name }

// Owner returns the owner field that Redis shows for this hold:
// "<client uuid>:<n>".
func (h *Hold) Owner() string { return h.in.t.id }

// Token returns the hold's fencing token, or 0 if it was acquired without
// Fenced. Tokens of one lock rise with each acquisition by a client that counts
// it: redlatch with Fenced, or Redisson's fenced lock. Whoever guards the
// resource and refuses tokens lower than the highest it has seen (package fence)
// keeps out a holder that has lost the lock and does not know it yet.
//
// A token means nothing where some holders have none. A failover to a replica
// that has not seen the last acquisition gives the same token twice. A hold that
// is nested in another has the outer one's token.
func (h *Hold) Token() int64 {
	if !h.in.fenced {
		return 0
	}
	t := h.in.t
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.token
}

// Expires returns until when the hold can be trusted if no renewal is
// confirmed from now on. It is earlier than the moment at which Redis may give
// the lock away by the safety margin of 10 ms + lease/50.
//
// It is no later than what Config.MaxHold allows.
func (h *Hold) Expires() time.Time {
	t := h.in.t
	end := t.lease.End()
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := h.in.own; own != nil {
		if own.End().Before(end) {
			end = own.End()
		}
		if !own.Until.IsZero() && own.Until.Before(end) {
			end = own.Until
		}
	}
	return end
}

// Err returns nil while the hold is live, then why it is not: a *LostError if
// it was lost, ErrNotHeld if it was released, ErrClosed after Close. It looks
// at the clock itself, so that code which wakes from a pause of the process or
// the machine sees the loss at its first check, before any timer has run.
func (h *Hold) Err() error { return h.in.Err() }

// Err looks at the clock itself.
func (h *hold) Err() error {
	t := h.t
	t.mu.Lock()
	err := h.err
	t.mu.Unlock()
	now := time.Now()
	if err == nil && (t.lease.Left(now) <= 0 || h.over(now) != "") {
		if t.lease.Left(now) <= 0 {
			t.lose(LostExpired)
		} else if after := h.expire(now); after != nil {
			after()
		}
		t.mu.Lock()
		err = h.err
		t.mu.Unlock()
	}
	return err
}

// Context returns the hold's context: it has the values of the context that
// the lock was acquired with, but not its cancellation or deadline. It ends
// when the hold ends, with a *LostError (which is ErrLost), ErrNotHeld or
// ErrClosed as its cause. It has no deadline, with a Lease either: Expires says
// until when the hold can be trusted.
//
// Acquiring the same lock with a context that descends from it re-enters the
// lock.
func (h *Hold) Context() context.Context {
	end := h.in.context()
	h.in.t.mu.Lock()
	defer h.in.t.mu.Unlock()
	if !h.ctx.Made() {
		h.ctx.Make(end, h.in, h)
	}
	return &h.ctx
}

// With returns ctx, its cancellation, deadline and values, together with the
// hold's end and ownership: it ends when either does.
func (h *Hold) With(ctx context.Context) context.Context {
	return holdctx.Join(ctx, h.in.context(), h.in, h)
}

// Value implements holdctx.Held: it answers which hold of a lock a context descends
// from.
func (h *hold) Value(key any) any {
	if key == h.t.lock.held {
		return h
	}
	if o, ok := key.(*overlap); ok && o.with(h) {
		return h
	}
	if k, ok := key.(memberKey); ok && k.c == h.t.c && k.held == h.t.lock.held {
		return h
	}
	return nil
}

// context returns the context that the hold's end ends.
func (h *hold) context() context.Context {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.end.Get(h.values, h.err)
}

// heldKey is the context key of the nearest hold of the lock with this name.
type heldKey string

// Release ends the hold. Its context ends at once, with cause ErrNotHeld; then
// the lock passes to the goroutine of this process that has waited longest, or
// is released in Redis, unless an outer or inner hold still keeps it.
//
// While another hold of the nest is left, Release asks nobody, and reports only a
// loss that is known already; Redis shows one hold less soon after. (Who wrote and
// leaves readers of the nest behind waits until others may read, too.)
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
		return errNilContext
	}
	h.cleanup.Stop()
	return h.in.release(ctx)
}

func (h *hold) release(ctx context.Context) error {
	t := h.t
	if h.scope != nil {
		defer h.scope.released(t.lock)
	}
	_ = h.Err() // a window that is over ends the hold as lost
	t.mu.Lock()
	if h.err != nil {
		err := h.err
		if h.told {
			err = errReleased
		}
		h.told = true
		after := h.stoppedLocked()
		t.mu.Unlock()
		after()
		return err
	}
	h.told = true
	t.removeLocked(h, errReleased)
	left := t.dropLocked(h.reads)
	t.mu.Unlock()
	h.closed()
	if f := t.c.report.events.Released; f != nil {
		f(ReleasedEvent{Name: t.lock.name, Owner: t.id, Held: time.Since(h.since)})
	}
	switch left {
	case nobody:
		return t.finish(ctx)
	case readers:
		return t.c.server.Finish(ctx, t.length, t.downgrade)
	case others:
	}
	return nil
}

// closed frees the hold's turn among its siblings when it and everything that
// was nested in it, or shares its turn, has been released.
func (h *hold) closed() {
	for h != nil {
		h.t.mu.Lock()
		h.open--
		over := h.open == 0
		h.t.mu.Unlock()
		switch {
		case !over:
			return
		case h.joined != nil:
			h = h.joined
		case h.parent != nil:
			h.parent.siblings().Exit()
			h = h.parent
		default:
			return
		}
	}
}

// siblings returns the gate at which those line up that nest in h.
func (h *hold) siblings() *gate.Gate[*tenure] {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if h.children == nil {
		h.children = &gate.Gate[*tenure]{}
	}
	return h.children
}

// Extend raises the lease of the hold to d from now, if it is not longer
// already; it never shortens it. It is for holds acquired with Lease: the
// watchdog extends the others, and Extend refuses them.
//
// It returns a *LostError if the hold has been lost. After any other error the
// lease may have been raised or not; Expires says what can be relied on.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	switch {
	case ctx == nil:
		return errNilContext
	case h.in.watchdog:
		return errors.New("redlatch: Extend is for holds acquired with Lease; the watchdog extends this one by itself")
	}
	if err := checkLease(d); err != nil {
		return err
	}
	if err := h.Err(); err != nil {
		return err
	}
	d = (d + time.Millisecond - 1).Truncate(time.Millisecond)
	sent := time.Now()
	if err := h.in.t.extend(ctx, time.Time{}, d); err != nil {
		return err
	}
	if own := h.in.own; own != nil && own.Left(time.Now()) > 0 {
		own.Confirm(sent, d)
	}
	return h.Err()
}

// extend asks the server to raise the lease.
func (t *tenure) extend(ctx context.Context, until time.Time, d time.Duration) error {
	t.mu.Lock()
	t.alone = t.alone || d > t.length // if this process dies, the next holder's lock must not last so long
	t.mu.Unlock()
	o := t.op(t.lock.kind.renew, []string{t.id, wire.Millis(d), unchanged})
	o.Stop, o.Until = t.c.server.Done, until
	return t.prolong(ctx, &o, d)
}
