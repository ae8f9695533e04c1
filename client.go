package redlatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/barrier"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/election"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lastuser"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/nameclash"
	"github.com/redlatch/redlatch/internal/permit"
	"github.com/redlatch/redlatch/internal/poll"
	"github.com/redlatch/redlatch/internal/ratequeue"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/revoke"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Client is one participant: a process needs one for each Redis. Its methods
// are safe for concurrent use.
type Client struct {
	cfg     Config
	id      string
	report  reporter
	engines bridge.Engines // what the packages beside this one reach, too

	clock   *renew.Clock
	unseen  handoff.UnseenPauses
	dropped holdctx.Dropped

	closeOnce sync.Once
	closeErr  error
	stopBreak func()
	endDriver func(time.Duration) error
}

// New returns a client that keeps its locks in redis. It refuses, with ErrInvalid,
// a Config that does not fit together, or that does not fit the driver's
// time-outs. It does not wait for the server: one that cannot be reached shows at
// the first acquisition. A driver that is an [io.Closer] is closed by Close, of
// the last client if several share it, and cannot be used again. After an error it
// is the caller's to close.
func New(redis driver.Redis, cfg Config) (*Client, error) {
	if redis == nil {
		return nil, invalid.Errorf("redlatch: New needs a driver, such as redlatchgoredis.Use(rdb)")
	}
	logs := cfg.Logger != nil
	cfg, err := cfg.withDefaults(redis.Traits())
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, id: wire.NewClientID()}
	c.report.start(&cfg, logs)
	server, err := request.New(request.Options{
		Driver:         redis,
		Prefix:         cfg.Prefix,
		Outage:         cfg.OutageTimeout,
		Length:         cfg.WatchdogTimeout,
		Policy:         request.Policy(cfg.Acks),
		AckReplicas:    cfg.AckReplicas,
		AckTimeout:     cfg.AckTimeout,
		Sharded:        cfg.Redisson.PubSub == PubSubSharded || cfg.Redisson.PubSub == PubSubBoth,
		Classic:        cfg.Redisson.PubSub == PubSubClassic || cfg.Redisson.PubSub == PubSubBoth,
		Public:         c.public,
		Unacknowledged: c.report.notAcknowledged,
		RenewFailed:    c.report.renewFailed,
	})
	if err != nil {
		return nil, err
	}
	c.engines = bridge.Engines{
		Identity: census.Identity(cfg.Identity), Sites: cfg.CallSites,
		Server: server, Twins: &nameclash.Names{}, Elections: &election.Elections{Server: server},
		Hooks: &c.report.hooks, Observed: c.report.observed, Campaign: c.campaign, EndedBy: endedBy,
	}
	e := &c.engines
	c.unseen.Server = server
	c.clock = renew.NewClock(server.Go, c.dropped.GiveUp)
	server.Answered, server.Apart = c.clock.Answered, c.clock.Apart // each needs the other
	if server.Traits.Cluster {
		c.clock.Apart()
	}
	e.Locks = lock.New(term.Options{
		Server: server, Clock: c.clock, Unseen: &c.unseen, Dropped: &c.dropped, Twins: e.Twins,
		ID: c.id, ServerName: cfg.ServerName, Watchdog: cfg.WatchdogTimeout, MaxHold: cfg.MaxHold, SlowWait: cfg.SlowWait,
		HandOff: !cfg.NoHandOff,
		Agreed:  term.Agreed{Codec: cfg.Redisson.Codec, TokenTTL: cfg.TokenTTL, Allowance: args.Millis(cfg.Redisson.FairLockWaitTimeout), Skew: cfg.Redisson.MaxClockSkew},
		Events:  c.report.locks(c.meet, c.inquire, c.appears),
	})
	c.endDriver = lastuser.Begin(redis)
	c.stopBreak = redis.OnBreak(func(node string) {
		server.Broke(node)
		server.Acks.Forget(node)
		c.clock.Kick(node)
	})
	e.Rates = ratequeue.New(ratequeue.Options{Server: server, Skew: cfg.Redisson.MaxClockSkew})
	e.Polls = poll.New(server)
	e.Barriers = barrier.New(barrier.Options{
		Server: server, Polls: e.Polls, ID: c.id, NewID: e.Locks.NewID, Join: e.Locks.Join, Part: e.Locks.Part,
	})
	e.Semaphores = permit.New(permit.Options{
		Server: server, Client: c.id, Clock: c.clock, Dropped: &c.dropped, Unseen: &c.unseen,
		Local: !cfg.NoHandOff, MaxHold: cfg.MaxHold, Skew: cfg.Redisson.MaxClockSkew,
		Events: permit.Events{Lost: c.report.lost, ReleaseFailed: c.report.releaseFailed, Dropped: c.report.dropped},
	})
	e.Inspector = &inspect.Inspector{Server: server, ID: c.id}
	e.Control = revoke.New(e.Locks, func(text string) { e.Census.Hear(text) })
	e.Census = census.Start(census.Options{
		Server: server, Inspector: e.Inspector, ID: c.id, Identity: e.Identity, Sites: e.Sites, Claims: c.allClaims, Held: e.Locks.Held, Above: holdctx.OwnersAbove,
		PossibleDeadlock: c.report.possibleDeadlock,
	})
	return c, nil
}

var _ = bridge.Let(bridge.Root{
	Client: func(client any) *bridge.Engines { return &client.(*Client).engines },
	Lock:   openLock,
	NewLock: func(client any, kind string, spec lock.Spec, opts any) any {
		l := &Lock{c: client.(*Client), kind: Kind(kind), spec: spec} //nolint:forcetypeassert // as it says
		if opts != nil {
			l.spec.Want(anyWish(l.c.engines.Server, opts))
		}
		return l
	},
	NewHold: func(in any) any { return newHold(in.(held)) }, //nolint:forcetypeassert // as it says
	Wish:    anyWish,
})

// appears is called when the client makes its first owner id, by which others will
// find it in Redis: from now on they can ask who it is, and ask it to let go. A
// client that only looks writes nothing, and needs no right to.
func (c *Client) appears() {
	c.engines.Control.Listen()
	c.engines.Census.Note()
}

// campaign acquires the lock of an election, or only tries, and returns the
// context with which it was acquired.
func (c *Client) campaign(ctx context.Context, of lock.Spec, once bool, at callsite.Site) (context.Context, election.Hold, error) {
	l := &Lock{c: c, kind: KindFenced, spec: of}
	var wait args.Patience
	if once {
		wait = args.AtMost(0)
	}
	return l.acquire(ctx, wait, at)
}

// Healthy is for readiness, and not for liveness: in an outage, a restart gives up
// holds that would outlive it. It returns nil if the client can acquire and keep
// locks, as far as it can tell: the server may be full, or a replica.
//
// Else the error joins a sentence for each of these: the server has not answered
// one request before ctx ended, or in Config.OutageTimeout (ErrUnavailable), or it
// refuses that; renewals are late, by a sixth of a lease; it answers, and
// subscriptions have been missing for 3 seconds. Of a cluster one node is asked.
// It is ErrClosed once Close or Shutdown begins.
func (c *Client) Healthy(ctx context.Context) error {
	switch {
	case ctx == nil:
		return args.ErrNilContext
	case c.engines.Server.Closed():
		return ErrClosed
	}
	answer, subscriptions := request.Healthy(ctx, c.engines.Server)
	return errors.Join(answer, c.clock.Late(), subscriptions)
}

// ID returns the client's UUID, the first part of every owner field it writes.
func (c *Client) ID() string { return c.id }

// Shutdown ends the client as [net/http.Server.Shutdown] ends a server: it begins
// nothing new, and lets what has begun come to its end. So others get its locks as
// soon as the sections are done, and not after their TTL:
//   - Nothing is acquired any longer: callers that wait, or begin to wait, get
//     ErrClosed. So does a holder that wants another lock, or re-enters its own.
//   - Holds, permits and calls of Semaphore.Do go on: they are renewed, and their
//     contexts live. Release, Extend, and what gives back, counts or asks work as
//     before. But the term of a leader, which has no end, ends at once
//     (ErrClosed).
//   - When everything is released, and the server has confirmed that, the client
//     is closed, and Shutdown returns what Close does.
//   - If ctx ends before, the contexts of what is left end with ErrClosed as their
//     cause, and holders have Config.CloseTimeout more to release it. Meanwhile it
//     is still held, and Hold.Err stays nil. If that suffices, Shutdown returns
//     what Close does. Else it closes the client all the same, and returns ctx's
//     error, which says what was left: holds and permits to their TTL; permits of
//     Semaphore.Do may be lost.
//
// Shutdown does not wait for lost holds, permits of Semaphore.Acquire or detached
// permits. Close ends a running Shutdown. A section that itself calls Shutdown
// with a context that never ends waits for itself for ever.
//
// Shut an HTTP server down before the client: errors.Join(server.Shutdown(ctx),
// client.Shutdown(ctx)).
func (c *Client) Shutdown(ctx context.Context) error {
	if ctx == nil {
		return args.ErrNilContext
	}
	c.engines.Server.Stop()
	late := c.awaitReleases(ctx)
	if gaveUp, _ := request.GaveUp(late); !gaveUp {
		return c.Close()
	}
	c.engines.Server.Calm.End() // before the contexts: what is about to be held sees that its own has to end
	for _, h := range c.clock.Holders() {
		if h, ok := h.(interface{ EndContext() }); ok { // else the end of one hold of a term
			h.EndContext()
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.CloseTimeout)
	defer cancel()
	if gaveUp, _ := request.GaveUp(c.awaitReleases(last)); !gaveUp {
		return c.Close()
	}
	left, sections, owed := c.Stats(), c.engines.Semaphores.Sections(), c.engines.Server.Orphans.Owed()
	late = fmt.Errorf("redlatch: Shutdown: not released in time: %d holds and %d permits, left to their TTL, %d calls of Semaphore.Do, and %d releases that got no answer: %w", left.Holds, left.Permits, sections, owed, late)
	return errors.Join(late, c.Close())
}

// awaitReleases waits until nothing is held, and the releases are answered. It
// fails if ctx ends, or the client is closed.
func (c *Client) awaitReleases(ctx context.Context) error {
	for _, await := range []func(context.Context) error{c.engines.Locks.AwaitReleases, c.engines.Semaphores.AwaitReleases, c.engines.Server.Orphans.Settle} {
		if err := await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the client at once; Shutdown lets sections that hold something come
// to an end before. Callers that wait for a lock get ErrClosed: at once, or, if a
// caller is with the driver itself, when that returns. The contexts of live holds
// end with ErrClosed as their cause, and their locks are left to their TTL: Close
// never frees a lock under a running section. A holder that returns at once may
// just have time to release its lock. What an acquisition has got that fails with
// ErrClosed is released. Permits that Semaphore.Do has not given back may be lost.
// Then it waits for the requests that are in flight, and closes a driver that is
// an io.Closer and that no other client has, at most for Config.CloseTimeout. It
// returns an error if some had not ended by then; they end when the driver gives
// them up. Calling it again returns the same.
func (c *Client) Close() error {
	c.closeOnce.Do(func() {
		end := time.Now().Add(c.cfg.CloseTimeout)
		c.engines.Server.Leave()
		c.engines.Locks.Drain(time.Until(end))
		c.stopBreak()
		c.engines.Control.Stop()
		c.engines.Census.Stop()
		for _, h := range c.clock.Close() {
			if t, ok := h.(interface{ Close() }); ok { // else the end of one hold of a term
				t.Close()
			}
		}
		c.engines.Locks.Close()
		c.engines.Server.Calm.End()
		c.engines.Semaphores.Close()
		c.engines.Server.Orphans.Close()
		c.report.closeEnds(time.Until(end))
		c.report.queue.Close()
		if !c.engines.Server.End(time.Until(end)) {
			c.closeErr = errors.New("redlatch: Close: requests were still in flight after Config.CloseTimeout; what they take is left to its TTL")
		}
		c.closeErr = errors.Join(c.closeErr, c.endDriver(time.Until(end)))
	})
	return c.closeErr
}
