package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/multi"
	"github.com/redlatch/redlatch/internal/permit"
)

// A Hold is one acquisition: of a lock, of several locks as one, or of permits of
// a semaphore.Expirable. It must be released, once, by anybody: it is not tied to
// a goroutine. Its methods are safe for concurrent use. A hold of several locks is
// live for as long as every member's hold is, or, of a RedLock, a majority; a hold
// of several permits for as long as all of them are. A Hold that is garbage
// collected without having been released is reported (observe.Hooks.Dropped) and
// released, unless it was detached.
type Hold struct {
	in    held
	leash holdctx.Leash
}

// held is what the engines know of a hold. It does not refer to the Hold.
type held interface {
	holdctx.Held
	holdctx.Droppable
	keptUp

	Name() string
	ID() string
	Token() int64
	Kept() bool
	Expires() time.Time
	End() context.Context
}

// keptUp is what the holder does with it.
type keptUp interface {
	Release(ctx context.Context) error
	Extend(ctx context.Context, d time.Duration) error
	SetNote(text string) error
}

// newHold wraps what the engines hold for the user.
func newHold(in held) *Hold {
	h := &Hold{in: in}
	h.leash.PutOn(in)
	return h
}

// HoldFrom returns the hold that ctx descends from, the innermost if there are
// several, live or not, and whatever is held: in the function that Do calls, it is
// Do's. It is nil if there is none.
func HoldFrom(ctx context.Context) *Hold { return holdctx.From[*Hold](ctx) }

// Name returns the name of the lock or semaphore; of several locks their names.
func (h *Hold) Name() string { return h.in.Name() }

// ID returns by what others know the hold. Of a lock it is the owner field that
// Redis shows: "<client uuid>:<n>"; Lock.ReleaseID takes it. Of a permit it is the
// permit's id, 32 hexadecimal digits, by which any client, Redisson's too, can
// release and extend it. Of several locks or permits it is empty: each of the
// Members has its own.
func (h *Hold) ID() string { return h.in.ID() }

// Members returns the holds that the hold consists of: of several locks in the
// order in which they were acquired, of several permits one for each, and of one
// lock or permit the hold itself. Each has its ID, its Token, its Err. Those of a
// RedLock may become more after Acquire has returned, up to all. To release one
// ends the whole hold, or costs a RedLock a vote.
func (h *Hold) Members() []*Hold {
	var all []*Hold
	switch in := h.in.(type) {
	case *multi.Hold:
		for _, m := range in.Holds() {
			all = append(all, h.member(m))
		}
	case *permit.Several:
		for _, p := range in.Permits() {
			all = append(all, h.member(p))
		}
	default:
		all = append(all, h)
	}
	return all
}

// member wraps what is a part of the hold, and has no leash of its own.
func (h *Hold) member(in held) *Hold {
	m := &memberHold{Hold: Hold{in: in}, whole: h}
	return &m.Hold
}

// A memberHold keeps the whole hold from being dropped: a pointer to its first
// field keeps all of it.
type memberHold struct {
	Hold
	whole *Hold
}

// Token returns the hold's fencing token, or 0 if it was acquired without Fenced,
// and of several locks and permits. Tokens of one lock rise with each acquisition
// by a client that counts it: redlatch with Fenced, or Redisson's fenced lock.
// Whoever guards the resource and refuses tokens lower than the highest it has
// seen (package fence) keeps out a holder that has lost the lock and does not know
// it yet. A token means nothing where some holders have none. A failover to a
// replica that has not seen the last acquisition gives the same token twice. A
// hold that is nested in another has the outer one's token.
func (h *Hold) Token() int64 { return h.in.Token() }

// Expires returns until when the hold can be trusted if no renewal is confirmed
// from now on. It is earlier than the moment at which Redis may give the lock away
// by the safety margin of 10 ms + lease/50; of permits, earlier than anybody may
// give their places away, Redisson clients whose clock is ahead by
// Config.Redisson.MaxClockSkew included. Of several it is the earliest of the
// members' Expires, or of a RedLock that of the last one that makes a majority. It
// is no later than what MaxHold allows, and the zero Time when the hold is over.
func (h *Hold) Expires() time.Time { return h.in.Expires() }

// Err returns nil while the hold is live, then why it is not: a *LostError if it
// was lost, ErrNotHeld if it was released, ErrClosed after Close. While Shutdown
// waits for the hold to be released it is live, also when Shutdown has ended its
// context. Of several locks and permits it is the error of the member that ended
// the hold, or those of all that have ended if it is of a RedLock. Err looks at
// the clock itself, so that code which wakes from a pause of the process or the
// machine sees the loss at its first check, before any timer has run.
func (h *Hold) Err() error { return h.in.Err() }

// Context returns the hold's context: it has the values of the context that the
// hold was acquired with (and what observe.Hooks.AcquireStart has added), but not
// its cancellation or deadline. It ends when the hold ends, with a *LostError
// (which is ErrLost), ErrNotHeld or ErrClosed as its cause. It has no deadline,
// with a Lease either: Expires says until when the hold can be trusted. Each call
// returns a context of its own.
//
// Acquiring the same lock, or a member, with a context that descends from it
// re-enters the lock, also through context.WithoutCancel, which keeps the hold in
// the context. So what is started with it and not waited for enters beside its
// starter, and fails once the hold has ended: give it a context from outside.
func (h *Hold) Context() context.Context { return holdctx.New(h.in.End(), h.in, h) }

// With returns ctx, its cancellation, deadline and values, together with the
// hold's end and ownership: it ends when either does.
func (h *Hold) With(ctx context.Context) context.Context {
	return holdctx.Join(ctx, h.in.End(), h.in, h)
}

// Release ends the hold. Its context ends at once, with cause ErrNotHeld; then the
// lock passes to the goroutine of this process that has waited longest, or is
// released in Redis, unless an outer or inner hold still keeps it. A permit is
// free for whoever waits, in any process. Several locks are released in the
// reverse order of their acquisition, or all at the same time if they are a
// RedLock's; a member whose server does not answer does not keep the others.
//
// While another hold of the nest is left, Release asks nobody, and reports only a
// loss that is known already; Redis shows one hold less soon after. (That of a
// write hold that leaves read holds of the nest behind waits until others may
// read, too.)
//
// Release works with a context that has ended: the request is sent all the same,
// and ctx only bounds the waiting for the reply. If it ends first, Release returns
// its error and the request goes on.
//
// It returns nil if the lock or permit was released, also if the reply was lost
// and a repeated request found it released. It returns a *LostError, once, if the
// hold had been lost before (the lock, if it still stands, is freed when all whose
// loss it was have called Release), ErrNotHeld if it had been released before,
// ErrClosed if the client was closed before, and ErrUnavailable if the server did
// not answer; the lock or permit is then left to its TTL, and a later request may
// free it sooner. Of several it returns nil if every member was released, or a
// majority of a RedLock's; else what the members' releases returned, joined; what
// several permits lost, once.
func (h *Hold) Release(ctx context.Context) error {
	if ctx == nil {
		return args.ErrNilContext
	}
	h.leash.TakeOff()
	return h.in.Release(ctx)
}

// Extend raises the lease of the hold to d from now, if it is not longer already;
// it never shortens it. It is for holds acquired with Lease: the watchdog extends
// the others, and Extend refuses them. It returns a *LostError if the hold has
// been lost. After ErrInvalid nothing has changed. After any other error the lease
// may have been raised or not; Expires says what can be relied on. Of several it
// extends all members at the same time, and returns nil if that succeeded for
// every one, or for a majority of a RedLock's; else the members' errors, joined.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	d, err := args.Extension(ctx, d, h.in.Kept())
	if err != nil {
		return err
	}
	return h.in.Extend(ctx, d)
}

// SetNote says what the hold is for, or how far its work is, in place of an
// earlier text; "" is none. Nothing is sent: package admin and a BusyError of
// others have it if they can ask this client. It may have 200 bytes of UTF-8, or
// it is ErrInvalid. It ends with the hold; then the error is that of Err, and once
// detached ErrNotHeld. Of several, all get it.
func (h *Hold) SetNote(text string) error {
	if err := checkNote(text); err != nil {
		return err
	}
	return h.in.SetNote(text)
}

// Detach hands a lock or permit over by its id, which it returns: whoever has the
// id extends and releases it from now on (Lock.ExtendID, Lock.ReleaseID,
// semaphore.Expirable), in whatever process. Nobody renews it or tells of its
// loss: it is free when its lease is over, or a longer one that a nested hold had.
// It is for holds acquired with Lease. ErrInvalid are several locks, their
// members, sides of a read-write lock, group locks, nested holds, and a MinHold
// that is not over. Several permits are detached by their Members. If the hold is
// over, the error is Err's. After an error nothing has changed. Called again, it
// returns the id.
//
// From then on the Hold is the id and nothing else, and may be dropped. To
// re-enter the lock with its context is ErrNotHeld. Release, which Do calls, and
// Extend do what others do with the id. Err returns nil and Context does not end
// until Release is called: not when the lease is over, when others release, or
// with Close. Expires does not change.
func (h *Hold) Detach() (id string, err error) {
	in, one := h.in.(interface{ Detach() error })
	switch {
	case !one:
		return "", errDetachSeveral
	case h.in.Kept():
		return "", errDetachKept
	}
	if err := in.Detach(); err != nil {
		return "", err
	}
	h.leash.TakeOff()
	return h.ID(), nil
}

var (
	errDetachKept    = invalid.Errorf("redlatch: the watchdog keeps this hold, and nobody would once it is detached; acquire it with Lease, or release it")
	errDetachSeveral = invalid.Errorf("redlatch: several have no id together; detach each of the Members if they are permits, and acquire locks that are to be detached one by one")
)
