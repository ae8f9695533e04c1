package lock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/wire"
)

// groupLock is Redisson's getMultiLock(group, values).
var groupLock = &kind{
	take:    lua.GroupLockTake,
	release: lua.GroupLockRelease,
	renew:   lua.GroupLockRenew,
	force:   lua.GroupLockForce,
}

// A group is what a Lock of values of a group has more than others.
type group struct {
	values []string // sorted, each once
	fields []string // of the values in Redis
	line   string   // the name of its line
}

var errNoValues = errors.New("a group lock needs at least one value")

// Group returns the lock of some values of a group.
func (c *Locks) Group(groupName string, values []string) Spec {
	l := c.Plain(groupName)
	g := &group{values: slices.Compact(slices.Sorted(slices.Values(values)))}
	if len(g.values) == 0 && l.err == nil {
		l.err = fmt.Errorf("redlatch: group %q: %w", groupName, errNoValues)
	}
	l.more = append(l.more, strconv.Itoa(len(g.values)))
	for _, v := range g.values {
		g.fields = append(g.fields, wire.GroupField(v))
	}
	l.more = append(append(l.more, g.fields...), wire.Millis(c.Skew))
	// Callers that want the same values line up with each other. Those that want
	// others are kept apart by Redis, so no gate ever waits for another.
	g.line = groupName + "\x00" + strings.Join(g.fields, "\x00")
	l.kind, l.group, l.held = groupLock, g, heldKey(g.line)
	return l
}

// args adds to the arguments of a request what every script of this lock's kind
// needs.
func (l *Spec) args(args []string) []string {
	if l.more == nil {
		return args
	}
	return slices.Concat(args, l.more)
}

// lineName returns what callers must have in common to line up with each other.
func (l *Spec) lineName() string {
	if l.group != nil {
		return l.group.line
	}
	return l.name
}

// An overlap is a context key: it finds the nearest live hold of some of a
// group's values.
type overlap struct{ l *Spec }

func (o *overlap) with(h *Hold) bool {
	other := h.t.lock
	if other.group == nil || other.name != o.l.name || h.Err() != nil {
		return false
	}
	return o.l.group.overlaps(other.group)
}

// overlaps says whether two sets of values have one in common.
func (g *group) overlaps(other *group) bool {
	return slices.ContainsFunc(g.fields, func(field string) bool { return slices.Contains(other.fields, field) })
}

// refuse says why not for what the caller has itself.
func (o *overlap) refuse(h *Hold) error {
	return fmt.Errorf("%w: the context descends from a hold of values %q of group %q, which has some of %q in common but not all; acquire the same values, or others only",
		ErrReentry, h.t.lock.group.values, o.l.name, o.l.group.values)
}

// owns says whether a field is of one of the values, and of which.
func (g *group) owns(field string) (value string, ok bool) {
	i := slices.Index(g.fields, field)
	if i < 0 {
		return "", false
	}
	return g.values[i], true
}

// Seen is what tells the force script which holder the caller saw.
func (l *Spec) Seen(owner, value string) []string {
	if l.group != nil {
		return []string{wire.GroupField(value), owner}
	}
	return []string{owner}
}
