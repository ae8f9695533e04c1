package multi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/lock/wait"
	"github.com/redlatch/redlatch/internal/request"
)

// A Spec is several locks that are acquired and released as one.
type Spec struct {
	Name string // the members' names

	locks []*lock.Spec // in the order in which they are acquired
	need  int          // how many make a hold
	red   bool         // a majority does
	queue *wait.Queue  // where callers of a RedLock wait for those of their process; nil: they do not
}

// All returns locks as one that is held when all are. They are in the order in
// which they are to be acquired, and have this name together.
func All(name string, locks []*lock.Spec) (*Spec, error) {
	for i, l := range locks {
		for _, other := range locks[:i] {
			if lock.Same(l, other) {
				return nil, invalid.Errorf("redlatch: MultiLock: lock %q is given twice; it would wait for itself", l.Name())
			}
		}
	}
	return &Spec{Name: name, locks: locks, need: len(locks)}, nil
}

// Acquire gets all of the locks, or the majority that makes a hold.
func (m *Spec) Acquire(ctx context.Context, want term.Params) (*Hold, error) {
	wish := m.locks[0].Wish // if it has a lease, all have that
	want.Lease, want.HasLease = wish.Lease, wish.HasLease
	want.Member, want.Since = true, time.Now()
	q := &acquisition{m: m, want: &want, about: m.locks[0]}
	acquire := q.all
	if m.red {
		acquire = q.most
	}
	g, err := acquire(ctx)
	if err != nil {
		return nil, q.about.Client().Server.Public(err)
	}
	return g, nil
}

// Each calls f for all members at the same time.
func (m *Spec) Each(f func(i int) error) error {
	errs := make([]error, len(m.locks))
	var wg sync.WaitGroup
	for i, l := range m.locks {
		wg.Go(func() {
			if err := f(i); err != nil {
				errs[i] = memberError(l.Name(), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// whileOpen calls f, which waits, with a context that ends with ctx, or as soon as
// so many clients are closed that nothing can be acquired any more. Whoever waits
// for one member does not hear of the other clients otherwise.
func (m *Spec) whileOpen(ctx context.Context, f func(ctx context.Context) error) error {
	open, end := context.WithCancel(ctx)
	defer end()
	for _, l := range m.locks {
		stop := l.Client().Server.OnStop(func() {
			if m.closed() != nil {
				end()
			}
		})
		defer stop()
	}
	err := f(open)
	if err != nil && open.Err() != nil && ctx.Err() == nil {
		return m.closed()
	}
	return err
}

// closed returns whose clients are closed, if they are so many that nothing can be
// acquired any more.
func (m *Spec) closed() error {
	var errs []error
	for _, l := range m.locks {
		if l.Client().Server.Closed() {
			errs = append(errs, memberError(l.Name(), request.ErrClosed))
		}
		if len(errs) > len(m.locks)-m.need {
			return join(errs)
		}
	}
	return nil
}

// memberError says whose error it is, where the error does not.
func memberError(name string, err error) error { return membersError([]string{name}, err) }

// mostNamed is how many members an error names, at most.
const mostNamed = 5

// membersError is memberError for those that were asked for with one request.
func membersError(names []string, err error) error {
	switch {
	case errors.Is(err, fact.ErrBusy) || errors.Is(err, holdctx.ErrLost):
		return err
	case len(names) == 1:
		return fmt.Errorf("%w (lock %q)", err, names[0])
	}
	return fmt.Errorf("%w (%d locks: %q)", err, len(names), names[:min(len(names), mostNamed)])
}

// An acquisition is one call that wants several locks as one.
type acquisition struct {
	m     *Spec
	want  *term.Params // of the whole, and of each member but for Until
	about *lock.Spec   // the member that was missing last: its client knows by whom it is held
	late  request.Lateness
	slow  int // how often a member was not had in time, although nobody was seen to have it
}

const (
	// memberPatience is how long a caller that has some members waits for the
	// next one, and longestPatience if servers are slow to answer.
	memberPatience  = 500 * time.Millisecond
	longestPatience = 4 * time.Second
	// longestRest is the longest pause before all begins again. Pauses are
	// random, and longer each time, so that of two callers that are in each
	// other's way one comes first.
	longestRest = 250 * time.Millisecond
)

// What to do about members that could not be had.
type verdict uint8

const (
	afterRest verdict = iota // begin again after a pause,
	atOnce                   // or without,
	never                    // or not at all
)

// all acquires every member, or none.
func (q *acquisition) all(ctx context.Context) (*Hold, error) {
	order, known := slices.Clone(q.m.locks), false
	for round := 0; ; round++ {
		if err := q.m.closed(); err != nil {
			return nil, err
		}
		g := newHold(ctx, q, len(order))
		missing, again, err := q.attempt(ctx, g, order, known)
		if err == nil {
			return g, nil
		}
		q.about = missing
		if q.want.Try || again == never || q.over() || !request.Retryable(err) || errors.Is(err, fact.ErrNotAcknowledged) {
			return nil, err
		}
		if again == afterRest {
			var busy fact.Busy
			if !errors.As(err, &busy) || busy.Owner == "" {
				q.slow++ // of two servers that both need longer one would always be too late
			}
			over := missing.Client().Publish(ctx, &missing.Lock, q.want.Since, q.want)
			err := q.rest(ctx, round, missing, busy, 0)
			if over(); err != nil {
				return nil, err
			}
		}
		order = append([]*lock.Spec{missing}, slices.DeleteFunc(slices.Clone(q.m.locks), func(l *lock.Spec) bool { return l == missing })...)
		known = true
	}
}

// publish makes the caller visible to who asks, as one that waits for all members,
// until over is called.
func (q *acquisition) publish(ctx context.Context) (over func()) {
	each := make([]func(), len(q.m.locks))
	for i, l := range q.m.locks {
		each[i] = l.Client().Publish(ctx, &l.Lock, q.want.Since, q.want)
	}
	return func() {
		for _, f := range each {
			f()
		}
	}
}

// over says whether the longest wait that the caller allows is over.
func (q *acquisition) over() bool { return !q.want.Until.IsZero() && time.Until(q.want.Until) <= 0 }

// rest pauses before the next round. busy says who has the member l, if that is
// why the last one failed; took is how long others could be in its way, at least.
func (q *acquisition) rest(ctx context.Context, round int, l *lock.Spec, busy fact.Busy, took time.Duration) error {
	d := max(took, min(10*time.Millisecond<<min(round, 10), longestRest))
	busy.Name = cmp.Or(busy.Name, l.Name())
	l.Client().Events.Refused(busy.Owner)
	return q.m.whileOpen(ctx, func(ctx context.Context) error {
		_, err := request.Pause(ctx, nil, nil, q.want.Until, time.Millisecond+rand.N(d)) //nolint:gosec // jitter
		return handoff.GaveUp(err, busy)
	})
}

// attempt is inTurn, after which nothing is held if it has failed: also if a
// Backoff of the user's panics.
func (q *acquisition) attempt(ctx context.Context, g *Hold, order []*lock.Spec, known bool) (missing *lock.Spec, again verdict, err error) {
	held := false
	defer func() {
		if !held {
			g.undo(ctx)
		}
	}()
	missing, again, err = q.inTurn(ctx, g, order, known)
	held = err == nil
	return missing, again, err
}

// inTurn acquires one lock after the other, or together with those that can be.
// known says that the first is known to be missing, and to be waited for alone.
// On failure it returns which lock could not be had.
func (q *acquisition) inTurn(ctx context.Context, g *Hold, order []*lock.Spec, known bool) (*lock.Spec, verdict, error) {
	for i, l := range order {
		if g.has(l) {
			continue // together with one before it
		}
		if i > 0 || !known {
			switch missing, err := q.together(ctx, g, order[i:], i == 0); {
			case g.has(l):
				continue
			case missing != nil && i == 0:
				return missing, atOnce, err // nothing is held: wait for that one
			case missing == nil && err != nil:
				return l, afterHaste(i), err
			}
		}
		h, err := q.enter(ctx, l, i == 0)
		if err == nil {
			g.add(h)
			continue
		}
		if owner := g.holderOf(err); owner != nil {
			err = memberError(l.Name(), sameLock(owner.Name(), l.Name()))
		}
		return l, afterHaste(i), err
	}
	err := g.level(ctx, q)
	if err == nil {
		err = g.begin()
	}
	if err == nil {
		return nil, never, nil
	}
	// Lost while the others were being acquired: too slow for the lease.
	if q.want.Try || !errors.Is(err, holdctx.ErrLost) {
		return order[0], never, err
	}
	if err := q.late.Again(ctx, order[0].Client().Server, q.want.Try, q.want.Until); err != nil {
		return order[0], never, handoff.GaveUp(err, fact.Busy{Name: order[0].Name()})
	}
	return order[0], atOnce, &request.OutageError{Cause: request.ErrTooLate}
}

// together takes the first of the locks, and those that can be taken with it: see
// Together.
func (q *acquisition) together(ctx context.Context, g *Hold, order []*lock.Spec, first bool) (missing *lock.Spec, err error) {
	want := q.params(!first)
	locks := lock.Joint(ctx, slices.DeleteFunc(slices.Clone(order), g.has))
	if locks == nil {
		return nil, nil
	}
	holds, missing, err := lock.Together(ctx, locks, &want)
	for _, h := range holds {
		g.add(h)
	}
	if err != nil && missing == nil {
		var names []string
		for _, l := range locks {
			names = append(names, l.Name())
		}
		err = membersError(names, err)
	}
	return missing, err
}

// afterHaste is the verdict on the i-th member. The first one was waited for
// without haste.
func afterHaste(i int) verdict {
	if i == 0 {
		return never
	}
	return afterRest
}

// enter acquires or re-enters a member. Only the first is waited for without
// haste: nothing is held meanwhile.
func (q *acquisition) enter(ctx context.Context, l *lock.Spec, first bool) (h *term.Hold, err error) {
	if q.over() {
		return nil, fact.Busy{Name: l.Name()}
	}
	enter := func(ctx context.Context) error {
		if h, err = l.Enter(ctx, q.params(!first)); err != nil {
			err = memberError(l.Name(), err)
		}
		return err
	}
	if q.want.Try || q.m.ofOne() {
		err = enter(ctx)
	} else {
		err = q.m.whileOpen(ctx, enter)
	}
	return h, err
}

// ofOne says whether all members are of one client, which whoever waits for one
// hears of.
func (m *Spec) ofOne() bool {
	return !slices.ContainsFunc(m.locks, func(l *lock.Spec) bool { return l.Client() != m.locks[0].Client() })
}

// params says how a member is wanted: in haste, if others of them are held. A
// caller that only tries does not wait anyway.
func (q *acquisition) params(haste bool) term.Params {
	want := *q.want
	limit := time.Now().Add(min(memberPatience<<min(q.slow, 10), longestPatience))
	if haste && !want.Try && (want.Until.IsZero() || limit.Before(want.Until)) {
		want.Until, want.Hasty = limit, true
	}
	return want
}

func sameLock(a, b string) error {
	return fmt.Errorf("%w: locks %q and %q of two clients are one lock in Redis: the clients have the same server", term.ErrReentry, a, b)
}
