package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
)

// A Lock is the name of an exclusive lock, with the words to acquire it. It is not
// an acquisition: it is immutable, cheap, holds no resources, and may be shared,
// copied and forgotten. In Redis it is Redisson's RLock: a hash with one field,
// the owner's, whose value is the hold count, and with the lease as its TTL.
// docs/guarantees.md says what it does not promise.
type Lock struct {
	c    *Client
	kind Kind // as it is shown
	spec lock.Spec

	several *several // it consists of others, and has only its kind; nil: it is one lock
	stripe  bool     // several keys may have it
}

// Lock returns the reentrant lock with this name, Redisson's getLock; with Fenced
// its getFencedLock, and with NonReentrant its getNonReentrantLock. A name that
// Redis could not handle (empty, or with unbalanced braces) is refused by every
// method of the Lock.
func (c *Client) Lock(name string, opts ...PlainOption) *Lock {
	l := newLock(c, KindLock, c.engines.Locks.Plain(c.engines.Server.Key(name)), opts)
	if l.spec.Wish.Fenced {
		l.kind = KindFenced
	}
	return l
}

// newLock wraps what the engine knows of a lock, which is wanted with these
// options.
func newLock[O PlainOption](c *Client, kind Kind, spec lock.Spec, opts []O) *Lock {
	l := &Lock{c: c, kind: kind, spec: spec}
	want(&l.spec, opts)
	return l
}

// Name returns the lock's name; of several locks their names, with commas between
// them.
func (l *Lock) Name() string {
	if l.several != nil {
		return l.several.name()
	}
	return l.spec.Name()
}

// Acquire waits for the lock and returns the hold. ctx bounds the waiting and
// nothing else: when it ends later, the hold stays. Goroutines of one process
// get the lock in the order in which they asked; between processes there is no
// order, but each gets its turn.
//
// If ctx descends from a live hold of this lock (Hold.Context, Hold.With, Do),
// the lock is re-entered: Redis shows one hold more, nobody queues, and of
// several that re-enter from the same hold one has its turn at a time.
//
// On failure nothing is held, and whatever was in flight is undone in the
// background. The error is
//   - a *BusyError if the lock could not be had in time, and then also ctx's
//     error, if ctx ended;
//   - ErrUnavailable if the server did not answer for Config.OutageTimeout, or
//     until the caller gave up;
//   - an *AckError if too few replicas acknowledged the acquisition (Config.Acks);
//   - ErrReentry if the wait could never have ended, or if the lock is
//     NonReentrant and the caller has it;
//   - ErrInvalid if the name or an option cannot be used;
//   - ErrClosed after Close or Shutdown;
//   - the *LostError, ErrNotHeld or ErrClosed that ended the hold from which ctx
//     descends;
//   - the error of a server that refuses: wrong password, no permission, a key of
//     another type.
//
// Of a MultiLock or a RedLock, a ctx that descends from a live hold of a member,
// or of them all, re-enters what it holds. The error is that of the member that
// could not be had; ErrReentry if two members turn out to be the same lock in
// Redis. Members are never handed off within the process: each acquisition asks
// the server.
func (l *Lock) Acquire(ctx context.Context) (*Hold, error) {
	_, hold, err := l.acquire(ctx, args.Patience{}, l.site())
	return hold, err
}

// TryAcquire does what Acquire does, and waits for the lock no longer than wait,
// as Redisson's tryLock does. A negative wait is ErrInvalid. With a wait of 0 it
// acquires the lock if that is possible at once. It never waits for another
// holder, in this process or elsewhere, and overtakes nobody: just after this
// process has released the lock, callers that wait for it go first. If the lock is
// taken (or a member of several, or so many that there is no majority), it returns
// a *BusyError with its holder, and changes nothing. If the server does not
// answer, such a call goes on for Config.OutageTimeout, or until ctx ends.
func (l *Lock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	_, hold, err := l.acquire(ctx, args.AtMost(wait), l.site())
	return hold, err
}

// acquire returns the hold, and the context with which it was acquired.
func (l *Lock) acquire(ctx context.Context, wait args.Patience, at callsite.Site) (context.Context, *Hold, error) {
	if ctx == nil {
		return nil, nil, args.ErrNilContext
	}
	p, err := params(wait, at)
	if l.several != nil {
		return l.several.acquire(ctx, l.kind, p, err)
	}
	var a *acquisition
	if l.c.report.hooks.Acquisitions.Load() {
		a = l.c.report.begin(ctx, hooks.Acquisition{Name: l.Name(), Kind: string(l.kind), Mode: l.spec.Mode()}, p.Try)
		ctx = a.ctx
	}
	var h *term.Hold
	var hold *Hold
	if err == nil {
		h, err = l.spec.Enter(ctx, p)
	}
	if err == nil {
		hold = newHold(h)
	} else {
		err = l.c.public(err)
	}
	if a != nil {
		a.hold(h, err)
	}
	return ctx, hold, err
}

// site returns the call site of its caller's caller, if there is anybody to tell
// it to.
func (l *Lock) site() callsite.Site {
	tells := false
	if l.several != nil {
		tells = l.several.sites()
	} else {
		tells = l.c.report.hooks.Sites.Load()
	}
	if !tells {
		return 0
	}
	return callsite.Caller(2)
}

// params are those of a call that waits no longer than wait, for the user's code
// at that place.
func params(wait args.Patience, at callsite.Site) (p term.Params, err error) {
	p.At = at
	p.Until, p.Try, err = wait.End()
	return p, err
}

// Do acquires the lock, calls f and releases the lock, also if f panics or calls
// runtime.Goexit. f's context is ctx together with the hold's end: see Hold.With.
// In f, HoldFrom returns the hold. A goroutine that f starts and does not wait for
// must not acquire the lock with that context, nor with context.WithoutCancel of
// it: see Hold.Context.
//
// Do returns f's error. If the hold was lost while f ran, ErrLost is joined to it
// once, even if f returned nil; if the client was closed, ErrClosed is. If the
// lock cannot be acquired, Do does not call f, and returns Acquire's error. A
// release that could not be confirmed is an event, and no error of Do: the work is
// done.
func (l *Lock) Do(ctx context.Context, f func(ctx context.Context) error) error {
	if f == nil {
		return args.ErrNilFunction
	}
	ctx, hold, err := l.acquire(ctx, args.Patience{}, l.site())
	if err != nil {
		return err
	}
	return lock.Do(ctx, hold, f)
}

// TryDo does what Do does, and waits for the lock no longer than wait, as
// TryAcquire does. It says whether it called f. If it did not, because the lock
// was busy, the error is a *BusyError, which says who has it.
func (l *Lock) TryDo(ctx context.Context, wait time.Duration, f func(ctx context.Context) error) (ran bool, err error) {
	if f == nil {
		return false, args.ErrNilFunction
	}
	ctx, hold, err := l.acquire(ctx, args.AtMost(wait), l.site())
	if err != nil {
		return false, err
	}
	return true, lock.Do(ctx, hold, f)
}

// openLock opens a Lock for the packages beside this one.
func openLock(l any) bridge.Lock {
	in, _ := l.(*Lock)
	switch {
	case in == nil:
		return bridge.Lock{Err: errNilLock}
	case in.several == nil:
		return bridge.Lock{Self: in, Client: &in.c.engines, Of: in.c, Name: in.Name(), Kind: string(in.kind), Spec: &in.spec}
	case in.several.err != nil:
		return bridge.Lock{Name: in.Name(), Kind: string(in.kind), Err: in.several.err}
	}
	all := bridge.Lock{Name: in.Name(), Kind: string(in.kind), Each: in.several.in.Each}
	for _, member := range in.several.members {
		all.Members = append(all.Members, openLock(member))
	}
	return all
}

var errNilLock = invalid.Errorf("redlatch: nil lock; make one, as with client.Lock(name)")
