package lock

import (
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/internal/wire"
)

// values are what a lock of values of a group has more than others.
type values struct {
	names  []string // sorted, each once
	fields []string // of the values in Redis
}

// newValues returns values with these names.
func newValues(names []string) *values {
	vs := &values{names: slices.Compact(slices.Sorted(slices.Values(names)))}
	for _, name := range vs.names {
		vs.fields = append(vs.fields, wire.GroupField(name))
	}
	return vs
}

// values returns those of a lock that is a part of a group.
func (l *Lock) values() *values { return l.own.(*values) }

// releaseArgs returns the arguments of the release, of owner, channel and own
// subscriptions.
func (l *Lock) releaseArgs(args []string) []string {
	if l.kind.releaseArgs != nil {
		args = l.kind.releaseArgs(l, args)
	}
	return args
}

// An overlap is a context key: it finds the nearest live hold of some of a
// group's values.
type overlap struct{ l *Lock }

func (o overlap) with(h *Hold) bool {
	other := h.t.lock
	if !other.kind.part || other.Key != o.l.Key || h.Err() != nil {
		return false
	}
	return o.l.values().overlaps(other.values())
}

// Excludes says whether nobody can have both locks of one name: they are not of values of a group, or have one in common.
func (l *Lock) Excludes(other *Lock) bool {
	return !l.kind.part || !other.kind.part || l.values().overlaps(other.values())
}

// overlaps says whether two sets of values have one in common.
func (vs *values) overlaps(other *values) bool {
	return slices.ContainsFunc(vs.fields, func(field string) bool { return slices.Contains(other.fields, field) })
}

// refuse says why not for what the caller has itself.
func (o overlap) refuse(h *Hold) error {
	return fmt.Errorf("%w: the caller has values %q of group %q already, which overlap with %q and are not the same; acquire the same values, or others only",
		ErrReentry, h.t.lock.values().names, o.l.Name(), o.l.values().names)
}

// owns says whether a field is of one of the values, and of which.
func (vs *values) owns(field string) (value string, ok bool) {
	i := slices.Index(vs.fields, field)
	if i < 0 {
		return "", false
	}
	return vs.names[i], true
}

// Seen is what tells the force script which holder the caller saw.
func (l *Lock) Seen(owner, value string) []string {
	if l.kind.part {
		return []string{wire.GroupField(value), owner}
	}
	return []string{owner}
}
