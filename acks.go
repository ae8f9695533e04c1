package redlatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"
)

// Acks says how many replicas have to acknowledge what an acquisition wrote before
// it counts. A positive number requires that many.
//
// It applies to locks of every kind, to Semaphores and to ExpirableSemaphores,
// and to their re-entries; latches, barriers and rate limiters do not wait for
// replicas, as Redisson's do not. If too few acknowledge in time what was acquired
// is given back, a re-entry taken back, and the call fails with a *AckError. A
// number requires the same of renewals and of Extend: if the replicas stay silent
// the lease is not prolonged, and in the end the hold is lost. What gives a
// Semaphore's permits back, or changes how many permits there are, waits for
// replicas as well, but counts without them, which is an event
// (Events.NotAcknowledged).
//
// It makes a failover less likely to cost a lock, and promises no more than that:
// one acknowledgement out of two replicas does not help if the other one becomes
// the primary. A lock survives the failover to any replica only if all of them have
// acknowledged it. Only fencing protects a resource: see docs/guarantees.md.
//
// It costs an acquisition the replication's round trip in addition to its own, a
// connection of its own for as long, and each primary now and then a question about
// its replicas. A lock that passes between goroutines of this process is not
// acknowledged again, unless it gets a lease or a token on its way.
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

// String returns "auto", "off", "best effort", "any" or the number.
func (a Acks) String() string {
	switch a {
	case AcksAuto:
		return "auto"
	case AcksOff:
		return "off"
	case AcksBestEffort:
		return "best effort"
	case AcksAny:
		return "any"
	}
	return strconv.Itoa(int(a))
}

// acks asks replicas for acknowledgement.
type acks struct {
	c      *Client
	acker  Acker // nil: nobody is asked
	policy Acks  // never AcksAuto
	holds  bool  // what creates a hold is to be acknowledged,
	renews bool  // and what prolongs one

	mu    sync.Mutex          // guards known, and what is in it
	known map[string]replicas // by lane; replaced after a break
}

// replicas are what is known of a primary's, of which there is one in each lane.
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
	k.c, k.policy, k.known = c, c.cfg.Acks, make(map[string]replicas)
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

// timeout is how long replicas have: half of the time that is left to the attempt
// and to its caller, who is to learn how it ended.
func (k *acks) timeout(ctx context.Context, o *op) time.Duration {
	d := min(k.c.cfg.AckTimeout, attemptTimeout(o.lease)/2)
	if !o.until.IsZero() {
		d = min(d, time.Until(o.until)/2)
	}
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)/2)
	}
	return max(d, time.Millisecond)
}

// run sends a request, waits for replicas, and returns why too few of them have
// acknowledged it. It does not know whether the request has changed anything.
func (k *acks) run(ctx context.Context, r *Request, timeout time.Duration) *AckError {
	key, known := r.Keys[0], k.knowledge()
	n, err := k.want(ctx, known, key)
	switch {
	case err != nil:
		r.Err = &RunError{Outcome: NotExecuted, Code: runError(err).Code, Err: err}
		return nil
	case n == 0:
		r.Reply, r.Err = k.acker.Run(ctx, r.Script, r.Keys, r.Args)
		return nil
	}
	var acked int
	r.Reply, acked, r.Err = k.acker.RunAcked(ctx, r.Script, r.Keys, r.Args, n, timeout)
	if r.Err != nil || acked >= n {
		return nil //nolint:nilerr // the request has it
	}
	short := &AckError{Name: key, Want: n, Got: max(acked, 0), Timeout: timeout}
	switch {
	case k.policy > 0:
		if acked < 0 {
			short.Err = errNoWait
		}
		return short
	case acked < 0:
		k.note(known, key, replicas{never: true})
		return nil
	}
	// Who does not answer now may have had replicas, and may be the primary no more.
	if left, err := k.ask(ctx, known, key); err == nil && left == 0 {
		return nil // they have gone
	}
	return short
}

// doubtRenewals reports a renewal of so many holds that too few replicas know of, and
// says whether it is one. Nothing is prolonged then, but what is gone is gone.
func (o *op) doubtRenewals(holds int) bool {
	if o.short == nil {
		return false
	}
	o.c.report.renewFailed(RenewFailedEvent{Holds: holds, Err: o.short})
	return true
}

// doubt returns why what the server has granted does not count: too few replicas
// know of it. A request that was granted nothing leaves nothing to doubt.
func (o *op) doubt(granted bool) *AckError {
	switch {
	case !granted || o.short == nil:
		return nil
	case o.c.acks.policy == AcksBestEffort:
		o.unacked()
		return nil
	}
	return o.short
}

// unacked reports what counts though too few replicas know of it, if it is so.
func (o *op) unacked() {
	if o.short != nil {
		o.c.report.notAcknowledged(NotAcknowledgedEvent{Name: o.short.Name, Err: o.short})
	}
}

var errNoWait = errors.New("the server does not know WAIT, or forbids it")

// want returns how many replicas to wait for. It fails if it is not known how many
// there are, and the server does not answer.
func (k *acks) want(ctx context.Context, known map[string]replicas, key string) (int, error) {
	if k.policy > 0 {
		return int(k.policy), nil
	}
	lane := k.c.redis.Lane(key)
	k.mu.Lock()
	r, ok := known[lane]
	old := ok && r.old()
	if old {
		known[lane] = replicas{none: true, since: time.Now()} // one asks for all
	}
	k.mu.Unlock()
	switch {
	case !ok, old:
		n, err := k.ask(ctx, known, key)
		return min(n, 1), err
	case r.none, r.never:
		return 0, nil
	}
	return 1, nil
}

// ask asks how many replicas there are: none, as far as anybody can wait for them,
// if the server does not say.
func (k *acks) ask(ctx context.Context, known map[string]replicas, key string) (int, error) {
	n, err := k.acker.Replicas(ctx, key)
	switch {
	case err == nil:
		k.note(known, key, replicas{none: n == 0})
		return n, nil
	case runError(err).Outcome == Refused:
		k.note(known, key, replicas{never: true})
		return 0, nil
	case runError(err).Code == "READONLY":
		// It is the primary no more, which a script learns together with who is.
		n, err = 1, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(known, k.c.redis.Lane(key))
	return n, err
}

// old says that it is time to look whether there still are no replicas.
func (r replicas) old() bool { return r.none && time.Since(r.since) >= recheck }

// pointless says that there is nobody to wait for: the request can go with others.
func (k *acks) pointless(key string) bool {
	if k.policy > 0 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.known[k.c.redis.Lane(key)]
	return r.never || (r.none && !r.old())
}

// knowledge returns what is known until the next break. What is learned later of the
// servers of before goes nowhere.
func (k *acks) knowledge() map[string]replicas {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

func (k *acks) note(known map[string]replicas, key string, r replicas) {
	r.since = time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	known[k.c.redis.Lane(key)] = r
}

// forget is for a break: another server may be the lane's primary now, or if lane is
// empty everybody's.
func (k *acks) forget(lane string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known = maps.Clone(k.known); lane != "" {
		delete(k.known, lane)
	} else {
		clear(k.known)
	}
}
