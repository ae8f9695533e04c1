package locktest

import (
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/bridge"
)

// EachWith returns the MultiLock of the same members with these options more.
func EachWith(m *redlatch.Multi, opts ...redlatch.PlainOption) *redlatch.Multi {
	members := m.Locks()
	for i, l := range members {
		members[i] = With(l, opts...)
	}
	return redlatch.MultiLock(members...)
}

// With returns the same lock with these options more: for tests that are given locks of all kinds.
func With(l *redlatch.Lock, opts ...redlatch.PlainOption) *redlatch.Lock {
	in := bridge.OpenLock(l)
	kind, spec, had := in.Kind, *in.Spec, in.Spec.Wish()
	wish, err := bridge.Wish(opts)
	if !wish.HasLease {
		wish.Lease, wish.HasLease = had.Lease, had.HasLease
	}
	wish.AtLeast = max(wish.AtLeast, had.AtLeast)
	wish.Fenced = wish.Fenced || had.Fenced
	wish.NonReentrant = wish.NonReentrant || had.NonReentrant
	spec.Want(wish, err)
	if kind == string(redlatch.KindLock) && wish.Fenced {
		kind = string(redlatch.KindFenced)
	}
	return bridge.NewLock(in.Of, kind, spec, nil).(*redlatch.Lock) //nolint:forcetypeassert // as it says
}
