// Package bridge lets the packages beside the root reach what a client is made of.
// The root package exports nothing for that: it hands the way in to this package,
// as grpc's does.
package bridge

import (
	"context"

	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/barrier"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/election"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/nameclash"
	"github.com/redlatch/redlatch/internal/permit"
	"github.com/redlatch/redlatch/internal/poll"
	"github.com/redlatch/redlatch/internal/ratequeue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/revoke"
)

// Engines are what a client is made of.
type Engines struct {
	Identity census.Identity
	Sites    bool // callers that wait say where

	Server *request.Server
	Twins  *nameclash.Names

	Locks      *lock.Locks
	Semaphores *permit.Semaphores
	Rates      *ratequeue.Queues
	Polls      *poll.Polls
	Barriers   *barrier.Barriers
	Elections  *election.Elections
	Control    *revoke.Control
	Inspector  *inspect.Inspector
	Census     *census.Census

	Hooks *hooks.Set
	// Observed tells that an acquisition begins. Begin calls it if somebody observes
	// acquisitions.
	Observed func(ctx context.Context, of hooks.Acquisition, tries bool) Observed
	// Campaign acquires a lock whose holder leads, or only tries, and returns the
	// context with which it was acquired. at is where.
	Campaign func(ctx context.Context, of lock.Spec, once bool, at callsite.Site) (context.Context, election.Hold, error)
	// EndedBy returns the error of the context that ended a call, if an error is that
	// call's and the context did; else nil.
	EndedBy func(error) error
}

// Observed is an acquisition that somebody observes. Its context is the one to go
// on with; one of the others says how it went.
type Observed interface {
	Context() context.Context
	Counted(handedOff bool, err error)
	Permits(ps []*permit.Permit, err error)
}

// Begin begins an acquisition of what has no Lock, and returns the context to go
// on with. tries says that it does not wait.
func (e *Engines) Begin(ctx context.Context, of hooks.Acquisition, tries bool) (context.Context, Acquisition) {
	if !e.Hooks.Acquisitions.Load() || ctx == nil {
		return ctx, Acquisition{}
	}
	by := e.Observed(ctx, of, tries)
	return by.Context(), Acquisition{by}
}

// An Acquisition has begun. One of its methods says how it went.
type Acquisition struct{ by Observed } // nil: nobody observes it

// Counted says how it went with what nobody holds.
func (a Acquisition) Counted(handedOff bool, err error) {
	if a.by != nil {
		a.by.Counted(handedOff, err)
	}
}

// Permits says how it went with permits that have leases.
func (a Acquisition) Permits(ps []*permit.Permit, err error) {
	if a.by != nil {
		a.by.Permits(ps, err)
	}
}

// Usable returns why a call about something with a name cannot go on: it has no
// context, the client is closed, or the name was refused. After Shutdown the
// engines refuse by themselves to acquire.
func (e *Engines) Usable(ctx context.Context, refused error) error {
	switch {
	case ctx == nil:
		return args.ErrNilContext
	case refused != nil:
		return refused
	case e.Server.Left():
		return request.ErrClosed
	}
	return nil
}

// UsableName is Usable for what shares something with its twin, and notes that the
// name is used: see nameclash.Names.Use.
func (e *Engines) UsableName(ctx context.Context, refused error, shared, name string) error {
	if err := e.Usable(ctx, refused); err != nil {
		return err
	}
	return e.Twins.Use(shared, name)
}

// HoldSite returns the call site of its caller's caller, if there is anybody to
// tell it to: to find it takes a good part of a hand-off's time.
func (e *Engines) HoldSite() callsite.Site {
	if !e.Hooks.Sites.Load() {
		return 0
	}
	return callsite.Caller(2)
}

// WaitSite returns the call site of its caller's caller, which may wait for
// something but will hold nothing of which somebody could be told.
func (e *Engines) WaitSite() callsite.Site {
	if !e.Sites {
		return 0
	}
	return callsite.Caller(2)
}

// A Lock is what a *redlatch.Lock is made of. If Err is set it cannot be used, and
// there may be nothing else.
type Lock struct {
	Self   any // the *redlatch.Lock
	Client *Engines
	Of     any // its *redlatch.Client
	Name   string
	Kind   string
	Spec   *lock.Spec // not to be changed
	Err    error
	// Members are those of several locks as one, in the order in which they are
	// acquired; nil: it is one lock. Several have neither Client nor Spec.
	Members []Lock
	Each    func(f func(i int) error) error // calls f for all members at the same time, and joins the errors
}

// A Root is how this package reaches what the root package does not export.
type Root struct {
	Client func(client any) *Engines // of a *redlatch.Client
	Lock   func(lock any) Lock       // of a *redlatch.Lock
	// NewLock returns the *redlatch.Lock of a spec that nobody has used yet, with the
	// options of its name: PlainOptions, LockOptions or HoldOptions; nil: none.
	NewLock func(client any, kind string, spec lock.Spec, opts any) any
	// NewHold returns the *redlatch.Hold of what an engine holds.
	NewHold func(in any) any
	// Wish adds up a name's options.
	Wish func(server *request.Server, opts any) (term.Wish, error)
}

var root Root

// Let sets the way. The root package calls it when the program begins, before any
// client exists.
func Let(way Root) struct{} {
	root = way
	return struct{}{}
}

// Open returns the engines of a *redlatch.Client.
func Open(client any) *Engines { return root.Client(client) }

// OpenLock returns what a *redlatch.Lock is made of.
func OpenLock(lock any) Lock { return root.Lock(lock) }

// NewLock is Root.NewLock.
func NewLock(client any, kind string, spec lock.Spec, opts any) any {
	return root.NewLock(client, kind, spec, opts)
}

// NewHold is Root.NewHold.
func NewHold(in any) any { return root.NewHold(in) }

// Wish is Root.Wish.
func Wish(server *request.Server, opts any) (term.Wish, error) { return root.Wish(server, opts) }
