// Package bridge lets the packages beside the root reach what a client is made of. The root package exports nothing for
// that: it hands the way in to this package, as grpc's does.
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
	"github.com/redlatch/redlatch/internal/permit"
	"github.com/redlatch/redlatch/internal/poll"
	"github.com/redlatch/redlatch/internal/ratequeue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/revoke"
	"github.com/redlatch/redlatch/internal/twins"
)

// Engines are what a client is made of.
type Engines struct {
	Identity census.Identity
	Sites    bool // callers that wait say where

	Server *request.Server
	Twins  *twins.Names

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
	// Observe has call acquire what nobody holds, and tells of it if anybody observes that. tries says that the call does
	// not wait.
	Observe func(ctx context.Context, of hooks.Acquisition, tries bool, call func(ctx context.Context) (handedOff bool, err error)) error
}

// Usable returns why a call about something with a name cannot go on: it has no context, the client is closed, or the name
// was refused. After Shutdown the engines refuse by themselves to acquire.
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

// HoldSite returns the call site of its caller's caller, if there is anybody to tell it to: to find it takes a good part of
// a hand-off's time.
func (e *Engines) HoldSite() callsite.Site {
	if !e.Hooks.Sites.Load() {
		return 0
	}
	return callsite.Caller(2)
}

// WaitSite returns the call site of its caller's caller, which may wait for something but will hold nothing of which
// somebody could be told.
func (e *Engines) WaitSite() callsite.Site {
	if !e.Sites {
		return 0
	}
	return callsite.Caller(2)
}

// A Root is how this package reaches what the root package does not export.
type Root struct {
	// Client returns the engines of a *redlatch.Client.
	Client func(client any) *Engines
	// Lock returns what a *redlatch.Lock is: its client, its kind, and its spec, which is not to be changed.
	Lock func(l any) (client any, kind string, spec *lock.Spec)
	// NewLock returns the *redlatch.Lock of a spec.
	NewLock func(client any, kind string, spec lock.Spec) any
	// Wish adds up a name's options: PlainOptions, LockOptions or HoldOptions.
	Wish func(opts any) (lock.Wish, error)
}

var root Root

// Open returns the engines of a *redlatch.Client.
func Open(client any) *Engines { return root.Client(client) }

// To returns the way to what else the root package does not export.
func To() *Root { return &root }

// Let sets the way. The root package calls it when the program begins, before any client exists.
func Let(way Root) struct{} {
	root = way
	return struct{}{}
}
