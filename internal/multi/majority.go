package multi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/lock/wait"
	"github.com/redlatch/redlatch/internal/request"
)

// Majority returns locks as one that is held when a majority is. They have this
// name together.
func Majority(name string, locks []*lock.Spec) (*Spec, error) {
	for i, l := range locks {
		for _, other := range locks[:i] {
			if other.Client() == l.Client() {
				return nil, invalid.Errorf("redlatch: RedLock: locks %q and %q are of one client; each needs a Redis, and so a client, of its own", other.Name(), l.Name())
			}
		}
	}
	m := &Spec{Name: name, locks: locks, need: len(locks)/2 + 1, red: true}
	m.queue = m.newQueue()
	return m, nil
}

// newQueue returns where the callers of this process that want
// the same members wait for each other, or nil if they need not: readers.
func (m *Spec) newQueue() *wait.Queue {
	members := slices.SortedFunc(slices.Values(m.locks), func(a, b *lock.Spec) int { return cmp.Compare(a.Client().ID, b.Client().ID) })
	names := []string{"redlock"}
	for _, l := range members {
		if !l.Exclusive() {
			return nil
		}
		names = append(names, l.Client().ID, l.Entry.Name)
	}
	return members[0].Client().Queue(strings.Join(names, "\x00"), &m.locks[0].Lock, m.silent)
}

// silent returns why no majority answers, or nil.
func (m *Spec) silent() error {
	var errs []error
	for _, l := range m.locks {
		if err := l.Client().Server.NoAnswer(l.Key, nil); err != nil {
			errs = append(errs, memberError(l.Name(), err))
		}
	}
	if len(errs) > len(m.locks)-m.need {
		return join(errs)
	}
	return nil
}

// lineUp waits for the other callers of this process, which is to be one voter,
// and returns the caller's place, or nil if it is not to wait: it may have what
// the one before it has, or share it.
func (q *acquisition) lineUp(ctx context.Context) (*wait.Place, error) {
	if q.m.queue == nil || slices.ContainsFunc(q.m.locks, func(l *lock.Spec) bool { return l.Within(ctx) }) {
		return nil, nil
	}
	var place *wait.Place
	var waited bool
	err := q.m.whileOpen(ctx, func(ctx context.Context) (err error) {
		place, waited, err = q.m.queue.Enter(ctx, q.want)
		return err
	})
	switch {
	case errors.Is(err, request.ErrClosed):
		return nil, nil // the others may be a majority, or the first round says that there is none
	case err != nil:
		return nil, err
	}
	if waited {
		// Other processes cannot see when the lock is free. A pause lets them in.
		if err := q.rest(ctx, 0, q.m.locks[0], fact.Busy{}, 0); err != nil {
			place.Leave()
			return nil, err
		}
	}
	return place, nil
}

var (
	// errSilent ends the attempt at a member that has not answered in time.
	errSilent = errors.New("no answer within a twentieth of the lease")
	// errOutvoted ends the attempts that can change nothing any more.
	errOutvoted = errors.New("the other members have decided")
)

// An answer is what became of the attempt at a member.
type answer struct {
	member int
	h      *term.Hold
	err    error
}

// bound is how long an attempt at a member may take.
func (q *acquisition) bound() time.Duration {
	lease := q.m.locks[0].Wish.Lease
	for _, l := range q.m.locks[1:] {
		lease = min(lease, l.Wish.Lease)
	}
	return lease / 20
}

// most acquires a majority of the members, or nothing.
func (q *acquisition) most(ctx context.Context) (*Hold, error) {
	place, err := q.lineUp(ctx)
	if err != nil {
		return nil, err
	}
	x := &request.Refusals{}
	if place != nil {
		x = place.Refusals()
	}
	g, err := q.rounds(ctx, x)
	switch {
	case place == nil:
	case err != nil:
		place.Leave()
	default:
		g.stayIn(place)
	}
	return g, err
}

// rounds tries until there is a majority. x notes when none answers: for those
// behind this caller, too.
func (q *acquisition) rounds(ctx context.Context, x *request.Refusals) (*Hold, error) {
	var before result
	over := func() {}
	defer func() { over() }()
	for round := 0; ; round++ {
		start := time.Now()
		if round == 1 {
			over = q.publish(ctx)
		}
		g, votes := q.round(ctx)
		if g != nil {
			x.Over()
			return g, nil
		}
		s := q.sum(votes)
		why := x.Why()
		if s.silent && why == nil && round > 0 && q.over() {
			s = before // this one was cut short by the end of the caller's wait: it says nothing
		}
		before, q.about = s, s.of
		switch {
		case s.answered:
			x.Over()
		case s.silent:
			x.Note(errors.Join(s.errs...), start)
		case why != nil:
			s.silent, s.errs = true, []error{why} // what did not answer then is still being waited for
		}
		_, outage := q.m.locks[0].Client().Server.Look("", x, q.want.Since, time.Now())
		switch {
		case s.same != nil:
			return nil, s.same
		case s.hopeless != nil:
			return nil, s.hopeless
		case ctx.Err() != nil:
			return nil, s.error(request.ContextError(ctx))
		case q.want.Try, q.over(), s.vain, s.silent && outage != nil:
			return nil, s.error(nil)
		}
		// Callers that met would meet again after a pause that is short beside the
		// time that a round takes them. One in which no majority answers takes all
		// the time that there is: a longer pause than that helps nobody.
		took := time.Since(start)
		if s.answered {
			took <<= min(round, 2)
		}
		switch err := q.rest(ctx, round, s.of, s.busy, took); {
		case err == nil:
		case ctx.Err() != nil:
			return nil, s.error(request.ContextError(ctx))
		case errors.Is(err, request.ErrClosed):
			return nil, err
		default:
			return nil, s.error(nil)
		}
	}
}

// leastGrace is the least that the members which have not answered are given
// when a majority has and one is taken.
const leastGrace = 10 * time.Millisecond

// round tries all members once, at the same time. It returns as soon as there
// is a majority, or can be none, or others are at it too and it would keep them
// waiting for a member that is silent.
func (q *acquisition) round(ctx context.Context) (*Hold, []answer) {
	m := q.m
	g := newHold(ctx, q, m.need)
	g.bound = q.bound()
	limit := g.bound
	if !q.want.Until.IsZero() {
		limit = min(limit, max(0, time.Until(q.want.Until)))
	}
	// The attempts end with ctx, but not those that are late when the caller has got
	// what it wanted: its context may be for no longer than that.
	all, quit := context.WithCancelCause(context.WithoutCancel(ctx))
	stay := context.AfterFunc(ctx, func() { quit(context.Cause(ctx)) })
	defer stay()
	if ctx.Err() != nil {
		quit(context.Cause(ctx))
	}
	each, stop := context.WithTimeoutCause(all, limit, errSilent)
	g.quit = func(err error) { quit(err); stop() }
	g.idle = make(chan struct{})
	var away atomic.Int64
	away.Store(int64(len(m.locks)))
	votes := make(chan answer, len(m.locks))
	for i, l := range m.locks {
		l.Client().Server.Go(func() {
			want := *q.want
			want.Try, want.Until = true, time.Time{}
			h, err := l.Enter(each, want)
			v := answer{member: i, h: h, err: err}
			if err == nil && !g.add(h) {
				l.Client().Server.Go(func() { _ = h.Release(context.Background()) })
				v = answer{member: i, err: errOutvoted}
			} else if err == nil {
				g.note.tell(h)
			}
			votes <- v
			if away.Add(-1) == 0 {
				close(g.idle)
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
			if !slices.ContainsFunc(cast, func(v answer) bool { return v.member == i }) {
				cast = append(cast, answer{member: i, err: errSilent})
			}
		}
	}
	g.quit(errOutvoted)
	g.undo(ctx)
	return nil, cast
}

// count returns the votes that were cast until there was a majority, which it
// begins the hold with, or until it was no use to wait for more.
func (g *Hold) count(votes <-chan answer, members int) (cast []answer, won bool) {
	var over <-chan time.Time
	start, yes, contested := time.Now(), 0, false
	for len(cast) < members {
		select {
		case v := <-votes:
			cast = append(cast, v)
			switch {
			case v.err == nil:
				yes++
			case errors.Is(v.err, fact.ErrBusy):
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
			// A caller that now waits for a silent member keeps what it has from others, as
			// they keep from it what they have, and nobody gets a majority.
			t := time.NewTimer(max(time.Since(start), leastGrace))
			defer t.Stop()
			over = t.C
		}
	}
	return cast, false
}

// stayIn keeps the callers behind this one waiting until the hold is over.
func (g *Hold) stayIn(place *wait.Place) {
	g.state.Mu.Lock()
	place.Show(g.holds[0])
	g.leave = place.Leave
	lost := g.state.Why != nil
	g.state.Mu.Unlock()
	if lost {
		g.goOut()
	}
}

// goOut lets the next caller of this process in.
func (g *Hold) goOut() {
	g.state.Mu.Lock()
	leave := g.leave
	g.leave = nil
	g.state.Mu.Unlock()
	if leave != nil {
		leave()
	}
}

// A result is what a failed round says.
type result struct {
	of       *lock.Spec // a member that is taken, or the first one,
	busy     fact.Busy  // as far as that says by whom
	taken    bool       // whether any is
	vain     bool       // so many stay for longer than the caller waits that there can be no majority in time
	answered bool       // a majority has said that it is ours, or whose
	silent   bool       // so many did not answer that there can be no majority
	errs     []error    // of the members that did not answer
	hopeless error      // there can be no majority until somebody acts
	same     error      // two members are one
}

func (q *acquisition) sum(votes []answer) result {
	t := result{of: q.m.locks[0], busy: fact.Busy{Name: q.m.locks[0].Name()}}
	var refused []error
	dumb, unasked, answers, stay := 0, 0, 0, 0
	owners := map[string]int{} // of the members that we had
	for _, v := range votes {
		if v.h != nil {
			owners[v.h.ID()] = v.member
		}
	}
	for _, v := range votes {
		if v.err == nil {
			answers++
			continue
		}
		l := q.m.locks[v.member]
		var busy fact.Busy
		switch {
		case errors.Is(v.err, errSilent), errors.Is(v.err, request.ErrUnavailable):
			dumb++
			t.errs = append(t.errs, memberError(l.Name(), q.silence(v.err)))
		case errors.As(v.err, &busy):
			if busy.Owner == "" {
				unasked++ // somebody else of this process is asking
				continue
			}
			answers++
			stays := !q.want.Until.IsZero() && busy.After > time.Until(q.want.Until)
			if stays {
				stay++
			}
			if t.busy.Owner == "" || stays && busy.After > t.busy.After {
				t.of, t.busy = l, busy
			}
			if other, ok := owners[busy.Owner]; ok {
				t.same = sameLock(q.m.locks[other].Name(), l.Name())
			}
		case errors.Is(v.err, fact.ErrNotAcknowledged), !request.Retryable(v.err) && !errors.Is(v.err, errOutvoted):
			refused = append(refused, memberError(l.Name(), v.err))
		}
	}
	most := len(q.m.locks) - q.m.need // so many may fail
	dumb += len(refused)
	t.silent, t.answered, t.vain = dumb > most, answers >= q.m.need, stay > most
	t.taken = unasked > 0 || t.busy.Owner != ""
	if len(refused) > most {
		t.hopeless = errors.Join(refused...)
	}
	t.errs = append(t.errs, refused...)
	return t
}

// silence is the error of a member that did not answer, without the end of the
// attempt, which looks like the end of the caller's context.
func (q *acquisition) silence(err error) error {
	var outage *request.OutageError
	if errors.As(err, &outage) {
		return outage.Cause
	}
	return fmt.Errorf("%w (%v)", errSilent, q.bound())
}

// error is that of a caller who does not try again. ended is that of its context,
// if this has ended.
func (t result) error(ended error) error {
	if t.silent || ended == nil && !t.taken && len(t.errs) > 0 {
		return &request.OutageError{Cause: errors.Join(t.errs...), Ended: ended}
	}
	t.busy.Owed, t.busy.Cause = 0, ended
	return t.busy
}
