// Package fair gets a lock for callers that stand in a queue in Redis, each with
// an owner id of its own.
//
// They have no gate in common but the local queue, at which they ask for their
// places one after the other. What a caller waits for, and how it gives up, is as
// in package wait; what it holds, as in package term. Begin to read with
// Queuers.Acquire.
package fair

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/lock/wait"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// How long one who waits in a queue sleeps at most, give or take a fifth. Who
// stands first tries sooner, in case that a message is lost or a holder dies. The
// others try so that their client is heard, and to see whether it is their turn.
const (
	headPoll = 800 * time.Millisecond
	tailPoll = request.LongestPause

	// A caller may try again at once this many times; then it makes a pause,
	// whatever it hears. Redisson's waiters spin while it is somebody else's turn
	// to take a free lock.
	quickTries = 8
	quickPause = 50 * time.Millisecond

	// silence is after how long without a request of theirs waiters are passed
	// over, and for how long after its last one a waiter is given the lock. (The
	// script fairlock.luainc says the same.)
	silence = 6 * time.Second

	// aliveKey is which of a lock's Keys says whose clients have been heard, behind
	// the lock, the queue and its timeouts.
	aliveKey = 3
)

// ReleaseArgs are those of a release that gives the lock to one of those who wait,
// and takes any number of owners.
func ReleaseArgs(l *term.Lock, args []string) []string { return append(Forcing(l), args[0]) }

// Forcing returns what stands before the owners in every script that gives the
// lock to one of those who wait.
func Forcing(l *term.Lock) []string { return []string{l.Channel, wire.Millis(l.Env.Allowance)} }

// Acquire gets a fair lock for a caller that does not have it already.
func (c *Queuers) Acquire(ctx context.Context, l *term.Lock, want term.Params) (*term.Hold, error) {
	if !c.Join() { // Close waits until the caller has given back what it gets too late
		return nil, request.ErrClosed
	}
	defer c.Part()
	p := c.NewWaiter(l, &want)
	h, err := c.standInQueue(ctx, l, &want, &p)
	return p.End(h, err)
}

// A queuer is a caller that waits in a fair lock's queue.
type queuer struct {
	c     *Queuers
	l     *term.Lock
	want  *term.Params
	p     *wait.Waiter
	start time.Time

	e      *ownEntry
	t      *term.Term // the one that is to be taken
	queued bool       // the server has said that t is in the queue,
	asked  time.Time  // in its answer to a request that was sent then,
	again  bool       // and t may have been put there more than once
	quick  int        // tries in a row that came soon after the one before
	heard  time.Time  // when the server was last asked to hear it otherwise: see stay
	warned bool       // of waiting for its own process
	late   request.Lateness
}

// answer is what the server says to one that does not get the lock.
type answer struct {
	ttl   time.Duration // of the lock; negative if it is free, or has none
	owner string        // who has it; empty if nobody
	head  string        // who stands first in the queue; empty if nobody
	fresh bool          // the caller was put into the queue just now
}

// standInQueue gets a fair lock for a caller that does not have it already.
// However it ends without a hold, the queue is left, or will be as soon as it is
// known what became of a request in flight.
func (c *Queuers) standInQueue(ctx context.Context, l *term.Lock, want *term.Params, p *wait.Waiter) (*term.Hold, error) {
	through, err := c.EnterLocal(ctx, p, l, want)
	if err != nil {
		return nil, err
	}
	defer through()
	q := &queuer{c: c, l: l, want: want, p: p, start: time.Now()}
	q.arrive()
	for {
		given := q.given()
		var a *answer
		if !given {
			a, err = q.ask(ctx, through)
			through()
		}
		switch {
		case err != nil:
			return nil, err // ask has left, or will
		case a == nil:
			if h, err := q.begin(ctx, given); h != nil || err != nil {
				return h, err
			}
			q.arrive()
			continue
		}
		q.note(a)
		err = request.ErrWaitOver
		if !want.Try && !p.InVain() {
			err = q.wait(ctx, a)
		}
		if err != nil {
			q.t.Withdraw()
			return nil, err
		}
	}
}

// arrive makes a place for the caller that it has not asked for yet.
func (q *queuer) arrive() {
	var e *ownEntry
	if !q.want.Try {
		e = q.c.takeSpare(q.l.Key, nil)
	}
	if e == nil {
		e = q.c.newOwn(q.l)
	}
	select {
	case <-e.Notices().Wake(): // a spare's, which listens already: what wakes it from now on is news
	default:
	}
	q.e, q.t, q.queued, q.again = e, q.c.Occupy(&e.Entry, q.l, q.want), false, false
}

// newNonce returns a number that nobody can guess, that a score holds exactly,
// with a half on top, and that is later than any time. Only a client that may read
// the lock's keys can know it.
func newNonce() string {
	var b [8]byte
	_, _ = crand.Read(b[:]) // never fails
	return strconv.FormatUint(1<<51|binary.BigEndian.Uint64(b[:])>>13, 10)
}

// ask asks for the lock, or for a place in the queue. It returns no answer if
// the lock is the caller's. first is called when an attempt has failed.
func (q *queuer) ask(ctx context.Context, first func()) (*answer, error) {
	t, enqueue := q.t, "0"
	if !q.want.Try {
		enqueue = "1"
		if t.Watch && !t.Fenced && t.Length >= silence && !q.c.Server.Acks.Holds {
			// A renewal makes up for a lease that it is not given at once, but not for
			// replicas that have not acknowledged the release that gives the lock.
			enqueue = q.e.nonce
		}
	}
	req := t.Taking(q.l.Kind.Take, []string{t.Args[0], t.ID, q.l.Channel, q.c.ID, enqueue, wire.Millis(q.c.Allowance)}, q.want, q.e.Refusals())
	req.Retried = func() {
		first()
		q.stay(ctx, &req)
	}
	facts, err := wait.Take(ctx, t, &req, 4)
	if err != nil || facts == nil {
		return nil, err
	}
	a := &answer{
		ttl:   wire.FromMillis(facts[0].Int),
		owner: facts[1].Str, head: facts[2].Str, fresh: facts[3].Int == 1,
	}
	q.asked, q.again = req.Sent, q.again || req.Unknown || (a.fresh && q.queued)
	return a, nil
}

// stay has the caller's client heard, for its place in the queue, while no request
// for the lock is run: while a slot moves, the server refuses each that has keys
// at two nodes, or one that is not there.
func (q *queuer) stay(ctx context.Context, req *request.Call) {
	last := q.asked
	if q.heard.After(last) {
		last = q.heard
	}
	if !q.queued || time.Since(last) < silence/3 || driver.Failure(req.Failed).Code != "TRYAGAIN" {
		return
	}
	q.heard = time.Now()
	call := request.Call{
		Server: q.c.Server, Script: lua.FairLockHeard, Keys: q.l.Keys[aliveKey : aliveKey+1], Args: []string{q.c.ID},
		Lease: silence, Stop: q.c.Server.Done, Until: q.want.Until, Single: true,
	}
	_, _ = call.Run(ctx) // if it fails, the next attempt is as good
}

// given says whether the caller has been told that it has the lock, and can rely
// on that. A waiter that was put into the queue once is given the lock once: after
// the last answer, which said that it was still waiting, and for as long as a
// waiter may be silent after that request. To a waiter that was put there again,
// the message may be an old one, and only says that it is time to ask.
func (q *queuer) given() bool {
	if !q.e.given.Swap(false) || q.again {
		return false
	}
	q.t.Lease.Confirm(q.asked, silence)
	return q.t.Lease.Left(time.Now()) > silence/4
}

// begin begins the term that has been taken, or given. It returns neither a
// hold nor an error if the caller has to line up again.
func (q *queuer) begin(ctx context.Context, given bool) (h *term.Hold, err error) {
	now := time.Now()
	trusted := given || q.t.Trusted(ctx, q.want.Until, now)
	if trusted {
		if h = q.t.Begin(ctx, q.want, now); h != nil {
			q.e.Notices().Stop() // nobody tells a holder anything there
			if q.queued && !q.c.Server.Closed() {
				q.c.Server.Go(func() { q.c.spare(q.l) })
			}
			return h, nil
		}
	}
	q.t.Withdraw()
	if trusted { // revoked, or the client closed, before it began
		if q.c.Server.Closed() {
			err = request.ErrClosed
		}
		return nil, err
	}
	return nil, q.late.Again(ctx, q.c.Server, q.want.Try, q.want.Until)
}

// note draws conclusions from an answer.
func (q *queuer) note(a *answer) {
	q.p.Saw(q.asked, a.owner, a.ttl)
	if a.fresh && q.queued {
		q.c.Events.Requeued(q.l.Name(), q.t.ID, time.Since(q.start))
	}
	q.queued = true
	if a.owner != q.t.ID {
		q.c.ReapFound(q.l, a.owner)
	}
	if a.head != q.t.ID && a.head != a.owner {
		q.reapPlace(a.head)
	}
	if waited := time.Since(q.start); !q.warned && q.c.SlowWait > 0 && waited >= q.c.SlowWait && q.c.Made(a.owner) {
		if t := q.c.Peek(q.l.Key, a.owner); t != nil && t.Live() {
			q.warned = true
			q.c.Events.SlowWait(q.l.Name(), waited, q.want.At, t.Site())
		}
	}
}

// reapPlace takes an id out of the queue in which it was found if it is of this
// client and nobody here waits by it: a request that came late has put it there,
// or a failover brought it back. Unlike a hold, a place has no end while its
// client lives: all behind it would wait for ever. A hold that was detached has no
// place in a queue. But one that was detached since the server was asked may have
// had one then: the next answer will tell.
func (q *queuer) reapPlace(id string) {
	if q.c.Made(id) && !q.c.Known(q.l.Key, id) && !q.c.Lapsed(id) && !q.c.DetachedSince(q.asked) {
		q.c.Server.Go(func() { q.c.Reap(q.l, id) })
	}
}

// wait waits until it is time to ask again.
func (q *queuer) wait(ctx context.Context, a *answer) error {
	q.c.Events.Refused(a.owner)
	q.p.Publish(ctx, &q.e.Entry, q.t)
	q.e.hear(q.l)
	if q.quick > quickTries {
		q.quick = 0
		pause := quickPause + rand.N(quickPause) //nolint:gosec // jitter
		if _, err := request.Pause(ctx, q.c.Server.Done, nil, q.want.Until, pause); err != nil {
			return err
		}
	}
	most := tailPoll
	if a.head == q.t.ID {
		most = headPoll
	}
	d := request.Jittered(most)
	if a.head == q.t.ID && a.ttl >= 0 {
		d = min(d, a.ttl+time.Millisecond)
	}
	if left := q.c.SlowWait - time.Since(q.start); left > 0 {
		d = min(d, left)
	}
	asleep := time.Now()
	_, err := q.p.Pause(ctx, &q.e.Entry, d)
	q.quick++
	if time.Since(asleep) >= quickPause {
		q.quick = 0
	}
	return err
}
