package main

import (
	"context"
	"slices"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
)

// An acquirer is a lock, of whatever type.
type acquirer interface {
	Acquire(ctx context.Context, opts ...redlatch.Option) (*redlatch.Hold, error)
}

// A lockFlag is a flag of run that says which type of lock to take.
type lockFlag struct {
	name, usage string
	with        []string // other such flags that it goes together with
	lock        func(c *redlatch.Client, name string) acquirer
}

// lockFlags are those flags. The first that is set makes the lock, so what is an
// option of other types as well comes last.
var lockFlags = []lockFlag{
	{
		name: "spin", usage: "try again and again instead of waiting for a message: for holders that send none",
		with: []string{"fenced"},
		lock: func(c *redlatch.Client, name string) acquirer { return c.SpinLock(name, nil) },
	},
	{
		name: "fenced", usage: "give the command a fencing token, in REDLATCH_TOKEN",
		with: []string{"spin"},
		lock: func(c *redlatch.Client, name string) acquirer { return c.FencedLock(name) },
	},
}

func (r *runner) addLockFlags(f *pflag.FlagSet) {
	r.types = make(map[string]*bool, len(lockFlags))
	for _, t := range lockFlags {
		r.types[t.name] = f.Bool(t.name, false, t.usage)
	}
}

// checkLockFlags refuses types that do not go together.
func (r *runner) checkLockFlags() error {
	for i, t := range lockFlags {
		for _, other := range lockFlags[i+1:] {
			if *r.types[t.name] && *r.types[other.name] && !slices.Contains(t.with, other.name) {
				return usage("--%s and --%s contradict each other", t.name, other.name)
			}
		}
	}
	return nil
}

// lock returns the lock that the flags ask for.
func (r *runner) lock(c *redlatch.Client) acquirer {
	for _, t := range lockFlags {
		if *r.types[t.name] {
			return t.lock(c, r.name)
		}
	}
	return c.Lock(r.name)
}
