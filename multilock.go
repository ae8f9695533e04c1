package redlatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/multi"
)

// several are locks that are acquired and released as one.
type several struct {
	members []*Lock     // in the order in which they are acquired
	in      *multi.Spec // the same
	err     error       // members that cannot be used
}

// MultiLock returns the locks as one that is held when every member is. The
// members are locks of any type, of any clients, each with its own options. But
// all of them have the same Lease, or none has one, and none has MinHold: other
// members are refused with ErrInvalid. A MultiLock among them stands for its
// members; a RedLock is refused.
//
// Free members of one client are taken with one request, in a cluster those of one
// slot; fenced ones, and those of other types than Lock and redisson.SpinLock, one
// by one.
//
// Whatever the order of the arguments, members are acquired by name, and those of
// one name by Config.ServerName, so that callers with some members in common do
// not wait for one another in a circle. Nor does a caller that has some members
// wait long for the next: if it is not to be had within half a second (or a few,
// if servers are slow), those are released in reverse order and all begins again,
// after a short random pause, with the member that was missing.
//
// A lock that is given twice is refused with ErrInvalid, as are both sides of a
// read-write lock, and group locks with a value in common. A stripe of a
// StripedLock counts once, however many keys it is given for, if with the same
// options. A lock that two clients have on the same server is refused with
// ErrReentry: see Lock.Acquire.
func MultiLock(locks ...*Lock) *Lock {
	m := &several{}
	for _, l := range locks {
		if l != nil && l.several != nil && l.kind == KindMultiLock { // with all its members
			m.members = append(m.members, l.several.members...)
			if m.err == nil {
				m.err = l.several.err
			}
		} else {
			m.members = append(m.members, l)
		}
	}
	if m.err == nil {
		m.err = checkMembers("MultiLock", m.members)
	}
	if m.err == nil {
		m.members = once(m.members)
		slices.SortStableFunc(m.members, func(a, b *Lock) int { return lock.Compare(&a.spec, &b.spec) })
		m.in, m.err = multi.All(m.name(), specs(m.members))
	}
	return m.lock(KindMultiLock)
}

// once returns locks with each stripe once.
func once(locks []*Lock) (all []*Lock) {
	for _, l := range locks {
		if !slices.ContainsFunc(all, func(x *Lock) bool {
			return x.stripe && l.stripe && x.spec.Wish == l.spec.Wish && lock.Same(&x.spec, &l.spec)
		}) {
			all = append(all, l)
		}
	}
	return all
}

// lock wraps several locks for the user.
func (m *several) lock(kind Kind) *Lock { return &Lock{kind: kind, several: m} }

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
			return invalid.Errorf("redlatch: %s: member %d is nil", what, i+1)
		case l.several != nil && l.several.err != nil:
			return l.several.err
		case l.kind == KindRedLock:
			return invalid.Errorf("redlatch: %s: %q is a RedLock, which cannot be a member; give single locks", what, l.Name())
		case l.several != nil:
			return invalid.Errorf("redlatch: %s: %q is several locks; each member is a single lock, of a client of its own", what, l.Name())
		case l.spec.Err != nil:
			return l.spec.Err
		}
		switch wish, first := l.spec.Wish, locks[0].spec.Wish; {
		case wish.AtLeast > 0:
			return invalid.Errorf("redlatch: %s: lock %q has MinHold, and there is nothing in several locks that could stay when they are released; leave the option out", what, l.Name())
		case wish.HasLease != first.HasLease || (wish.HasLease && wish.Lease != first.Lease):
			return invalid.Errorf("redlatch: %s: lock %q has %s and lock %q has %s; give all the same Lease, or none", what, locks[0].Name(), leaseOf(first), l.Name(), leaseOf(wish))
		}
	}
	return nil
}

func leaseOf(w term.Wish) string {
	if !w.HasLease {
		return "no Lease"
	}
	return fmt.Sprintf("Lease(%v)", w.Lease)
}

// acquire is Lock.acquire.
func (m *several) acquire(ctx context.Context, kind Kind, p term.Params, bad error) (context.Context, *Hold, error) {
	if m.err != nil {
		bad = m.err
	}
	var a *acquisition
	if r := m.report(); r != nil {
		a = r.begin(ctx, hooks.Acquisition{Name: m.name(), Kind: string(kind)}, p.Try)
		ctx = a.ctx
	}
	var g *multi.Hold
	var hold *Hold
	if bad == nil {
		g, bad = m.in.Acquire(ctx, p)
	}
	if bad == nil {
		hold = newHold(g)
	}
	if a != nil {
		a.multi(g, bad)
	}
	return ctx, hold, bad
}

// report is that of the first member's client which observes acquisitions, or nil.
func (m *several) report() *reporter {
	for _, l := range m.members {
		if c := l.client(); c != nil && c.report.hooks.Acquisitions.Load() {
			return &c.report
		}
	}
	return nil
}

// sites says whether a member's client tells call sites to anybody.
func (m *several) sites() bool {
	return slices.ContainsFunc(m.members, func(l *Lock) bool {
		c := l.client()
		return c != nil && c.report.hooks.Sites.Load()
	})
}

// client returns the client of a lock, or nil if that is not one lock.
func (l *Lock) client() *Client {
	if l == nil {
		return nil
	}
	return l.c
}

// name returns the members' names.
func (m *several) name() string {
	if m.in != nil {
		return m.in.Name
	}
	var names []string
	for _, l := range m.members {
		if l != nil && !slices.Contains(names, l.Name()) {
			names = append(names, l.Name())
		}
	}
	return strings.Join(names, ",")
}
