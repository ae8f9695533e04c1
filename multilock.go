package redlatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/request"
)

// A Multi is several locks that are acquired and released as one: all of them
// if MultiLock has made it, a majority if RedLock has. Like a Lock it is
// immutable, holds no resources and may be shared.
type Multi struct {
	locks []*Lock // in the order in which they are acquired
	need  int     // how many make a hold
	red   bool
	lobby *Lock // at whose line callers of a RedLock wait for those of their process; nil: they do not
	err   error // members that cannot be used
}

// MultiLock returns the locks as one that is held when every member is. The
// members are locks of any type, and of any clients.
//
// Free members of one client are taken with one request, in a cluster those of
// one slot; fenced ones, and those of other types than Lock and SpinLock, one by
// one.
//
// Whatever the order of the arguments, members are acquired by name, and those
// of one name by Config.Name, so that callers with some members in common do
// not wait for one another in a circle. Nor does a caller that has some members
// wait long for the next: if it is not to be had within half a second, those
// are released in reverse order and all begins again, after a short random
// pause, with the member that was missing.
//
// A lock that is given twice is refused, as are both sides of a read-write lock,
// group locks with a value in common, and a lock that two clients have on the
// same server: see Multi.Acquire.
func MultiLock(locks ...*Lock) *Multi {
	m := &Multi{locks: slices.Clone(locks), need: len(locks)}
	if m.err = checkMembers("MultiLock", locks); m.err != nil {
		return m
	}
	slices.SortStableFunc(m.locks, func(a, b *Lock) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.c.cfg.Name, b.c.cfg.Name), cmp.Compare(a.lineName(), b.lineName()))
	})
	for i, l := range m.locks {
		for _, other := range m.locks[:i] {
			if other.c == l.c && other.name == l.name && (l.group == nil || other.group == nil || l.group.overlaps(other.group)) {
				m.err = fmt.Errorf("redlatch: MultiLock: lock %q is given twice; it would wait for itself", l.name)
			}
		}
	}
	return m
}

func checkMembers(what string, locks []*Lock) error {
	if len(locks) == 0 {
		return fmt.Errorf("redlatch: %s needs at least one lock", what)
	}
	for i, l := range locks {
		switch {
		case l == nil:
			return fmt.Errorf("redlatch: %s: lock %d is nil", what, i)
		case l.err != nil:
			return l.err
		}
	}
	return nil
}

// Locks returns the members, in the order in which they are acquired.
func (m *Multi) Locks() []*Lock { return slices.Clone(m.locks) }

// Acquire waits for the members and returns the hold of them all, or of a
// majority. ctx and Wait bound the whole of it; Lease and Fenced hold for each
// member. Otherwise it is as Lock.Acquire: a ctx that descends from a live hold
// of a member, or of the Multi, re-enters what it holds.
//
// On failure nothing is held, and whatever was under way is undone in the
// background. The error is that of the member that could not be had, a
// *BusyError if it was taken; ErrReentry if two members turn out to be the same
// lock in Redis. Of a RedLock see there.
//
// Members neither are passed on to the next goroutine of this process without a
// request nor are had that way.
func (m *Multi) Acquire(ctx context.Context, opts ...Option) (*MultiHold, error) {
	return m.acquire(ctx, opts, false)
}

// Try acquires the members if that is possible at once. If one of them is taken
// (or so many that there is no majority) it returns a *BusyError, releases the
// others and changes nothing. It refuses the option Wait.
func (m *Multi) Try(ctx context.Context, opts ...Option) (*MultiHold, error) {
	return m.acquire(ctx, opts, true)
}

// Do acquires the members, calls f with the hold's end in its context, and
// releases them, also if f panics or calls runtime.Goexit. Its errors are those
// of Lock.Do.
func (m *Multi) Do(ctx context.Context, f func(ctx context.Context) error, opts ...Option) error {
	hold, err := m.acquire(ctx, opts, false)
	if err != nil {
		return err
	}
	return doUnder(ctx, hold, f)
}

// Info asks who holds the members, all at the same time, in the order of Locks.
// The errors of those that could not be asked are joined; their Info has
// nothing but the name.
func (m *Multi) Info(ctx context.Context) ([]Info, error) {
	infos := make([]Info, len(m.locks))
	err := m.each(func(i int, l *Lock) (err error) {
		infos[i], err = l.Info(ctx)
		infos[i].Name = l.name
		return err
	})
	return infos, err
}

// ForceRelease releases every member whoever holds it, as Lock.ForceRelease
// does, and returns whether anybody held one. Errors are joined.
func (m *Multi) ForceRelease(ctx context.Context) (bool, error) {
	held := make([]bool, len(m.locks))
	err := m.each(func(i int, l *Lock) (err error) {
		held[i], err = l.ForceRelease(ctx)
		return err
	})
	return slices.Contains(held, true), err
}

// each calls f for all members at the same time.
func (m *Multi) each(f func(i int, l *Lock) error) error {
	if m.err != nil {
		return m.err
	}
	errs := make([]error, len(m.locks))
	var wg sync.WaitGroup
	for i, l := range m.locks {
		wg.Go(func() {
			if err := f(i, l); err != nil {
				errs[i] = memberError(l, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// memberError says whose error it is, where the error does not.
func memberError(l *Lock, err error) error {
	var busy *BusyError
	var lost *LostError
	if errors.As(err, &busy) || errors.As(err, &lost) {
		return err
	}
	return fmt.Errorf("%w (lock %q)", err, l.name)
}

func (m *Multi) acquire(ctx context.Context, opts []Option, once bool) (*MultiHold, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	if m.err != nil {
		return nil, m.err
	}
	o, err := collect(opts, once)
	if err != nil {
		return nil, err
	}
	o.member = true
	for _, l := range m.locks {
		if at := l.c.callSite(2); at != 0 {
			o.at = at
			break
		}
	}
	q := &quest{m: m, o: &o, until: deadlineOf(time.Now(), &o)}
	q.option = o.Option
	q.option.wait, q.option.hasWait = 0, false
	var g *holding
	if m.red {
		g, err = q.most(ctx)
	} else {
		g, err = q.all(ctx)
	}
	if err != nil {
		return nil, err
	}
	return newMultiHold(g), nil
}

// A quest is one call that wants a Multi.
type quest struct {
	m      *Multi
	o      *options
	option Option // for each member
	until  time.Time
	late   request.Lateness
}

const (
	// memberPatience is how long a caller that has some members waits for the
	// next one.
	memberPatience = 500 * time.Millisecond
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
func (q *quest) all(ctx context.Context) (*holding, error) {
	order, known := q.m.Locks(), false
	for round := 0; ; round++ {
		g := newHolding(ctx, q, len(order))
		missing, again, err := q.inTurn(ctx, g, order, known)
		if err == nil {
			return g, nil
		}
		g.undo(ctx)
		if q.o.once || again == never || q.over() || !IsRetryable(err) || errors.Is(err, ErrNotAcknowledged) {
			return nil, err
		}
		if again == afterRest {
			var busy *BusyError
			errors.As(err, &busy)
			if err := q.rest(ctx, round, busy, 0); err != nil {
				return nil, err
			}
		}
		order = append([]*Lock{missing}, slices.DeleteFunc(q.m.Locks(), func(l *Lock) bool { return l == missing })...)
		known = true
	}
}

// over says whether the time given with Wait is over.
func (q *quest) over() bool { return !q.until.IsZero() && time.Until(q.until) <= 0 }

// rest pauses before the next round. busy, if it is not nil, says why the last
// one failed; took is how long others could be in its way, at least.
func (q *quest) rest(ctx context.Context, round int, busy *BusyError, took time.Duration) error {
	d := max(took, min(10*time.Millisecond<<min(round, 10), longestRest))
	p := patience{c: q.m.locks[0].c, name: q.m.locks[0].name}
	if busy != nil {
		p.name, p.owner, p.ttl = busy.Name, busy.Owner, busy.TTL
	}
	_, err := request.Pause(ctx, nil, nil, q.until, time.Millisecond+rand.N(d)) //nolint:gosec // jitter
	return p.asBusy(err)
}

// inTurn acquires one lock after the other, or together with those that can be.
// known says that the first is known to be missing, and to be waited for alone.
// On failure it returns which lock could not be had.
func (q *quest) inTurn(ctx context.Context, g *holding, order []*Lock, known bool) (*Lock, verdict, error) {
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
				return l, afterHaste(i), memberError(l, err)
			}
		}
		h, err := q.enter(ctx, l, i == 0)
		if err == nil {
			g.add(h)
			continue
		}
		if owner := g.holderOf(err); owner != nil {
			err = sameLock(owner.t.lock, l)
		}
		return l, afterHaste(i), memberError(l, err)
	}
	err := g.level(ctx, q.option)
	if err == nil {
		err = g.begin()
	}
	if err == nil {
		return nil, never, nil
	}
	// Lost while the others were being acquired: too slow for the lease.
	if q.o.once || !errors.Is(err, ErrLost) {
		return order[0], never, err
	}
	p := patience{c: order[0].c, name: order[0].name, until: q.until}
	if err := q.late.Again(ctx, p.c.server, q.o.once, q.until); err != nil {
		return order[0], never, p.asBusy(err)
	}
	return order[0], atOnce, &request.OutageError{Cause: request.ErrTooLate}
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
func (q *quest) enter(ctx context.Context, l *Lock, first bool) (*hold, error) {
	if q.o.once {
		return l.enter(ctx, []Option{q.option}, true)
	}
	d := memberPatience
	if !q.until.IsZero() {
		left := time.Until(q.until)
		if left <= 0 {
			return nil, &BusyError{Name: l.name}
		}
		if first {
			d = left
		}
		d = min(d, left)
	} else if first {
		return l.enter(ctx, []Option{q.option}, false)
	}
	return l.enter(ctx, []Option{q.option, Wait(d)}, false)
}

func sameLock(a, b *Lock) error {
	return fmt.Errorf("%w: locks %q and %q of two clients are one lock in Redis: the clients have the same server", ErrReentry, a.name, b.name)
}
