package peer

import "strings"

// The kinds of lock that are made of several; see [Thread.Multi], [Thread.Red],
// [Thread.Group].
const (
	Multi = "multi"
	Red   = "red"
	Group = "group"
)

// parts are what such a lock is made of.
type parts struct {
	members []member
	values  []string
}

type member struct {
	Client string `json:"client"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
}

// Multi returns Redisson's MultiLock of these locks, for this thread. A lock may
// be of another client; what thread it was made for does not matter.
func (t Thread) Multi(locks ...Lock) Lock { return t.composed(Multi, locks) }

// Red is Multi for Redisson's RedLock.
func (t Thread) Red(locks ...Lock) Lock { return t.composed(Red, locks) }

func (t Thread) composed(kind string, locks []Lock) Lock {
	l := t.Lock(kind, "")
	var names []string
	for _, m := range locks {
		l.members = append(l.members, member{Client: m.thread.client.handle, Kind: m.kind, Name: m.name})
		names = append(names, m.name)
	}
	l.name = strings.Join(names, " ") // for messages
	return l
}

// Group returns Redisson's lock of these values of a group, getMultiLock with a
// name and values, which it has since 3.38.
func (t Thread) Group(name string, values ...string) Lock {
	l := t.Lock(Group, name)
	l.values = values
	return l
}
