package acl

import (
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/wire"
)

// A Place is a channel, or a key beside the one that has the object's name.
type Place struct {
	Of    func(name string) string // * stands for what varies
	By    string
	watch bool // whoever only looks uses it, too
}

func prefix(p string) func(name string) string {
	return func(name string) string { return wire.Prefix(p, name) }
}

func suffix(s string) func(name string) string {
	return func(name string) string { return wire.Suffix(name, s) }
}

// Channels are those that objects have. The first one is every lock's.
var Channels = []Place{
	{prefix(wire.LockChannel), Locks, false},
	{func(name string) string { return wire.FairChannel(name, "*") }, "fair locks", false},
	{prefix(wire.RWChannel), "read-write locks", false},
	{prefix(wire.SemaphoreChannel), "semaphores and permits", false},
	{wire.LatchChannel, "latches", false},
	{prefix(wire.BarrierChannel), "barriers", false},
	{func(string) string { return wire.Control + ":*" }, "force release", false},
	{func(string) string { return wire.Asked }, "Participants", true},
	{func(string) string { return wire.Answers }, "Participants", true},
}

// SideKeys are the keys that objects have beside the one of their name.
var SideKeys = []Place{
	{prefix(wire.LockQueue), "fair locks", true},
	{prefix(wire.LockTimeout), "fair locks", true},
	{prefix(wire.LockAlive), "fair locks", false},
	{prefix(wire.LockToken), "fencing tokens", true},
	{prefix(wire.Revoke), "force release", false},
	{suffix("*:rwlock_timeout:*"), "read locks", true},
	{prefix(wire.RWWriters), "PreferWriters", false},
	{func(name string) string { return wire.Session(name, "*", "*") }, "semaphores, permits, latches and rate limiters", false},
	{suffix(wire.PermitTimeout), "permits", true},
	{suffix(wire.RateValue), "rate limiters", true},
	{suffix(wire.RateValue + ":*"), "rate limiters", true},
	{suffix(wire.RatePermits), "rate limiters", true},
	{suffix(wire.RatePermits + ":*"), "rate limiters", true},
	{prefix(wire.RateRecount), "rate limiters", true},
	{func(name string) string { return wire.Prefix(wire.RateRecount, name) + ":*" }, "rate limiters", true},
	{prefix(wire.Barrier), "barriers", true},
	{func(name string) string { return wire.Prefix(wire.Barrier, name) + ":*" }, "barriers", true},
	{prefix(wire.BarrierAlive), "barriers", true},
	{prefix(wire.Fence), "package fence", false},
	{func(string) string { return wire.ClientKey("*") }, "the identity of clients", true},
}

// patterns returns the glob patterns of what lies in these places for all names
// that begin with a prefix.
func patterns(prefix string, places []Place) (all []string) {
	prefix = wire.Literally(prefix)
	names := []string{prefix + "*"}
	if !strings.Contains(prefix, "{") {
		names = append(names, prefix+"*{*}*") // their keys get no braces of their own
	}
	for _, name := range names {
		for _, p := range places {
			all = append(all, p.Of(name))
		}
	}
	return all
}

// minimal leaves out what others of the patterns cover.
func minimal(patterns []string) (all []string) {
	for i, p := range patterns {
		if !slices.ContainsFunc(patterns[:i], func(q string) bool { return covers(q, p) }) {
			all = append(all, p)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(p string) bool {
		return slices.ContainsFunc(all, func(q string) bool { return q != p && covers(q, p) })
	})
}

// covers says whether a pattern matches all that another one matches. Of those
// with escapes it knows only that they cover themselves.
func covers(pattern, other string) bool {
	if pattern == other || pattern == "*" {
		return true
	}
	if strings.Contains(pattern+other, `\`) {
		return false
	}
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(other, parts[0])
	if !ok || last == 0 {
		return false
	}
	for _, part := range parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[last])
}
