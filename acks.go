package redlatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/wire"
)

// Acks says how many replicas have to acknowledge what an acquisition wrote before
// it counts. A positive number requires that many.
//
// It applies to locks of every kind, to Semaphores and to ExpirableSemaphores,
// and to their re-entries; latches, barriers and rate limiters do not wait for
// replicas, as Redisson's do not. If too few acknowledge in time what was acquired
// is given back, a re-entry taken back, and the call fails with a *AckError. A
// number requires the same of renewals and of Extend: if the replicas stay silent
// the lease is not prolonged, and in the end the hold is lost.
//
// It makes a failover less likely to cost a lock, and promises no more than that:
// one acknowledgement out of two replicas does not help if the other one becomes
// the primary. A lock survives the failover to any replica only if all of them have
// acknowledged it. Only fencing protects a resource: see docs/guarantees.md.
//
// It costs an acquisition the replication's round trip in addition to its own, a
// connection of its own for as long, and one question per primary (in a cluster, per
// hash slot) about its replicas. A lock that passes between goroutines of this
// process is not acknowledged again.
type Acks int

// The policies that are no number.
const (
	// AcksAuto is AcksAny with Sentinel and in a cluster, and AcksOff with a single
	// server: what Redisson does by default (checkLockSyncedSlaves).
	AcksAuto Acks = 0
	// AcksOff waits for no replica.
	AcksOff Acks = -1
	// AcksBestEffort waits for one replica, if the primary has any, and goes on
	// without it if it is silent, which is an event (Events.NotAcknowledged).
	AcksBestEffort Acks = -2
	// AcksAny requires one replica, if the primary has any. Where the server does
	// not know WAIT, or not say how many replicas it has, it requires nothing.
	AcksAny Acks = -3
)

// acks asks replicas for acknowledgement.
type acks struct {
	c      *Client
	acker  Acker // nil: nobody is asked
	policy Acks  // never AcksAuto
	holds  bool  // what creates a hold is to be acknowledged,
	renews bool  // and what prolongs one

	mu    sync.Mutex // guards known
	known map[int]replicas
}

// replicas are what is known of a primary's, of which there is one for each hash
// slot.
type replicas struct {
	none  bool      // it has none,
	never bool      // or they cannot be waited for, which will not change
	since time.Time // when that was found out
}

// recheck is for how long a primary without replicas is believed to have none.
const recheck = time.Second

// start sets what the client's configuration asks for. It fails if the driver
// cannot do that.
func (k *acks) start(c *Client) error {
	k.c, k.policy, k.known = c, c.cfg.Acks, make(map[int]replicas)
	if k.policy == AcksAuto {
		k.policy = AcksOff
		if c.traits.Replicated {
			k.policy = AcksAny
		}
	}
	if k.policy == AcksOff {
		return nil
	}
	acker, ok := c.redis.(Acker)
	switch {
	case ok:
		k.acker, k.holds, k.renews = acker, true, k.policy > 0
	case k.policy > 0:
		return fmt.Errorf("redlatch: Config.Acks is %d, but the %s driver cannot wait for replicas", k.policy, c.traits.Name)
	}
	return nil
}

// timeout is how long replicas have, for a request about a lease.
func (k *acks) timeout(lease time.Duration) time.Duration {
	return min(k.c.cfg.AckTimeout, attemptTimeout(lease)/2)
}

// run sends a request, waits for replicas, and returns why too few of them have
// acknowledged it. It does not know whether the request has changed anything.
func (k *acks) run(ctx context.Context, r *Request, timeout time.Duration) *AckError {
	n := k.want(ctx, r)
	switch {
	case r.Err != nil:
		return nil
	case n == 0:
		r.Reply, r.Err = k.acker.Run(ctx, r.Script, r.Keys, r.Args)
		return nil
	}
	var acked int
	r.Reply, acked, r.Err = k.acker.RunAcked(ctx, r.Script, r.Keys, r.Args, n, timeout)
	if r.Err != nil || acked >= n {
		return nil
	}
	key := r.Keys[0]
	short := &AckError{Name: key, Want: n, Got: max(acked, 0), Timeout: timeout}
	if k.policy > 0 {
		if acked < 0 {
			short.Err = errNoWait
		}
		return short
	}
	if acked < 0 {
		k.note(key, replicas{never: true})
		return nil
	}
	if left, err := k.acker.Replicas(ctx, key); err != nil || left == 0 { // they have gone
		k.note(key, replicas{none: true})
		return nil
	}
	if k.policy == AcksBestEffort {
		k.c.report.notAcknowledged(NotAcknowledgedEvent{Name: key, Err: short})
		return nil
	}
	return short
}

var errNoWait = errors.New("the server does not know WAIT, or forbids it")

// want returns how many replicas to wait for. Without an answer to the question how
// many there are it sets r.Err: nothing has been executed.
func (k *acks) want(ctx context.Context, r *Request) int {
	if k.policy > 0 {
		return int(k.policy)
	}
	key := r.Keys[0]
	switch has, known := k.has(key); {
	case known && has:
		return 1
	case known:
		return 0
	}
	n, err := k.acker.Replicas(ctx, key)
	if err != nil && runError(err).Outcome != Refused {
		r.Err = &RunError{Outcome: NotExecuted, Code: runError(err).Code, Err: err}
		return 0
	}
	k.note(key, replicas{none: err == nil && n == 0, never: err != nil})
	return min(n, 1)
}

// has says whether the primary that has key has replicas which can be waited for, if
// that is known.
func (k *acks) has(key string) (has, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.known[k.slot(key)]
	return !r.none && !r.never, ok && (!r.none || time.Since(r.since) < recheck)
}

// pointless says that there is nobody to wait for: the request can go with others.
func (k *acks) pointless(key string) bool {
	if k.policy > 0 {
		return false
	}
	has, known := k.has(key)
	return known && !has
}

// slot tells primaries apart.
func (k *acks) slot(key string) int {
	if !k.c.traits.Cluster {
		return 0
	}
	return wire.Slot(key)
}

func (k *acks) note(key string, known replicas) {
	known.since = time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[k.slot(key)] = known
}

// forget is for a break: other servers may be the primaries now.
func (k *acks) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.known)
}
