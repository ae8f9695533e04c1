package term

import (
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/internal/wire"
)

// Values are what a lock of values of a group has more than others.
type Values struct {
	names  []string // sorted, each once
	Fields []string // of the values in Redis
}

// NewValues returns values with these names.
func NewValues(names []string) *Values {
	vs := &Values{names: slices.Compact(slices.Sorted(slices.Values(names)))}
	for _, name := range vs.names {
		vs.Fields = append(vs.Fields, wire.GroupField(name))
	}
	return vs
}

// values returns those of a lock that is a part of a group.
func (l *Lock) values() *Values { return l.Own.(*Values) }

// releaseArgs returns the arguments of the release, of owner, channel and own
// subscriptions.
func (l *Lock) releaseArgs(args []string) []string {
	if l.Kind.ReleaseArgs != nil {
		args = l.Kind.ReleaseArgs(l, args)
	}
	return args
}

// An overlap is a context key: it finds the nearest live hold of some of a
// group's values.
type overlap struct{ l *Lock }

func (o overlap) with(h *Hold) bool {
	other := h.t.Lock
	if !other.Kind.Part || other.Key != o.l.Key || h.Err() != nil {
		return false
	}
	return o.l.values().overlaps(other.values())
}

// Excludes says whether nobody can have both locks of one name: they are not of
// values of a group, or have one in common.
func (l *Lock) Excludes(other *Lock) bool {
	return !l.Kind.Part || !other.Kind.Part || l.values().overlaps(other.values())
}

// overlaps says whether two sets of values have one in common.
func (vs *Values) overlaps(other *Values) bool {
	return slices.ContainsFunc(vs.Fields, func(field string) bool { return slices.Contains(other.Fields, field) })
}

// refuse says why not for what the caller has itself.
func (o overlap) refuse(h *Hold) error {
	return fmt.Errorf("%w: the caller has values %q of group %q already, which overlap with %q and are not the same; acquire the same values, or others only",
		ErrReentry, h.t.Lock.values().names, o.l.Name(), o.l.values().names)
}

// owns says whether a field is of one of the values, and of which.
func (vs *Values) owns(field string) (value string, ok bool) {
	i := slices.Index(vs.Fields, field)
	if i < 0 {
		return "", false
	}
	return vs.names[i], true
}

// Seen is what tells the force script which holder the caller saw.
func (l *Lock) Seen(owner, value string) []string {
	if l.Kind.Part {
		return []string{wire.GroupField(value), owner}
	}
	return []string{owner}
}
