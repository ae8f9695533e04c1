package locktest

import (
	"github.com/redlatch/redlatch"
)

// TypesOfLock are those that take a hash for themselves.
var TypesOfLock = map[string]func(c *redlatch.Client, name string) *redlatch.Lock{
	"lock":  (*redlatch.Client).Lock,
	"spin":  func(c *redlatch.Client, name string) *redlatch.Lock { return c.SpinLock(name, nil) },
	"fair":  (*redlatch.Client).FairLock,
	"read":  func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Read() },
	"write": func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Write() },
	"group": func(c *redlatch.Client, name string) *redlatch.Lock { return c.GroupLock(name, "a", "b") },
}

// MemberKinds are the locks of every kind that may be members, each by its name.
var MemberKinds = map[string]func(c *redlatch.Client, name string) *redlatch.Lock{
	"lock":         (*redlatch.Client).Lock,
	"fair":         (*redlatch.Client).FairLock,
	"spin":         func(c *redlatch.Client, name string) *redlatch.Lock { return c.SpinLock(name, nil) },
	"fenced":       (*redlatch.Client).FencedLock,
	"group":        func(c *redlatch.Client, name string) *redlatch.Lock { return c.GroupLock(name, "x", "y") },
	"write":        func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Write() },
	"read":         func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Read() },
	"non-re-entry": (*redlatch.Client).NonReentrantLock,
}
