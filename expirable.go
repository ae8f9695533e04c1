package redlatch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/twins"
	"github.com/redlatch/redlatch/internal/wire"
)

// An ExpirableSemaphore is the name of a semaphore whose permits have ids and
// leases: a permit whose holder is gone comes back by itself. Like a Lock it is
// immutable, cheap and holds no resources.
//
// In Redis it is Redisson's RPermitExpirableSemaphore: a number of free permits,
// and a sorted set of the ids of the others with the times until which they are
// given. Those are written and read by the server's clock here, and by their own
// by Redisson clients: see Config.MaxClockSkew, by which redlatch writes them
// later than it trusts them. So a permit whose holder has crashed comes back that
// much later than its lease says.
//
// It has to be given its permits before it can be used, once, by TrySetPermits;
// until then Acquire fails with ErrUninitialized, or waits with the option UntilSet.
//
// Goroutines of one process get permits in the order in which they asked,
// however many each wants; between processes there is no order. A permit never
// passes from one goroutine to another without Redis.
type ExpirableSemaphore struct {
	c       *Client
	name    string
	channel string
	keys    []string // of how many permits are free, and of those that are given
	err     error    // a name that cannot be used
}

// ExpirableSemaphore returns the semaphore with this name, Redisson's
// getPermitExpirableSemaphore. A name that Redis could not handle is refused by
// every method; so is "{x}" if this client has used "x", and the reverse: these share
// the times of their permits, as in Redisson.
func (c *Client) ExpirableSemaphore(name string) *ExpirableSemaphore {
	s := &ExpirableSemaphore{
		c: c, name: name, channel: wire.Prefix(wire.SemaphoreChannel, name),
		keys: []string{name, wire.Suffix(name, wire.PermitTimeout)},
	}
	s.err = checkName(name)
	return s
}

// Name returns the semaphore's name.
func (s *ExpirableSemaphore) Name() string { return s.name }

// Acquire waits for a permit. ctx bounds the waiting and nothing else.
//
// Without the option Lease the watchdog keeps the permit for as long as the
// process lives, and it is free again within Config.WatchdogTimeout plus
// Config.MaxClockSkew after a crash.
//
// On failure nothing is held, and whatever was under way is undone in the
// background. The error is a *BusyError if there was no permit in time (and then
// also ctx's error, if ctx ended), ErrUninitialized if the semaphore has never
// been given permits, ErrUnavailable if the server did not answer for
// Config.OutageTimeout, an *AckError if too few replicas acknowledged it, ErrClosed
// after Close, or the error with which the server refused.
func (s *ExpirableSemaphore) Acquire(ctx context.Context, opts ...Option) (*Permit, error) {
	return one(s.acquire(ctx, 1, opts, false))
}

// AcquireMany waits for n permits at once: it gets all of them or none. See
// Acquire. If there are never n permits in all, it waits for its context's end.
func (s *ExpirableSemaphore) AcquireMany(ctx context.Context, n int, opts ...Option) ([]*Permit, error) {
	return s.acquire(ctx, n, opts, false)
}

// Try acquires a permit if there is one at once, and overtakes nobody of this
// process who waits for one; else it returns a *BusyError and changes nothing. It
// refuses the option Wait.
func (s *ExpirableSemaphore) Try(ctx context.Context, opts ...Option) (*Permit, error) {
	return one(s.acquire(ctx, 1, opts, true))
}

// TryMany acquires n permits if that is possible at once: see Try.
func (s *ExpirableSemaphore) TryMany(ctx context.Context, n int, opts ...Option) ([]*Permit, error) {
	return s.acquire(ctx, n, opts, true)
}

func one(ps []*Permit, err error) (*Permit, error) {
	if err != nil {
		return nil, err
	}
	return ps[0], nil
}

// mostPermits is how many permits one request may be about: a script that takes
// long keeps the server from everybody else.
const mostPermits = 10_000

func (s *ExpirableSemaphore) acquire(ctx context.Context, n int, opts []Option, once bool) ([]*Permit, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	o, err := collectAny(opts, once)
	switch {
	case err != nil:
		return nil, err
	case o.fenced:
		return nil, errors.New("redlatch: Fenced is for locks; several have permits at a time, and a token could tell none of them from the others")
	case n < 1 || n > mostPermits:
		return nil, fmt.Errorf("redlatch: %d permits cannot be acquired at once; ask for 1 to %d", n, mostPermits)
	case ctx.Err() != nil:
		return nil, &BusyError{Name: s.name, Cause: request.ContextError(ctx), what: noPermit}
	}
	start := time.Now()
	p, until := BusyError{Name: s.name, what: noPermit}, o.until()
	at := s.c.callSite(2)
	var late request.Lateness
	for {
		a := &asker{ctx: ctx, ids: newPermitIDs(n), length: s.c.cfg.WatchdogTimeout, once: o.once, untilSet: o.untilSet, at: at, since: time.Now(), done: make(chan struct{})}
		if o.hasLease {
			a.length = o.lease
		}
		if err := s.c.desks.wait(ctx, s, a, until, &p.TTL); err != nil {
			return nil, asBusy(err, p)
		}
		ps := s.begin(a, &o, start)
		if err := s.c.open(); err != nil {
			// Nobody works under these permits yet, so they need not wait for the
			// end of their lease.
			for _, p := range ps {
				p.cleanup.Stop()
				p.in.end(err)
			}
			s.drop(a.ids, a.suspect)
			return nil, err
		}
		if ps != nil {
			return ps, nil
		}
		s.drop(a.ids, a.suspect) // the reply came too late to trust it
		if err := late.Again(ctx, s.c.server, o.once, until); err != nil {
			return nil, asBusy(err, p)
		}
	}
}

// begin makes the permits that a caller was given live, all of them or none.
func (s *ExpirableSemaphore) begin(a *asker, o *options, start time.Time) []*Permit {
	now := time.Now()
	ps := make([]*Permit, len(a.ids))
	for i, id := range a.ids {
		p := newPermit(a.ctx, s, a, id, o, now)
		if p.lease.Left(now) <= 0 || !p.begin() {
			for _, earlier := range ps[:i] {
				earlier.cleanup.Stop()
				earlier.in.end(holdctx.ErrReleased)
			}
			return nil
		}
		ps[i] = &Permit{in: p}
		ps[i].cleanup = runtime.AddCleanup(ps[i], (*permit).dropped, p)
	}
	if f := s.c.report.events.Acquired; f != nil {
		for _, p := range ps {
			f(AcquiredEvent{Name: s.name, Owner: p.ID(), Waited: now.Sub(start), Count: 1})
		}
	}
	return ps
}

// newPermitIDs returns ids as they stand in Redis. None is ever used again.
func newPermitIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		var id [16]byte
		_, _ = rand.Read(id[:]) // never fails
		ids[i] = string(id[:])
	}
	return ids
}

// usable says what is wrong with a call that uses ctx.
func (s *ExpirableSemaphore) usable(ctx context.Context) error {
	if err := s.c.usable(ctx, s.err); err != nil {
		return err
	}
	return s.c.twins.Use(twins.Permits, s.name)
}

// TrySetPermits gives the semaphore n permits, if it has not been given any
// before, and says whether it did.
func (s *ExpirableSemaphore) TrySetPermits(ctx context.Context, n int) (bool, error) {
	if n < 0 {
		return false, errNegativePermits
	}
	set, err := s.setting(ctx, lua.ExpirableTrySet, s.keys[:1], n)
	return set == 1, err
}

// SetPermits sets how many permits there are in all, those included that are
// given. If more are given than that, the next ones that come back are not given
// again.
func (s *ExpirableSemaphore) SetPermits(ctx context.Context, n int) error {
	if n < 0 {
		return errNegativePermits
	}
	_, err := s.setting(ctx, lua.ExpirableSet, s.keys, n)
	return err
}

// AddPermits adds n permits, or takes -n away if n is negative; then less than
// none may be free for a time.
func (s *ExpirableSemaphore) AddPermits(ctx context.Context, n int) error {
	_, err := s.setting(ctx, lua.ExpirableAdd, s.keys[:1], n)
	return err
}

var errNegativePermits = errors.New("redlatch: a semaphore cannot have less than no permits; AddPermits takes some away")

// mostSet is what Redisson can read.
const mostSet = 1<<31 - 1

// setting runs one of the scripts that set the number of permits. It does so
// once, whatever replies are lost.
func (s *ExpirableSemaphore) setting(ctx context.Context, sc *script.Script, keys []string, n int) (int64, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if n > mostSet || n < -mostSet {
		return 0, fmt.Errorf("redlatch: %d permits are more than Redisson can count; use at most %d", n, mostSet)
	}
	return s.session(ctx, sc, keys, s.channel, strconv.Itoa(n))
}

// session runs a script that counts.
func (s *ExpirableSemaphore) session(ctx context.Context, sc *script.Script, keys []string, args ...string) (int64, error) {
	session, put := s.c.server.Sessions.Get(wire.Session(s.name, s.c.id, "permits"))
	defer put()
	return session.Do(ctx, request.Count{Script: sc, Keys: keys, Args: args, Acks: true})
}

// Delete deletes the semaphore, and says whether there was one. Its permits are
// gone with it; their holders learn that with their next renewal, those of this
// client at once. Who waits fails with ErrUninitialized, or goes on waiting with the
// option UntilSet.
func (s *ExpirableSemaphore) Delete(ctx context.Context) (bool, error) {
	if err := s.usable(ctx); err != nil {
		return false, err
	}
	deleted, err := s.session(ctx, lua.ExpirableDelete, s.keys)
	for _, p := range s.c.permits.of(s.name) {
		s.c.clock.Check(&p.lease)
	}
	return deleted == 1, err
}

// Available returns how many permits are free. It is less than 0 if permits were
// taken away that are given.
func (s *ExpirableSemaphore) Available(ctx context.Context) (int, error) {
	free, _, err := s.count(ctx)
	return free, err
}

// Acquired returns how many permits are given.
func (s *ExpirableSemaphore) Acquired(ctx context.Context) (int, error) {
	_, given, err := s.count(ctx)
	return given, err
}

// Permits returns how many permits there are in all; 0 if it has never been given
// any.
func (s *ExpirableSemaphore) Permits(ctx context.Context) (int, error) {
	free, given, err := s.count(ctx)
	return free + given, err
}

func (s *ExpirableSemaphore) count(ctx context.Context) (free, given int, err error) {
	if err := s.usable(ctx); err != nil {
		return 0, 0, err
	}
	o := s.c.question(lua.ExpirableCount, s.keys...)
	o.Args = []string{s.channel}
	reply, err := o.Run(ctx)
	if err != nil {
		return 0, 0, err
	}
	if len(reply.List) != 2 {
		return 0, 0, request.Unexpected(reply, lua.ExpirableCount)
	}
	return int(reply.List[0].Int), int(reply.List[1].Int), nil
}

// releaseOp prepares the release of ids that are ours.
func (s *ExpirableSemaphore) releaseOp(ids []string) request.Call {
	args := append([]string{s.channel, "0"}, ids...)
	return request.Call{Server: s.c.server, Script: lua.ExpirableRelease, Keys: s.keys, Args: args, Lease: s.c.cfg.WatchdogTimeout, Stop: s.c.server.Over}
}

// drop releases ids that nobody has, or will have, in the background; owes says
// that a late request may still create them.
func (s *ExpirableSemaphore) drop(ids []string, owes bool) {
	s.c.server.Go(func() {
		o := s.releaseOp(ids)
		if _, err := o.Run(context.Background()); err != nil || owes {
			s.owe(ids)
		}
	})
}

// owe has ids released again and again, for longer than any request can be under
// way.
func (s *ExpirableSemaphore) owe(ids []string) {
	s.c.server.Orphans.Add(ids[0], func() {
		o := s.releaseOp(ids)
		o.Single = true
		_, _ = o.Run(context.Background())
	})
}
