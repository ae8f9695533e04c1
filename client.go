package redlatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/internal/worker"
)

// A Client is one participant: a process needs one for each Redis. Its methods
// are safe for concurrent use.
type Client struct {
	redis      Redis
	traits     Traits
	cfg        Config
	id         string
	watchdogMs string
	seq        atomic.Uint64 // of tenures
	sites      bool          // whether call sites are of use
	report     reporter

	pool        *worker.Pool
	aftermath   *worker.Queue // of losses: what has to be done when the contexts have ended
	lapsed      lapsed
	clock       *renew.Clock
	kind        *renew.Kind // how locks are renewed,
	rwKind      *renew.Kind // and read-write locks,
	groups      *renew.Kind // and values of groups
	permitKind  *renew.Kind // and permits
	permits     permits
	permitLines permitLines
	desks       desks
	lines       lines
	blind       blind
	debts       debts
	control     control
	pubsub      pubsub
	acks        acks
	sessions    sessions
	rates       rateQueues
	watches     watches
	twins       twins
	leavers     gathers[leaver]    // of barriers
	givers      gathers[*giveBack] // of permits by their ids
	senders     *senders
	attempts    sync.Pool // of *attempt
	batches     sync.Pool // of *batch
	waiters     sync.Pool // of *waiter

	droppedMu sync.Mutex // guards dropped
	dropped   []func()   // give up holds that were garbage collected without having been released

	done      chan struct{} // closed when Close begins: nobody waits any longer
	over      chan struct{} // closed when Close ends: nothing is settled any longer
	closeOnce sync.Once
	closeErr  error
	stopBreak func()
}

// idleWorkers is how many goroutines a client keeps for requests to come.
const idleWorkers = 64

// New returns a client that keeps its locks in redis. It refuses a Config that
// does not fit together, or that does not fit the driver's time-outs. It does
// not wait for the server: one that cannot be reached shows at the first
// acquisition.
//
// The driver stays the caller's: Close does not close it.
func New(redis Redis, cfg Config) (*Client, error) {
	if redis == nil {
		return nil, errors.New("redlatch: New needs a driver, such as goredis.Use(rdb)")
	}
	e := cfg.Events
	sites := cfg.Logger != nil || e.Lost != nil || e.SlowWait != nil || e.Dropped != nil
	traits := redis.Traits()
	cfg, err := cfg.withDefaults(traits)
	if err != nil {
		return nil, err
	}
	c := &Client{
		redis: redis, traits: traits, cfg: cfg,
		sites: sites, id: wire.NewClientID(), watchdogMs: millis(cfg.WatchdogTimeout),
		pool: worker.New(idleWorkers),
		done: make(chan struct{}),
		over: make(chan struct{}),
	}
	c.aftermath = worker.NewQueue(0, nil)
	c.report.start(cfg.Logger, cfg.Events)
	c.pubsub.start(cfg.PubSub, traits.Cluster)
	if err := c.acks.start(c); err != nil {
		return nil, err
	}
	c.senders = newSenders(c)
	c.clock = renew.NewClock(c.settle, c.collectDropped)
	c.kind = &renew.Kind{Renew: func(batch []*renew.Lease) { c.renewLocks(plainLock.renew, batch) }}
	c.rwKind = &renew.Kind{Renew: func(batch []*renew.Lease) { c.renewLocks(readWriteRenew, batch) }}
	c.groups = &renew.Kind{Renew: func(batch []*renew.Lease) { c.renewLocks(groupLock.renew, batch) }}
	c.permitKind = &renew.Kind{Renew: c.renewPermits}
	c.lines = lines{c: c, m: make(map[lineKey]*line)}
	c.lines.places = newPlaces()
	c.debts = debts{c: c, timers: make(map[*time.Timer]debt)}
	c.stopBreak = redis.OnBreak(func(lane string) {
		c.acks.forget(lane)
		c.clock.Kick(lane)
	})
	c.sessions.c = c
	c.rates.c = c
	c.watches = watches{c: c, m: make(map[string]*watch)}
	c.control.start(c)
	return c, nil
}

// ID returns the client's UUID, the first part of every owner field it writes.
func (c *Client) ID() string { return c.id }

func (c *Client) nextID() string { return wire.Owner(c.id, c.seq.Add(1)) }

// usable says whether a call about something with a name can go on; refused is
// what is wrong with that.
func (c *Client) usable(ctx context.Context, refused error) error {
	switch {
	case ctx == nil:
		return errNilContext
	case refused != nil:
		return refused
	}
	return c.open()
}

// checkName refuses names that Redis could not handle.
func checkName(name string) error {
	if err := wire.CheckName(name); err != nil {
		return fmt.Errorf("redlatch: %w", err)
	}
	return nil
}

// open returns ErrClosed after Close.
func (c *Client) open() error {
	select {
	case <-c.done:
		return ErrClosed
	default:
		return nil
	}
}

// Close ends the client. Callers that wait for a lock get ErrClosed. The
// contexts of live holds end with ErrClosed as their cause, and their locks are
// left to their TTL: Close never frees a lock under a running section. Then it
// waits for the requests that are under way, at most for Config.CloseTimeout.
//
// It returns an error if some of them had not ended by then; they end when the
// driver gives them up. Calling it again returns the same.
func (c *Client) Close() error {
	c.closeOnce.Do(func() {
		end := time.Now().Add(c.cfg.CloseTimeout)
		close(c.done)
		c.senders.tell()
		c.lines.drain(time.Until(end))
		c.stopBreak()
		c.control.stop()
		for _, h := range c.clock.Close() {
			if t, ok := h.(interface{ close() }); ok { // else a hold of a tenure
				t.close()
			}
		}
		c.lines.close()
		c.permitLines.close()
		c.debts.close()
		c.report.queue.Close()
		if !c.pool.Close(time.Until(end)) {
			c.closeErr = errors.New("redlatch: Close: requests were still under way after Config.CloseTimeout; what they take is left to its TTL")
		}
		close(c.over)
		c.senders.tell()
	})
	return c.closeErr
}
