package redlatch

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
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
	c            *Client
	name         string
	kind         *kind
	channel      string   // where its release is told; empty: nowhere
	keys         []string // of its scripts
	fencedKeys   []string // of those of an acquisition that is to have a token
	fenced       bool     // every acquisition is
	backoff      Backoff  // how to wait for it; nil: by messages
	held         any      // heldKey(name), converted once
	nonReentrant bool
	side         side     // of a read-write lock
	writers      string   // key of those who wait to write and have precedence
	group        *group   // of a group lock
	more         []string // arguments that every script of this lock gets behind its own; nil: none
	err          error    // a name that cannot be used
}

// Lock returns the reentrant lock with this name, Redisson's getLock. A name
// that Redis could not handle (empty, or with unbalanced braces) is refused by
// every method of the Lock.
func (c *Client) Lock(name string) *Lock {
	l := &Lock{
		c: c, name: name, kind: plainLock, channel: wire.Prefix(wire.LockChannel, name),
		keys: []string{name}, fencedKeys: []string{name, wire.Prefix(wire.LockToken, name)}, held: heldKey(name),
	}
	l.err = checkName(name)
	return l
}

// NonReentrantLock returns the lock with this name, Redisson's
// getNonReentrantLock. It is the same lock in Redis as Lock's, but whoever has
// it already gets ErrReentry instead of entering once more.
func (c *Client) NonReentrantLock(name string) *Lock {
	l := c.Lock(name)
	l.nonReentrant = true
	return l
}

// Name returns the lock's name.
func (l *Lock) Name() string { return l.name }

// Acquire waits for the lock and returns the hold. ctx bounds the waiting and
// nothing else: when it ends later, the hold stays. Goroutines of one process
// get the lock in the order in which they asked; between processes there is no
// order, but each gets its turn.
//
// If ctx descends from a live hold of this lock (Hold.Context, Hold.With, Do),
// the lock is re-entered: Redis shows one hold more, nobody queues, and of
// several that re-enter from the same hold one has its turn at a time.
//
// On failure nothing is held, and whatever was under way is undone in the
// background. The error is a *BusyError if the lock could not be had in time
// (and then also ctx's error, if ctx ended), ErrUnavailable if the server did
// not answer for Config.OutageTimeout, an *AckError if too few replicas
// acknowledged it (Config.Acks), ErrReentry if the wait could never have
// ended, ErrClosed after Close, the *LostError, ErrNotHeld or ErrClosed that
// ended the hold which ctx descends from, or the error with which the server refused:
// wrong password, no permission, a key of another type.
func (l *Lock) Acquire(ctx context.Context, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, opts, false)
}

// Try acquires the lock if that is possible at once: it never waits for
// another holder, in this process or elsewhere, and overtakes nobody: just after this
// process has released the lock, others that wait for it go first. If the
// lock is taken it returns a *BusyError that says by whom, and changes nothing.
// It refuses the option Wait.
func (l *Lock) Try(ctx context.Context, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, opts, true)
}

func (l *Lock) acquire(ctx context.Context, opts []Option, once bool) (*Hold, error) {
	h, err := l.enter(ctx, opts, once)
	if err != nil {
		return nil, err
	}
	return l.c.newHoldFor(h), nil
}

var errFencedRead = errors.New("redlatch: Fenced is for holds that exclude others; readers share the lock, and a token could tell none of them from the others")

// enter acquires or re-enters the lock.
func (l *Lock) enter(ctx context.Context, opts []Option, once bool) (*hold, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	if l.err != nil {
		return nil, l.err
	}
	o, err := collect(opts, once)
	if err != nil {
		return nil, err
	}
	o.skip = 2
	o.fenced = o.fenced || l.fenced
	if o.fenced && l.side == reading {
		return nil, errFencedRead
	}
	if err := l.c.open(); err != nil {
		return nil, err
	}
	if shared := l.sharedWithTwin(); shared != "" {
		if err := l.c.twins.use(shared, l.name); err != nil {
			return nil, err
		}
	}
	outer, sc, err := l.enclosing(ctx)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, &BusyError{Name: l.name, Cause: request.ContextError(ctx)}
	case sc != nil:
		return l.c.enterScope(ctx, l, sc, &o, outer)
	case outer != nil:
		return l.c.nest(ctx, l, outer, &o)
	}
	return l.c.acquire(ctx, l, &o)
}

// Do acquires the lock, calls f and releases the lock, also if f panics or
// calls runtime.Goexit. f's context is ctx together with the hold's end: see
// Hold.With.
//
// Do returns f's error; if the hold was lost while f ran, ErrLost is joined to
// it, or ErrClosed if the client was closed, even if f returned nil. If the lock
// cannot be acquired, f is not called and the error is Acquire's. A release that
// could not be confirmed is reported as an event and is no error of Do: the work
// is done.
func (l *Lock) Do(ctx context.Context, f func(ctx context.Context) error, opts ...Option) error {
	hold, err := l.acquire(ctx, opts, false)
	if err != nil {
		return err
	}
	return doUnder(ctx, hold, f)
}

// doUnder is Do, once there is a hold.
func doUnder(ctx context.Context, hold interface {
	With(ctx context.Context) context.Context
	Release(ctx context.Context) error
}, f func(ctx context.Context) error,
) (err error) {
	defer func() {
		if end := hold.Release(ctx); errors.Is(end, ErrLost) || errors.Is(end, ErrClosed) {
			err = errors.Join(err, end)
		}
	}()
	return f(hold.With(ctx))
}

// take asks for the lock. It returns "" if it is the tenure's now, else who
// has it and for how long. On failure it leaves the gate once it is known that
// the lock was not taken, or has been released.
func (t *tenure) take(ctx context.Context, until time.Time) (owner string, ttl time.Duration, err error) {
	o := t.op(t.lock.kind.take, t.args[:2])
	facts, err := t.ask(ctx, &o, until, 2)
	if err != nil || facts == nil {
		return "", 0, err
	}
	return facts[1].Str, wire.FromMillis(facts[0].Int), nil
}

// ask is take with a request that was prepared, and returns what the server
// says, so many facts, if it does not give the lock.
func (t *tenure) ask(ctx context.Context, o *request.Call, until time.Time, n int) ([]driver.Reply, error) {
	o.Stop, o.Until, o.Acks = t.c.server.Done, until, t.c.server.Acks.Holds
	t.fence(o)
	reply, err := o.Run(ctx)
	if short := o.Doubt(err == nil && reply.Kind == driver.ReplyInt); short != nil {
		o.Unknown, err = true, short // the server has it, and may forget it
	}
	if o.Uncertain(err) {
		t.suspected()
	}
	if err != nil {
		t.abandon(o)
		return nil, err
	}
	if reply.Kind == driver.ReplyInt {
		t.taken(o.Sent, reply.Int)
		return nil, nil
	}
	if len(reply.List) != n {
		t.abandon(o)
		return nil, request.Unexpected(reply, o.Script)
	}
	return reply.List, nil
}

// abandon leaves the gate for a caller whose take has failed. If a request is
// under way its outcome is waited for first: a release sent now could overtake
// it. Should it succeed, the next goroutine of this process inherits the lock.
func (t *tenure) abandon(o *request.Call) {
	if o.Pending == nil {
		t.forgo()
		t.c.leave(t.line)
		return
	}
	pending := *o
	t.c.server.Go(func() {
		reply, err := pending.Outcome()
		short := pending.Doubt(err == nil && reply.Kind == driver.ReplyInt)
		if pending.Uncertain(err) || short != nil {
			t.suspected()
		}
		if err != nil || reply.Kind != driver.ReplyInt || short != nil {
			t.forgo()
			t.c.leave(t.line)
			return
		}
		t.taken(pending.Sent, reply.Int)
		t.passOn()
	})
}

// passOn gives a taken tenure that nobody wants any more to the next goroutine
// of this process, or releases it.
func (t *tenure) passOn() {
	if t.arrive() {
		_ = t.finish(context.Background())
		return
	}
	t.forgo()
	t.c.leave(t.line)
}

// trusted says whether a tenure that was just taken may be given to a holder.
// One with less than half of its watchdog lease left is renewed first.
func (t *tenure) trusted(ctx context.Context, until, now time.Time) bool {
	left := t.lease.Left(now)
	if left > t.length/2 || (left > 0 && !t.watch) {
		return true
	}
	if left <= 0 {
		return false
	}
	o := t.op(t.lock.kind.renew, []string{t.id, t.args[0], unchanged})
	o.Stop, o.Until = t.c.server.Done, until
	reply, err := o.Run(ctx)
	if err != nil || o.Short != nil || first(reply).Int != 1 || t.lease.Left(time.Now()) <= 0 {
		return false
	}
	t.confirm(o.Sent, t.length)
	return t.lease.Left(time.Now()) > 0
}

// renewLocks renews a batch of leases with one script, each with a result of
// its own.
func (c *Client) renewLocks(s *script.Script, batch []*renew.Lease) {
	keys := make([]string, 0, len(batch))
	args := make([]string, 0, 3*len(batch))
	counts := make([]string, len(batch))
	bound, now := c.cfg.WatchdogTimeout, time.Now()
	prolongs := false
	for i, l := range batch {
		t := l.Holder.(*tenure) //nolint:forcetypeassert // this kind's holders are tenures
		if l.Ask > 0 {
			prolongs = true
			bound = min(bound, 3*l.Left(now)) // there must be time for another attempt
		}
		t.mu.Lock()
		if t.state == tenureLive {
			counts[i] = t.showLocked()
			keys = append(keys, t.lock.name)
			args = append(append(args, t.id, wire.Millis(l.Ask), counts[i]), t.lock.more...)
		}
		t.mu.Unlock()
	}
	if len(keys) == 0 {
		return
	}
	o := request.Call{Server: c.server, Script: s, Keys: keys, Args: args, Lease: bound, Stop: c.server.Over, Single: true, Acks: c.server.Acks.Renews && prolongs}
	reply, err := o.Run(context.Background())
	if err == nil && len(reply.List) != len(keys) {
		err = request.Unexpected(reply, o.Script)
	}
	if err != nil {
		c.report.renewFailed(len(keys), err)
	}
	short, n := err == nil && o.DoubtRenewals(len(keys)), 0
	for i, l := range batch {
		if counts[i] == "" {
			continue
		}
		t := l.Holder.(*tenure) //nolint:forcetypeassert // as above
		if err == nil {
			l.Result = t.renewal(reply.List[n])
		}
		t.shown(counts[i])
		if short && l.Ask > 0 && l.Result == renew.Confirmed {
			l.Result = renew.Failed
		}
		n++
	}
}

// renewal judges the server's answer.
func (t *tenure) renewal(r driver.Reply) renew.Result {
	if r.Kind == driver.ReplyInt && r.Int == 1 {
		return renew.Confirmed
	}
	if r.Kind != driver.ReplyInt && !wrongType(r.Str) {
		t.c.report.renewFailed(1, errors.New(wire.Text(r.Str)))
		return renew.Failed
	}
	return renew.Gone
}

// wrongType says whether an error that a key raised means that the lock is
// gone: somebody has put something else in its place.
func wrongType(text string) bool { return driver.ServerError(text, nil).Code == "WRONGTYPE" }

func wireClient(owner string) string {
	id, _ := wire.ClientOf(owner)
	return id
}
