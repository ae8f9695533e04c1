package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redisson"
)

// A lockFlag is a flag of run that says which type of lock to take.
type lockFlag struct {
	name, usage string
	with        []string // other such flags that it goes together with
	lock        func(c *redlatch.Client, name string, o options) *redlatch.Lock
}

// lockFlags are those flags. The first that is set makes the lock, so what is an
// option of other types as well comes last. (--multi, which has names for its
// value, goes with none of them.)
var lockFlags = []lockFlag{
	{
		name: "fair", usage: "first come, first served, in all processes and languages",
		with: []string{"fenced"},
		lock: func(c *redlatch.Client, name string, o options) *redlatch.Lock { return c.FairLock(name, o.lock...) },
	},
	{
		name: "shared", usage: "hold a read-write lock together with others, while nobody holds it exclusively",
		lock: func(c *redlatch.Client, name string, o options) *redlatch.Lock {
			return c.ReadWriteLock(name, o.lock...).Read()
		},
	},
	{
		name: "exclusive", usage: "hold a read-write lock alone",
		with: []string{"fenced"},
		lock: func(c *redlatch.Client, name string, o options) *redlatch.Lock {
			return c.ReadWriteLock(name, o.lock...).Write()
		},
	},
	{
		name: "spin", usage: "try again and again instead of waiting for a message: for holders that send none",
		with: []string{"fenced"},
		lock: func(c *redlatch.Client, name string, o options) *redlatch.Lock {
			return redisson.SpinLock(c, name, nil, o.plain...)
		},
	},
	{
		name: "fenced", usage: "give the command a fencing token, in REDLATCH_TOKEN",
		lock: func(c *redlatch.Client, name string, o options) *redlatch.Lock { return c.Lock(name, o.plain...) },
	},
}

func (r *runner) addLockFlags(f *pflag.FlagSet) {
	r.types = make(map[string]*bool, len(lockFlags))
	for _, t := range lockFlags {
		r.types[t.name] = f.Bool(t.name, false, t.usage)
	}
	f.Var(&r.permits, "permits", "take N of the M permits of a semaphore, so that at most M/N commands run at once")
	f.Var((*list)(&r.multi), "multi", "take all of these locks or none, `NAME,NAME,...`, instead of one NAME")
	f.Var((*list)(&r.group), "group", "take these values of the group of locks NAME, `VALUE,VALUE,...`, all or none")
	f.Var((*list)(&r.redlock), "redlock", "take the lock on a majority of these servers, `URL,URL,URL`, which are independent of each other")
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
	others := r.otherTypes()
	for i, other := range others {
		for _, t := range lockFlags {
			if *r.types[t.name] {
				return usage("--%s and --%s contradict each other", other, t.name)
			}
		}
		if i > 0 {
			return usage("--%s and --%s contradict each other", others[0], other)
		}
		if r.atLeast.Duration > 0 {
			return usage("--hold-at-least and --%s contradict each other", other)
		}
	}
	for _, t := range []string{"fair", "shared", "exclusive"} {
		if *r.types[t] && r.atLeast.Duration > 0 {
			return usage("--hold-at-least and --%s contradict each other", t)
		}
	}
	if r.redlock != nil && len(r.redlock) < 3 {
		return usage("--redlock with %d servers fails when one of them is down; name three or more", len(r.redlock))
	}
	names := r.names()
	if len(names) == 0 {
		return usage("--multi needs the names of locks")
	}
	for i, name := range names {
		if err := checkName(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return usage("--multi names %s twice", quoted(name))
		}
	}
	return nil
}

// otherTypes are the flags that are set, and stand for something that goes with no
// other type.
func (r *runner) otherTypes() (set []string) {
	for _, t := range []struct {
		name string
		set  bool
	}{{"multi", r.multi != nil}, {"permits", r.permits.n > 0}, {"group", r.group != nil}, {"redlock", r.redlock != nil}} {
		if t.set {
			set = append(set, t.name)
		}
	}
	return set
}

// names are those of all the locks to take.
func (r *runner) names() []string {
	if r.multi != nil {
		return r.multi
	}
	return []string{r.name}
}

// take acquires what the flags ask for.
func (r *runner) take(ctx context.Context, c *redlatch.Client) (*redlatch.Hold, error) {
	if r.permits.n > 0 {
		return r.takePermits(ctx, c)
	}
	o := r.options()
	if r.multi != nil {
		var locks []*redlatch.Lock
		for _, name := range r.multi {
			locks = append(locks, c.Lock(name, o.plain...))
		}
		return redlatch.MultiLock(locks...).TryAcquire(ctx, r.most())
	}
	if r.redlock != nil {
		return r.takeMajority(ctx, o)
	}
	lock := c.Lock(r.name, o.plain...)
	if r.group != nil {
		lock = redisson.GroupLock(c, r.name, r.group, o.lock...)
	}
	for _, t := range lockFlags {
		if *r.types[t.name] {
			lock = t.lock(c, r.name, o)
			break
		}
	}
	return lock.TryAcquire(ctx, r.most())
}

// takeMajority takes the lock on a majority of servers.
func (r *runner) takeMajority(ctx context.Context, o options) (*redlatch.Hold, error) {
	var locks []*redlatch.Lock
	for _, c := range r.voters {
		locks = append(locks, c.Lock(r.name, o.plain...))
	}
	return redlatch.RedLock(locks...).TryAcquire(ctx, r.most())
}

// facts are what the environment says of a hold. Those of several locks stand in
// the order of the names that were given.
func (r *runner) facts(h *redlatch.Hold) []string {
	owner := map[string]string{}
	for _, m := range h.Members() {
		if known := owner[m.Name()]; known != "" {
			owner[m.Name()] = known + "," + m.ID() // of --redlock one for each server, of --permits one for each permit
			continue
		}
		owner[m.Name()] = m.ID()
	}
	var owners []string
	for _, name := range r.names() {
		owners = append(owners, owner[name])
	}
	facts := []string{"REDLATCH_NAME=" + strings.Join(r.names(), ","), "REDLATCH_OWNER=" + strings.Join(owners, ",")}
	if token := h.Token(); token > 0 {
		facts = append(facts, "REDLATCH_TOKEN="+strconv.FormatInt(token, 10))
	}
	return facts
}
