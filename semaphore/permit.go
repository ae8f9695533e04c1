package semaphore

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/permit"
)

// A Permit is one permit of an Expirable. It must be released, once, by
// anybody: it is not tied to a goroutine. Its methods are safe for concurrent
// use.
//
// A Permit that is garbage collected without having been released is reported
// (observe.Hooks.Dropped) and released, unless it was detached.
type Permit struct {
	in    *permit.Permit
	leash holdctx.Leash[permit.Permit]
}

var permitLeashes = holdctx.NewLeashes((*permit.Permit).Dropped)

func newPermit(in *permit.Permit) *Permit {
	p := &Permit{in: in}
	permitLeashes.PutOn(&p.leash, in)
	return p
}

// PermitFrom returns the permit that ctx descends from, the innermost if there are several, live or
// not: in the function that Expirable.Do calls, it is Do's. It is nil if there is none.
func PermitFrom(ctx context.Context) *Permit { return holdctx.From[*Permit](ctx) }

// Name returns the semaphore's name.
func (p *Permit) Name() string { return p.in.Name() }

// ID returns the permit's id, 32 hexadecimal digits, by which any client,
// Redisson's too, can release and extend it.
func (p *Permit) ID() string { return p.in.ID() }

// Expires returns until when the permit can be trusted if no renewal is
// confirmed from now on. It is earlier than the moment at which anybody may give
// its place away, Redisson clients whose clock is ahead by redlatch.Config.Redisson.MaxClockSkew
// included, by the safety margin of 10 ms + lease/50.
//
// It is no later than what redlatch.Config.MaxHold allows. It is the zero Time when the permit is over.
func (p *Permit) Expires() time.Time { return p.in.Expires() }

// Err returns nil while the permit is live, then why it is not, as redlatch.Hold.Err
// does. It looks at the clock itself.
func (p *Permit) Err() error { return p.in.Err() }

// Context returns the permit's context. It has the values of the context that
// the permit was acquired with, and ends when the permit ends, with the same
// cause that Err returns. It has no deadline, with a Lease either: Expires says
// until when the permit can be trusted.
func (p *Permit) Context() context.Context { return holdctx.New(p.in.End(), p.in, p) }

// With returns ctx, its cancellation, deadline and values, together with the
// permit's end: it ends when either does.
func (p *Permit) With(ctx context.Context) context.Context {
	return holdctx.Join(ctx, p.in.End(), p.in, p)
}

// Release ends the permit: its context at once, with cause redlatch.ErrNotHeld, then the
// permit is free for whoever waits, in any process. ctx bounds only the waiting
// for the reply, as with redlatch.Hold.Release.
//
// It returns nil if the permit was released, also if the reply was lost and a
// repeated request found it released. It returns a *redlatch.LostError, once, if the
// permit had been lost before, redlatch.ErrNotHeld if it had been released before,
// redlatch.ErrClosed if the client was closed before, and redlatch.ErrUnavailable if the server
// did not answer; the permit is then left to its lease, and a later request may
// free it sooner.
func (p *Permit) Release(ctx context.Context) error {
	if ctx == nil {
		return args.ErrNilContext
	}
	p.leash.TakeOff()
	return p.in.Release(ctx)
}

// Extend raises the lease of the permit to d from now, if it is not longer
// already; it never shortens it. It is for permits acquired with Lease: the
// watchdog extends the others, and Extend refuses them.
//
// It returns a *redlatch.LostError if the permit has been lost. After redlatch.ErrInvalid nothing has changed.
// After any other error the lease may have been raised or not; Expires says what can be
// relied on.
func (p *Permit) Extend(ctx context.Context, d time.Duration) error {
	return extendPermit(ctx, p.in, d)
}

func extendPermit(ctx context.Context, p *permit.Permit, d time.Duration) error {
	d, err := args.Extension(ctx, d, p.Kept(), "permits")
	if err != nil {
		return err
	}
	return p.Extend(ctx, d)
}

// Detach hands the permit over by its id, which it returns: whoever has the id
// extends and releases it from now on, in whatever process, and if nobody does, it is
// free again when its lease is over. It is for permits acquired with Lease: one that the watchdog
// keeps is redlatch.ErrInvalid, as nobody would keep it any more. If the permit is over, the error is that of Err.
// After an error nothing has changed, and Release is still to be called. A second call returns the id again.
//
// From then on the Permit is the id and nothing else, and may be dropped. Release and
// Extend do what those of the Expirable do with that id. Err returns nil and
// Context does not end until Release is called on this Permit: not when the lease is
// over, when others release the permit, or with Close. Expires stays what it was;
// Expirable.LeaseLeft asks the server.
func (p *Permit) Detach() (id string, err error) {
	if p.in.Kept() {
		return "", errDetachKept
	}
	if err := p.in.Detach(); err != nil {
		return "", err
	}
	p.leash.TakeOff()
	return p.ID(), nil
}

var errDetachKept = invalid.Errorf("redlatch: the watchdog keeps this permit, and nobody would once it is detached; acquire it with Lease, or release it")
