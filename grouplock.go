package redlatch

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
	name:    KindGroup,
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

// GroupLock returns the lock of some values of a group: all of them are acquired
// or none, in one round trip, however many they are. Two of these locks exclude
// each other if they have a value in common. The order of the values and how
// often each is named do not matter; a GroupLock without values is refused by
// every method.
//
// It is Redisson's getMultiLock(group, values) if that client is configured with
// StringCodec; other codecs make other fields of the same values. The whole group
// is one hash in Redis, so it is in one slot of a cluster, and its values' locks
// wake each other's waiters. Do not use its name for another lock.
//
// A value is locked until a time that stands in Redis, which redlatch reads and
// writes by the server's clock and Redisson by its own: see Config.MaxClockSkew.
//
// The lock does not pass between goroutines of this process without Redis.
// Acquiring the same values with a context that descends from a hold of them
// re-enters the lock; acquiring others of which some are in that hold is refused
// with ErrReentry, as it would wait for itself.
func (c *Client) GroupLock(groupName string, values ...string) *Lock {
	l := c.Lock(groupName)
	g := &group{values: slices.Compact(slices.Sorted(slices.Values(values)))}
	if len(g.values) == 0 && l.err == nil {
		l.err = fmt.Errorf("redlatch: group %q: %w", groupName, errNoValues)
	}
	l.more = append(l.more, strconv.Itoa(len(g.values)))
	for _, v := range g.values {
		g.fields = append(g.fields, wire.GroupField(v))
	}
	l.more = append(append(l.more, g.fields...), wire.Millis(c.cfg.MaxClockSkew))
	// Callers that want the same values line up with each other. Those that want
	// others are kept apart by Redis, so no gate ever waits for another.
	g.line = groupName + "\x00" + strings.Join(g.fields, "\x00")
	l.kind, l.group, l.held = groupLock, g, heldKey(g.line)
	return l
}

// args adds to the arguments of a request what every script of this lock's kind
// needs.
func (l *Lock) args(args []string) []string {
	if l.more == nil {
		return args
	}
	return slices.Concat(args, l.more)
}

// lineName returns what callers must have in common to line up with each other.
func (l *Lock) lineName() string {
	if l.group != nil {
		return l.group.line
	}
	return l.name
}

// only leaves in info what concerns these values, and gives them their names.
func (g *group) only(info Info) Info {
	holders := info.Holders
	info.Holders, info.TTL = nil, 0
	for _, h := range holders {
		if i := slices.Index(g.fields, h.Value); i >= 0 {
			h.Value = g.values[i]
			info.Holders = append(info.Holders, h)
			info.TTL = max(info.TTL, h.TTL)
		}
	}
	slices.SortFunc(info.Holders, func(x, y Holder) int { return strings.Compare(x.Value, y.Value) })
	return info
}

// seen is what tells the force script which holders the caller saw.
func (l *Lock) seen(h Holder) []string {
	if l.group != nil {
		return []string{wire.GroupField(h.Value), h.Owner}
	}
	return []string{h.Owner}
}

// An overlap is a context key: it finds the nearest live hold of some of a
// group's values.
type overlap struct{ l *Lock }

func (o *overlap) with(h *hold) bool {
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
func (o *overlap) refuse(h *hold) error {
	return fmt.Errorf("%w: the context descends from a hold of values %q of group %q, which has some of %q in common but not all; acquire the same values, or others only",
		ErrReentry, h.t.lock.group.values, o.l.name, o.l.group.values)
}
