package redlatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/multi"
)

// A Multi is several locks that are acquired and released as one: all of them
// if MultiLock has made it, a majority if RedLock has. Like a Lock it is
// immutable, holds no resources and may be shared.
type Multi struct {
	members []*Lock     // in the order in which they are acquired
	in      *multi.Spec // the same
	kind    Kind        // for events
	err     error       // members that cannot be used
}

// MultiLock returns the locks as one that is held when every member is. The
// members are locks of any type, and of any clients, each with its own options. But all of them
// have the same Lease, or none has one, and none has MinHold: other members are refused with ErrInvalid.
//
// Free members of one client are taken with one request, in a cluster those of
// one slot; fenced ones, and those of other types than Lock and redisson.SpinLock, one by
// one.
//
// Whatever the order of the arguments, members are acquired by name, and those
// of one name by Config.ServerName, so that callers with some members in common do
// not wait for one another in a circle. Nor does a caller that has some members
// wait long for the next: if it is not to be had within half a second (or a few, if
// servers are that slow to answer), those are released in reverse order and all begins
// again, after a short random pause, with the member that was missing.
//
// A lock that is given twice is refused with ErrInvalid, as are both sides of a read-write
// lock, and group locks with a value in common. A stripe of a StripedLock counts once,
// however many keys it is given for, if with the same options. A lock that two clients have on the same
// server is refused with ErrReentry: see Multi.Acquire.
func MultiLock(locks ...*Lock) *Multi {
	m := &Multi{members: slices.Clone(locks), kind: KindMultiLock}
	if m.err = checkMembers("MultiLock", locks); m.err != nil {
		return m
	}
	m.members = m.members[:0]
	for _, l := range locks {
		if !slices.ContainsFunc(m.members, func(x *Lock) bool {
			return x.stripe && l.stripe && x.spec.Wish() == l.spec.Wish() && lock.Same(&x.spec, &l.spec)
		}) {
			m.members = append(m.members, l)
		}
	}
	slices.SortStableFunc(m.members, func(a, b *Lock) int { return lock.Compare(&a.spec, &b.spec) })
	m.in, m.err = multi.All(specs(m.members))
	return m
}

func specs(locks []*Lock) []*lock.Spec {
	all := make([]*lock.Spec, len(locks))
	for i, l := range locks {
		all[i] = &l.spec
	}
	return all
}

func checkMembers(what string, locks []*Lock) error {
	if len(locks) == 0 {
		return invalid.Errorf("redlatch: %s needs at least one lock", what)
	}
	for i, l := range locks {
		switch {
		case l == nil:
			return invalid.Errorf("redlatch: %s: lock %d is nil", what, i)
		case l.spec.Err() != nil:
			return l.spec.Err()
		}
		switch wish, first := l.spec.Wish(), locks[0].spec.Wish(); {
		case wish.AtLeast > 0:
			return invalid.Errorf("redlatch: %s: lock %q has MinHold, and there is nothing in several locks that could stay when they are released; leave the option out", what, l.Name())
		case wish.HasLease != first.HasLease || wish.Lease != first.Lease:
			return invalid.Errorf("redlatch: %s: lock %q has %s and lock %q has %s; give all the same Lease, or none", what, locks[0].Name(), leaseOf(first), l.Name(), leaseOf(wish))
		}
	}
	return nil
}

func leaseOf(w lock.Wish) string {
	if !w.HasLease {
		return "no Lease"
	}
	return fmt.Sprintf("Lease(%v)", w.Lease)
}

// Locks returns the members, in the order in which they are acquired.
func (m *Multi) Locks() []*Lock { return slices.Clone(m.members) }

// Acquire waits for the members and returns the hold of them all, or of a
// majority. ctx bounds the whole of it. Otherwise it is as Lock.Acquire: a ctx that descends from a live hold
// of a member, or of the Multi, re-enters what it holds.
//
// On failure nothing is held, and whatever was in flight is undone in the
// background. The error is that of the member that could not be had, a
// *BusyError if it was taken; ErrReentry if two members turn out to be the same
// lock in Redis. Of a RedLock see there.
//
// Members are never handed off within the process: each acquisition asks the server.
func (m *Multi) Acquire(ctx context.Context) (*MultiHold, error) {
	_, hold, err := m.acquire(ctx, args.Patience{}, m.callSite())
	return hold, err
}

// TryAcquire does what Acquire does, and waits no longer than wait. A negative wait is ErrInvalid. With a wait of 0 it acquires the members
// if that is possible at once. If one of them is taken
// (or so many that there is no majority) it returns a *BusyError, releases the
// others and changes nothing.
func (m *Multi) TryAcquire(ctx context.Context, wait time.Duration) (*MultiHold, error) {
	_, hold, err := m.acquire(ctx, args.AtMost(wait), m.callSite())
	return hold, err
}

// Do acquires the members, calls f with the hold's end in its context, and
// releases them, also if f panics or calls runtime.Goexit. Its errors are those
// of Lock.Do.
func (m *Multi) Do(ctx context.Context, f func(ctx context.Context) error) error {
	if f == nil {
		return args.ErrNilFunction
	}
	ctx, hold, err := m.acquire(ctx, args.Patience{}, m.callSite())
	if err != nil {
		return err
	}
	return lock.Do(ctx, hold, f)
}

// TryDo does what Do does, and waits no longer than wait: see Lock.TryDo.
func (m *Multi) TryDo(ctx context.Context, wait time.Duration, f func(ctx context.Context) error) (ran bool, err error) {
	if f == nil {
		return false, args.ErrNilFunction
	}
	ctx, hold, err := m.acquire(ctx, args.AtMost(wait), m.callSite())
	if err != nil {
		return false, err
	}
	return true, lock.Do(ctx, hold, f)
}

// callSite is Client.callSite of the first member's client that tells it to anybody.
func (m *Multi) callSite() callsite.Site {
	for _, l := range m.members {
		if l != nil && l.c.report.hooks.Sites.Load() {
			return callsite.Caller(2)
		}
	}
	return 0
}

// acquire returns the hold, and the context with which it was acquired.
func (m *Multi) acquire(ctx context.Context, wait args.Patience, at callsite.Site) (context.Context, *MultiHold, error) {
	if ctx == nil {
		return nil, nil, args.ErrNilContext
	}
	p, err := params(wait, at)
	if m.err != nil {
		err = m.err
	}
	var a *acquisition
	if r := m.report(); r != nil {
		a = r.begin(ctx, hooks.Acquisition{Name: m.name(), Kind: string(m.kind)}, p.Try)
		ctx = a.ctx
	}
	var g *multi.Hold
	var hold *MultiHold
	if err == nil {
		g, err = m.in.Acquire(ctx, p)
	}
	if err == nil {
		hold = newMultiHold(g)
	}
	if a != nil {
		a.multi(g, err)
	}
	return ctx, hold, err
}

// report is that of the first member's client which observes acquisitions, or nil.
func (m *Multi) report() *reporter {
	for _, l := range m.members {
		if l != nil && l.c.report.hooks.Acquisitions.Load() {
			return &l.c.report
		}
	}
	return nil
}

// name returns the members' names.
func (m *Multi) name() string {
	var names []string
	for _, l := range m.members {
		if l != nil && !slices.Contains(names, l.Name()) {
			names = append(names, l.Name())
		}
	}
	return strings.Join(names, ",")
}
