package redlatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/request"
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
// does not wait by messages. Goroutines of one process that want the same members
// get them in the order in which they asked; between processes there is no order,
// and no turns.
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
	m.lobby = lobbyOf(locks)
	return m
}

// lobbyOf returns the lock at whose line the callers of this process that want
// the same members wait for each other, or nil if they need not: readers.
func lobbyOf(locks []*Lock) *Lock {
	members := slices.SortedFunc(slices.Values(locks), func(a, b *Lock) int { return cmp.Compare(a.c.id, b.c.id) })
	names := []string{"redlock"}
	for _, l := range members {
		if l.side == reading {
			return nil
		}
		names = append(names, l.c.id, l.lineName())
	}
	return &Lock{c: members[0].c, name: strings.Join(names, "\x00")}
}

// lineUp waits for the other callers of this process, which is to be one voter,
// and returns their line, or nil if the caller is not to wait: it may have what
// the one before it has, or share it.
func (q *quest) lineUp(ctx context.Context) (*line, error) {
	l := q.m.lobby
	if l == nil || slices.ContainsFunc(q.m.locks, func(l *Lock) bool {
		outer, sc, err := l.enclosing(ctx)
		return outer != nil || sc != nil || err != nil
	}) {
		return nil, nil
	}
	ln, waited := l.c.lines.get(l), false
	p := patience{c: l.c, name: q.m.locks[0].name, until: q.until, refused: func(error) { waited = true }}
	switch _, err := p.enter(ctx, ln, q.o, q.o.at); {
	case errors.Is(err, ErrClosed):
		return nil, nil // the others may be a majority
	case err != nil:
		return nil, err
	}
	if waited {
		// Other processes cannot see when the lock is free. A pause lets them in.
		if err := q.rest(ctx, 0, nil, 0); err != nil {
			l.c.leave(ln)
			return nil, err
		}
	}
	return ln, nil
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
	lobby, err := q.lineUp(ctx)
	if err != nil {
		return nil, err
	}
	g, err := q.ballots(ctx)
	switch {
	case lobby == nil:
	case err != nil:
		q.m.lobby.c.leave(lobby)
	default:
		g.stayIn(q.m.lobby.c, lobby)
	}
	return g, err
}

// ballots tries until there is a majority.
func (q *quest) ballots(ctx context.Context) (*holding, error) {
	var since time.Time // when there began to be no ballot in which a majority answered
	var errs []error    // of those that did not
	var before canvass
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
		case s.answered:
			since, errs = time.Time{}, nil
		case since.IsZero():
			since = start
		}
		if s.silent {
			errs = s.errs
		} else if errs != nil {
			s.silent, s.errs = true, errs // what did not answer then is still being waited for
		}
		switch {
		case s.same != nil:
			return nil, s.same
		case s.hopeless != nil:
			return nil, s.hopeless
		case ctx.Err() != nil:
			return nil, s.ended(request.ContextError(ctx))
		case q.o.once, q.over(), s.silent && time.Since(since) >= q.m.locks[0].c.cfg.OutageTimeout:
			return nil, s.error()
		}
		// Callers that met would meet again after a pause that is short beside the
		// time that a ballot takes them. One in which no majority answers takes all
		// the time that there is: a longer pause than that helps nobody.
		took := time.Since(start)
		if s.answered {
			took <<= min(round, 2)
		}
		if err := q.rest(ctx, round, s.busy, took); err != nil {
			if ctx.Err() != nil {
				return nil, s.ended(request.ContextError(ctx))
			}
			return nil, s.error()
		}
	}
}

// leastGrace is the least that the members which have not answered are given
// when a majority has and one is taken.
const leastGrace = 10 * time.Millisecond

// ballot tries all members once, at the same time. It returns as soon as there
// is a majority, or can be none, or others are at it too and it would keep them
// waiting for a member that is silent.
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
		l.c.server.Go(func() {
			h, err := l.enter(each, []Option{q.option}, true)
			v := vote{member: i, h: h, err: err}
			if err == nil && !g.add(h) {
				l.c.server.Go(func() { _ = h.release(context.Background()) })
				v = vote{member: i, err: errOutvoted}
			}
			votes <- v
			if g.back() {
				g.quit(errOutvoted)
			}
		})
	}
	cast, won := g.count(votes, len(m.locks))
	if won {
		return g, cast
	}
	if errors.Is(context.Cause(each), errSilent) {
		for i := range m.locks { // whose silence was not needed to decide
			if !slices.ContainsFunc(cast, func(v vote) bool { return v.member == i }) {
				cast = append(cast, vote{member: i, err: errSilent})
			}
		}
	}
	g.quit(errOutvoted)
	g.undo(ctx)
	return nil, cast
}

// count returns the votes that were cast until there was a majority, which it
// begins the holding with, or until it was no use to wait for more.
func (g *holding) count(votes <-chan vote, members int) (cast []vote, won bool) {
	var over <-chan time.Time
	start, yes, contested := time.Now(), 0, false
	for len(cast) < members {
		select {
		case v := <-votes:
			cast = append(cast, v)
			switch {
			case v.err == nil:
				yes++
			case errors.Is(v.err, ErrBusy):
				contested = true
			}
		case <-over:
			return cast, false
		}
		if yes == g.need {
			return cast, g.begin() == nil
		}
		if len(cast)-yes > members-g.need {
			return cast, false
		}
		if over == nil && contested && len(cast) >= g.need {
			// Who now waits for a silent member keeps what he has from others, as
			// they keep from him what they have, and nobody gets a majority.
			t := time.NewTimer(max(time.Since(start), leastGrace))
			defer t.Stop()
			over = t.C
		}
	}
	return cast, false
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

// stayIn keeps the callers behind this one waiting until the holding is over.
func (g *holding) stayIn(c *Client, lobby *line) {
	g.mu.Lock()
	first := g.holds[0].t
	lobby.setCurrent(first) // who waits is told by whom
	g.leave = func() {
		lobby.dropCurrent(first)
		c.leave(lobby)
	}
	lost := g.err != nil
	g.mu.Unlock()
	if lost {
		g.goOut()
	}
}

// goOut lets the next caller of this process in.
func (g *holding) goOut() {
	g.mu.Lock()
	leave := g.leave
	g.leave = nil
	g.mu.Unlock()
	if leave != nil {
		leave()
	}
}

// A canvass is what a failed ballot says.
type canvass struct {
	busy     *BusyError // of a member that is taken, as far as it says by whom
	taken    bool       // whether any is
	answered bool       // a majority has said that it is ours, or whose
	silent   bool       // so many did not answer that there can be no majority
	errs     []error    // of the members that did not answer
	hopeless error      // there can be no majority until somebody acts
	same     error      // two members are one
}

func (q *quest) sum(votes []vote) canvass {
	t := canvass{busy: &BusyError{Name: q.m.locks[0].name}}
	var refused []error
	dumb, unasked, answers := 0, 0, 0
	owners := map[string]int{} // of the members that we had
	for _, v := range votes {
		if v.h != nil {
			owners[v.h.t.id] = v.member
		}
	}
	for _, v := range votes {
		if v.err == nil {
			answers++
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
				continue
			}
			answers++
			if t.busy.Owner == "" {
				t.busy = busy
			}
			if other, ok := owners[busy.Owner]; ok {
				t.same = sameLock(q.m.locks[other], l)
			}
		case errors.Is(v.err, ErrNotAcknowledged), !IsRetryable(v.err) && !errors.Is(v.err, errOutvoted):
			refused = append(refused, memberError(l, v.err))
		}
	}
	most := len(q.m.locks) - q.m.need // so many may fail
	dumb += len(refused)
	t.silent, t.answered = dumb > most, answers >= q.m.need
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
	var outage *request.OutageError
	if errors.As(err, &outage) {
		return outage.Cause
	}
	return fmt.Errorf("%w (%v)", errSilent, q.bound())
}

// error is that of a caller who does not try again.
func (t canvass) error() error {
	if t.silent || (!t.taken && len(t.errs) > 0) {
		return &request.OutageError{Cause: errors.Join(t.errs...)}
	}
	return &BusyError{Name: t.busy.Name, Owner: t.busy.Owner, TTL: t.busy.TTL}
}

// ended is the error of a caller whose context has ended.
func (t canvass) ended(err error) error {
	if t.silent {
		return &request.OutageError{Cause: errors.Join(t.errs...), Ended: err}
	}
	return &BusyError{Name: t.busy.Name, Owner: t.busy.Owner, TTL: t.busy.TTL, Cause: err}
}
