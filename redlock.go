package redlatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// RedLock returns the locks as one that is held when a majority of the members
// is. The members are locks, most often of one name, of as many clients, each of
// a Redis of its own: independent primaries, not nodes of one cluster nor a
// primary and its replicas. It works as long as a majority of them does. Two
// members of one client are refused.
//
// All members are tried at the same time, and Acquire returns with the first
// majority. None is given longer to answer than a twentieth of the lease; those
// that answer later than the majority but in time join the hold. A caller that
// gets no majority releases what it has and tries again after a random pause: it
// does not wait by messages.
//
// Each member is renewed by its client's watchdog (or has the Lease), and the
// hold is live while a majority of members is: that bounds it by the trust
// windows of so many.
//
// The error is a *BusyError if others have a majority or there is none, and
// ErrUnavailable if a majority of the servers did not answer for
// Config.OutageTimeout (of the first client), or did not answer Try.
//
// What it does not give: fencing tokens that rise (each member counts by
// itself), order, or safety if a majority does not keep what it has confirmed.
// A server that restarts without having written the lock to disk (appendfsync
// always), or fails over to a replica without it, votes again; keep it away for
// a lease then. Like every lease it trusts the servers' clocks to run as fast as
// ours, give or take 2 %. Redisson has deprecated its RedLock. docs/guarantees.md
// says more.
func RedLock(locks ...*Lock) *Multi {
	m := &Multi{locks: slices.Clone(locks), need: len(locks)/2 + 1, red: true}
	if m.err = checkMembers("RedLock", locks); m.err != nil {
		return m
	}
	for i, l := range locks {
		for _, other := range locks[:i] {
			if other.c == l.c {
				m.err = fmt.Errorf("redlatch: RedLock: locks %q and %q are of one client; each needs a Redis, and so a client, of its own", other.name, l.name)
			}
		}
	}
	return m
}

var (
	// errSilent ends the attempt at a member that has not answered in time.
	errSilent = errors.New("no answer within a twentieth of the lease")
	// errOutvoted ends the attempts that can change nothing any more.
	errOutvoted = errors.New("the other members have decided")
)

// A vote is what became of the attempt at a member.
type vote struct {
	member int
	h      *hold
	err    error
}

// bound is how long an attempt at a member may take.
func (q *quest) bound() time.Duration {
	lease := q.option.lease
	if !q.option.hasLease {
		lease = q.m.locks[0].c.cfg.WatchdogTimeout
		for _, l := range q.m.locks {
			lease = min(lease, l.c.cfg.WatchdogTimeout)
		}
	}
	return lease / 20
}

// most acquires a majority of the members, or nothing.
func (q *quest) most(ctx context.Context) (*holding, error) {
	var since time.Time      // when a majority did not answer for the first time
	var last, before canvass // when it did not for the last time; of the ballot before
	for round := 0; ; round++ {
		start := time.Now()
		g, votes := q.ballot(ctx)
		if g != nil {
			return g, nil
		}
		s := q.sum(votes)
		if s.silent && since.IsZero() && round > 0 && q.over() {
			s = before // this one was cut short by the end of Wait: it says nothing
		}
		before = s
		switch {
		case s.silent && since.IsZero():
			since, last = start, s
		case s.silent:
			last = s
		case s.mute && !since.IsZero():
			s.silent, s.errs = true, last.errs // what did not answer then is still being waited for
		default:
			since = time.Time{}
		}
		switch {
		case s.same != nil:
			return nil, s.same
		case s.hopeless != nil:
			return nil, s.hopeless
		case ctx.Err() != nil:
			return nil, s.ended(ctxError(ctx))
		case q.o.once, q.over(), s.silent && time.Since(since) >= q.m.locks[0].c.cfg.OutageTimeout:
			return nil, s.error()
		}
		// A ballot with a silent member takes its whole time: two callers that
		// split the votes would meet again and again after a short pause.
		if err := q.rest(ctx, round, s.busy, time.Since(start)); err != nil {
			if ctx.Err() != nil {
				return nil, s.ended(ctxError(ctx))
			}
			return nil, s.error()
		}
	}
}

// ballot tries all members once, at the same time. It returns as soon as there
// is a majority, or can be none.
func (q *quest) ballot(ctx context.Context) (*holding, []vote) {
	m := q.m
	g := newHolding(ctx, q, m.need)
	g.bound = q.bound()
	g.away, g.idle = len(m.locks), make(chan struct{})
	limit := g.bound
	if !q.until.IsZero() {
		limit = min(limit, max(0, time.Until(q.until)))
	}
	all, quit := context.WithCancelCause(ctx)
	each, stop := context.WithTimeoutCause(all, limit, errSilent)
	g.quit = func(err error) { quit(err); stop() }
	votes := make(chan vote, len(m.locks))
	for i, l := range m.locks {
		l.c.settle(func() {
			h, err := l.enter(each, []Option{q.option}, true)
			v := vote{member: i, h: h, err: err}
			if err == nil && !g.add(h) {
				l.c.settle(func() { _ = h.release(context.Background()) })
				v = vote{member: i, err: errOutvoted}
			}
			votes <- v
			if g.back() {
				g.quit(errOutvoted)
			}
		})
	}
	var cast []vote
	yes := 0
	for range m.locks {
		v := <-votes
		cast = append(cast, v)
		if v.err == nil {
			yes++
		}
		if yes == m.need {
			if g.begin() == nil {
				return g, cast
			}
			break
		}
		if len(cast)-yes > len(m.locks)-m.need {
			break
		}
	}
	g.quit(errOutvoted)
	g.undo(ctx)
	return nil, cast
}

// back notes that an attempt has come back, and says whether it was the last.
func (g *holding) back() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away--
	if g.away > 0 {
		return false
	}
	close(g.idle)
	return true
}

// A canvass is what a failed ballot says.
type canvass struct {
	busy     *BusyError // of a member that is taken, as far as it says by whom
	taken    bool       // whether any is
	silent   bool       // so many did not answer that there can be no majority
	mute     bool       // the same with those that were not even asked
	errs     []error    // of the members that did not answer
	hopeless error      // there can be no majority until somebody acts
	same     error      // two members are one
}

func (q *quest) sum(votes []vote) canvass {
	t := canvass{busy: &BusyError{Name: q.m.locks[0].name}}
	var refused []error
	dumb, unasked := 0, 0
	owners := map[string]int{} // of the members that we had
	for _, v := range votes {
		if v.h != nil {
			owners[v.h.t.owner()] = v.member
		}
	}
	for _, v := range votes {
		if v.err == nil {
			continue
		}
		l := q.m.locks[v.member]
		var busy *BusyError
		switch {
		case errors.Is(v.err, errSilent), errors.Is(v.err, ErrUnavailable):
			dumb++
			t.errs = append(t.errs, memberError(l, q.silence(v.err)))
		case errors.As(v.err, &busy):
			if busy.Owner == "" {
				unasked++ // somebody else of this process is asking
			} else if t.busy.Owner == "" {
				t.busy = busy
			}
			if other, ok := owners[busy.Owner]; ok {
				t.same = sameLock(q.m.locks[other], l)
			}
		case !IsRetryable(v.err) && !errors.Is(v.err, errOutvoted):
			refused = append(refused, memberError(l, v.err))
		}
	}
	most := len(q.m.locks) - q.m.need // so many may fail
	dumb += len(refused)
	t.silent, t.mute = dumb > most, dumb+unasked > most
	t.taken = unasked > 0 || t.busy.Owner != ""
	if len(refused) > most {
		t.hopeless = errors.Join(refused...)
	}
	t.errs = append(t.errs, refused...)
	return t
}

// silence is the error of a member that did not answer, without the end of the
// attempt, which looks like the end of the caller's context.
func (q *quest) silence(err error) error {
	var outage *outageError
	if errors.As(err, &outage) {
		return outage.cause
	}
	return fmt.Errorf("%w (%v)", errSilent, q.bound())
}

// error is that of a caller who does not try again.
func (t canvass) error() error {
	if t.silent || (!t.taken && len(t.errs) > 0) {
		return &outageError{cause: errors.Join(t.errs...)}
	}
	return &BusyError{Name: t.busy.Name, Owner: t.busy.Owner, TTL: t.busy.TTL}
}

// ended is the error of a caller whose context has ended.
func (t canvass) ended(err error) error {
	if t.silent {
		return &outageError{cause: errors.Join(t.errs...), ended: err}
	}
	return &BusyError{Name: t.busy.Name, Owner: t.busy.Owner, TTL: t.busy.TTL, Cause: err}
}
