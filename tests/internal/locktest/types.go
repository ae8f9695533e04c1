package locktest

import (
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redisson"
)

// TypesOfLock are those that take a hash for themselves.
var TypesOfLock = map[string]func(c *redlatch.Client, name string) *redlatch.Lock{
	"lock":  func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name) },
	"spin":  func(c *redlatch.Client, name string) *redlatch.Lock { return redisson.SpinLock(c, name, nil) },
	"fair":  func(c *redlatch.Client, name string) *redlatch.Lock { return c.FairLock(name) },
	"read":  func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Read() },
	"write": func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Write() },
	"group": func(c *redlatch.Client, name string) *redlatch.Lock {
		return redisson.GroupLock(c, name, []string{"a", "b"})
	},
}

// MemberKinds are the locks of every kind that may be members, each by its name.
var MemberKinds = map[string]func(c *redlatch.Client, name string) *redlatch.Lock{
	"lock":   func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name) },
	"fair":   func(c *redlatch.Client, name string) *redlatch.Lock { return c.FairLock(name) },
	"spin":   func(c *redlatch.Client, name string) *redlatch.Lock { return redisson.SpinLock(c, name, nil) },
	"fenced": func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name, redlatch.Fenced()) },
	"group": func(c *redlatch.Client, name string) *redlatch.Lock {
		return redisson.GroupLock(c, name, []string{"x", "y"})
	},
	"write":        func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Write() },
	"read":         func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Read() },
	"non-re-entry": func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name, redlatch.NonReentrant()) },
}
