package redlatch

import (
	"context"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/revoke"
)

// A Lock is the name of an exclusive lock, with the words to acquire it. It is
// not an acquisition: it is immutable, cheap, holds no resources, and may be
// shared, copied and forgotten.
//
// In Redis it is Redisson's RLock: a hash with one field, the owner's, whose
// value is the hold count, and with the lease as its TTL.
//
// What it does not promise stands in docs/guarantees.md; in short: a lease can
// end while its holder is paused, and Redis can forget a lock in a failover or
// a restart. The holder is told, but only fencing protects a resource.
type Lock struct {
	c    *Client
	kind string // for Info
	spec lock.Spec
}

// Lock returns the reentrant lock with this name, Redisson's getLock. A name
// that Redis could not handle (empty, or with unbalanced braces) is refused by
// every method of the Lock.
func (c *Client) Lock(name string) *Lock {
	return c.lock(KindLock, c.locks.Plain(c.server.Key(name)))
}

// lock wraps what the engine knows of a lock.
func (c *Client) lock(kind string, spec lock.Spec) *Lock {
	return &Lock{c: c, kind: kind, spec: spec}
}

// NonReentrantLock returns the lock with this name, Redisson's
// getNonReentrantLock. It is the same lock in Redis as Lock's, but whoever has
// it already gets ErrReentry instead of entering once more.
func (c *Client) NonReentrantLock(name string) *Lock {
	l := c.locks.Plain(c.server.Key(name))
	return c.lock(KindLock, l.NonReentrant())
}

// Name returns the lock's name.
func (l *Lock) Name() string { return l.spec.Name() }

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
// background. The error is a *BusyError if the lock could not be had in time
// (and then also ctx's error, if ctx ended), ErrUnavailable if the server did
// not answer for Config.OutageTimeout or until the caller gave up, an *AckError if too few replicas
// acknowledged it (Config.Acks), ErrReentry if the wait could never have
// ended, ErrInvalid if the name or an option cannot be used, ErrClosed after Close or Shutdown, the *LostError, ErrNotHeld or ErrClosed that
// ended the hold which ctx descends from, or the error with which the server refused:
// wrong password, no permission, a key of another type.
func (l *Lock) Acquire(ctx context.Context, opts ...Option) (*Hold, error) {
	_, hold, err := l.acquire(ctx, opts, false, l.c.callSite(1))
	return hold, err
}

// Try acquires the lock if that is possible at once: it never waits for
// another holder, in this process or elsewhere, and overtakes nobody: just after this
// process has released the lock, others that wait for it go first. If the
// lock is taken it returns a *BusyError that says by whom, and changes nothing.
// It refuses the option Wait. A server that does not answer is asked for Config.OutageTimeout,
// unless ctx ends before.
func (l *Lock) Try(ctx context.Context, opts ...Option) (*Hold, error) {
	_, hold, err := l.acquire(ctx, opts, true, l.c.callSite(1))
	return hold, err
}

// acquire returns the hold, and the context with which it was acquired.
func (l *Lock) acquire(ctx context.Context, opts []Option, once bool, at callsite.Site) (context.Context, *Hold, error) {
	if ctx == nil {
		return nil, nil, errNilContext
	}
	p, err := lockParams(opts, once, &ofLocks, at)
	var a *acquisition
	if l.c.report.observes {
		a = l.c.report.begin(ctx, AcquireStartEvent{Name: l.Name(), Kind: l.kind, Mode: l.spec.Mode()}, p.Try)
		ctx = a.ctx
	}
	var h *lock.Hold
	var hold *Hold
	if err == nil {
		h, err = l.spec.Enter(ctx, p)
	}
	if err == nil {
		hold = newHold(h)
	}
	if a != nil {
		a.hold(h, err)
	}
	return ctx, hold, err
}

// callSite returns the call site skip frames above its caller, if there is
// anybody to tell it to: to find it takes a good part of a hand-off's time.
func (c *Client) callSite(skip int) callsite.Site {
	if !c.sites {
		return 0
	}
	return callsite.Caller(skip + 1)
}

// waitSite returns the call site of its caller's caller, which may wait for something but will hold nothing of which
// somebody could be told.
func (c *Client) waitSite() callsite.Site {
	if !c.cfg.TellSites {
		return 0
	}
	return callsite.Caller(2)
}

// Do acquires the lock, calls f and releases the lock, also if f panics or
// calls runtime.Goexit. f's context is ctx together with the hold's end: see
// Hold.With.
//
// Do returns f's error; if the hold was lost while f ran, ErrLost is joined to
// it once, or ErrClosed if the client was closed, even if f returned nil. If the lock
// cannot be acquired, f is not called, and the error is Acquire's, and ErrNotRun. A release
// that could not be confirmed is reported as an event and is no error of Do: the work
// is done. HoldFrom returns the hold, in f.
func (l *Lock) Do(ctx context.Context, f func(ctx context.Context) error, opts ...Option) error {
	if f == nil {
		return lock.NotRun(errNilFunction)
	}
	ctx, hold, err := l.acquire(ctx, opts, false, l.c.callSite(1))
	if err != nil {
		return lock.NotRun(err)
	}
	return lock.Do(ctx, hold, f)
}

// ForceRelease releases the lock whoever holds it, and returns whether anybody
// held it. If the holder is a redlatch client it is asked to let go first: its
// hold is lost with reason LostRevoked, and its context has ended before the
// lock is given away, unless it does not answer within a second. A Redisson
// holder is not told by Redisson.
//
// Only the owner that ForceRelease found is dispossessed: if somebody else gets
// the lock meanwhile, that hold stays. Of a group lock the values are released;
// a redlatch client that holds one of them loses all that it has acquired with it.
func (l *Lock) ForceRelease(ctx context.Context) (bool, error) {
	all, err := l.stored(ctx)
	if err != nil {
		return false, err
	}
	holders := make([]revoke.Holder, len(all.Holders))
	for i, h := range all.Holders {
		holders[i] = revoke.Holder{Client: h.Client, Owner: h.Owner, Mode: h.Mode, Value: h.Value, Redlatch: h.Redlatch}
	}
	return l.c.control.Release(ctx, &l.spec, holders)
}
