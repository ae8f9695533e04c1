package locktest

import (
	"cmp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/bridge"
)

// With returns the same lock with these options more, each member of a MultiLock
// if it is one: for tests that are given locks of all kinds.
func With(l *redlatch.Lock, opts ...redlatch.PlainOption) *redlatch.Lock {
	if members := Members(l); len(members) > 0 {
		for i, m := range members {
			members[i] = With(m, opts...)
		}
		return redlatch.MultiLock(members...)
	}
	in := bridge.OpenLock(l)
	kind, spec, had := in.Kind, *in.Spec, in.Spec.Wish
	wish, err := bridge.Wish(in.Spec.Client().Server, opts)
	if wish.Lease == 0 { // neither a Lease nor a Watchdog
		wish.Lease, wish.HasLease = had.Lease, had.HasLease
	}
	wish.AtLeast, wish.MaxHold = max(wish.AtLeast, had.AtLeast), max(wish.MaxHold, had.MaxHold)
	wish.Fenced = wish.Fenced || had.Fenced
	wish.NonReentrant = wish.NonReentrant || had.NonReentrant
	wish.Note = cmp.Or(wish.Note, had.Note)
	spec.Want(wish, err)
	if kind == string(redlatch.KindLock) && wish.Fenced {
		kind = string(redlatch.KindFenced)
	}
	return bridge.NewLock(in.Of, kind, spec, nil).(*redlatch.Lock) //nolint:forcetypeassert // as it says
}

// Members returns the locks that a MultiLock or a RedLock consists of, in the
// order in which they are acquired.
func Members(l *redlatch.Lock) []*redlatch.Lock {
	all := bridge.OpenLock(l).Members
	members := make([]*redlatch.Lock, len(all))
	for i, m := range all {
		members[i] = m.Self.(*redlatch.Lock) //nolint:forcetypeassert // as it says
	}
	return members
}
