package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/multi"
)

// A MultiHold is one acquisition of a Multi. It is used as a Hold is: released
// once, by anybody, and its methods are safe for concurrent use. It is live for
// as long as every member's hold is, or, of a RedLock, a majority.
type MultiHold struct {
	in    *multi.Hold
	leash holdctx.Leash[multi.Hold]
}

var multiLeashes = holdctx.NewLeashes((*multi.Hold).Dropped)

// newMultiHold wraps g for the user.
func newMultiHold(g *multi.Hold) *MultiHold {
	H := &MultiHold{in: g}
	multiLeashes.PutOn(&H.leash, g)
	return H
}

// MultiHoldFrom returns the hold of several locks that ctx descends from, the innermost if there are
// several, live or not: in the function that Multi.Do calls, it is Do's. It is nil if there is none.
func MultiHoldFrom(ctx context.Context) *MultiHold { return holdctx.From[*MultiHold](ctx) }

// Holds returns the members' holds, in the order in which they were acquired:
// each has its Owner, its Token, its Err. Those of a RedLock may become more
// after Acquire has returned, up to all. To release one ends the whole hold, or
// costs a RedLock a vote.
func (h *MultiHold) Holds() []*Hold {
	all := h.in.Holds()
	holds := make([]*Hold, len(all))
	for i, in := range all {
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
func (h *MultiHold) Expires() time.Time { return h.in.Expires() }

// Err returns nil while the hold is live, then why it is not: the error of the
// member that ended it, those of all that have ended if it is of a RedLock, or
// ErrNotHeld if it was released. Like Hold.Err it looks at the clock.
func (h *MultiHold) Err() error { return h.in.Err() }

// Context returns the hold's context, which is as Hold.Context says: it ends
// when the hold does, with the same cause that Err returns. Acquiring a member,
// or the same Multi, with a context that descends from it re-enters the member.
func (h *MultiHold) Context() context.Context { return holdctx.New(h.in.End(), h.in, h) }

// With returns ctx, its cancellation, deadline and values, together with the
// hold's end and ownership: it ends when either does.
func (h *MultiHold) With(ctx context.Context) context.Context {
	return holdctx.Join(ctx, h.in.End(), h.in, h)
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
		return args.ErrNilContext
	}
	h.leash.TakeOff()
	return h.in.Release(ctx)
}

// Extend raises the lease of every member to d from now, as Hold.Extend does, all
// at the same time. It returns nil if that succeeded for every member, or for a
// majority of a RedLock's; else the members' errors, joined.
func (h *MultiHold) Extend(ctx context.Context, d time.Duration) error {
	d, err := args.Extension(ctx, d, h.in.Watchdog(), "holds")
	if err != nil {
		return err
	}
	return h.in.Extend(ctx, d)
}
