package lock

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock/fair"
	"github.com/redlatch/redlatch/internal/lock/readers"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/nameclash"
	"github.com/redlatch/redlatch/internal/wire"
)

// readWrite is the space of both sides of a read-write lock.
const readWrite = "read-write"

// plain is Redisson's RLock.
var plain = &term.Kind{
	Scripts: plainScripts,
	What:    claim.Lock,
	Numbers: true,
}

// spinning is Redisson's getSpinLock: plain, but nobody is told of a release.
var spinning = &term.Kind{
	Scripts: plainScripts,
	What:    claim.Lock,
	Pause:   spinPause,
}

var plainScripts = term.Scripts{
	Take:     lua.LockTake,
	Release:  lua.LockRelease,
	Keep:     lua.LockKeep,
	Yield:    lua.LockYield,
	Transfer: lua.LockTransfer,
	Renew:    lua.LockRenew,
	Force:    lua.LockForce,
	Joint:    lua.MultiLockTake,
}

// queueing is Redisson's RFairLock. What concerns the holder alone is as for a
// plain lock.
var queueing = &term.Kind{
	Scripts: term.Scripts{
		Take:    lua.FairLockTake,
		Release: lua.FairLockRelease,
		Renew:   lua.LockRenew,
		Force:   lua.FairLockForce,
	},
	What:        claim.Fair,
	ReleaseArgs: fair.ReleaseArgs,
	Forcing:     fair.Forcing,
	Queues:      true,
	Gathers:     true,
}

// reading is Redisson's RReadWriteLock.readLock(). It does not pass between
// goroutines: they share it.
var reading = &term.Kind{
	Scripts: term.Scripts{
		Take:    lua.ReadWriteReadTake,
		Release: lua.ReadWriteRelease,
		Renew:   lua.ReadWriteRenew,
		Force:   lua.ReadWriteReadForce,
	},
	What:   claim.ReadWrite,
	Space:  readWrite,
	Mode:   wire.ModeRead,
	Under:  wire.ModeWrite,
	Shared: true,
}

// writing is Redisson's RReadWriteLock.writeLock().
var writing = &term.Kind{
	Scripts: term.Scripts{
		Take:     lua.ReadWriteWriteTake,
		Release:  lua.ReadWriteRelease,
		Yield:    lua.ReadWriteWriteYield,
		Transfer: lua.ReadWriteWriteTransfer,
		Renew:    lua.ReadWriteRenew,
		Force:    lua.ReadWriteWriteForce,
	},
	What:  claim.ReadWrite,
	Space: readWrite,
	Mode:  wire.ModeWrite,
	Stops: true,
}

// group is Redisson's getMultiLock(group, values).
var group = &term.Kind{
	Scripts: term.Scripts{
		Take:    lua.GroupLockTake,
		Release: lua.GroupLockRelease,
		Renew:   lua.GroupLockRenew,
		Force:   lua.GroupLockForce,
	},
	What: claim.Group,
	Part: true,
}

// kinds are all of them.
var kinds = []*term.Kind{plain, spinning, queueing, reading, writing, group}

// Plain returns the reentrant lock that has this name in Redis.
func (c *Locks) Plain(key string) Spec {
	return Spec{locks: c, acquire: (*Locks).Alone, Lock: term.NewLock(c.Env, plain, key, wire.Prefix(wire.LockChannel, key))}
}

// Numbered returns the reentrant lock that has this name in Redis of which every
// acquisition has a token. The counter has no TTL, so that it can be read for as
// long as somebody has the lock. If the server has lost the counter, it goes on
// with the server's clock, as one with a TTL does.
func (c *Locks) Numbered(key string) Spec {
	lock := c.Plain(key)
	lock.Want(term.Wish{Fenced: true}, nil)
	lock.KeepTokens()
	return lock
}

// Fair returns the lock that has this name in Redis and that callers get in the
// order in which they asked for it.
func (c *Locks) Fair(key string) Spec {
	lock := c.Plain(key)
	lock.Kind, lock.Twin = queueing, nameclash.Queues
	lock.acquire = func(c *Locks, ctx context.Context, l *term.Lock, want term.Params) (*term.Hold, error) {
		return c.queuers.Acquire(ctx, l, want)
	}
	lock.Keys = []string{key, wire.Prefix(wire.LockQueue, key), wire.Prefix(wire.LockTimeout, key), wire.Prefix(wire.LockAlive, key)}
	return lock
}

// Read returns the read-write lock that has this name in Redis, to read.
func (c *Locks) Read(key string) Spec {
	lock := c.sideOf(key, reading)
	lock.acquire = func(c *Locks, ctx context.Context, l *term.Lock, want term.Params) (*term.Hold, error) {
		return readers.Acquire(ctx, c.Table, l, want)
	}
	return lock
}

// Write returns the read-write lock that has this name in Redis, to write.
func (c *Locks) Write(key string) Spec { return c.sideOf(key, writing) }

// PreferWriters returns the same side of the lock with precedence for writers.
func (lock *Spec) PreferWriters() Spec {
	preferring := *lock
	preferring.Writers, preferring.Twin = wire.Prefix(wire.RWWriters, lock.Key), nameclash.Writers
	if lock.Kind.Shared {
		preferring.Taking = []string{lock.Key, preferring.Writers}
	}
	return preferring
}

func (c *Locks) sideOf(key string, k *term.Kind) Spec {
	lock := c.Plain(key)
	lock.Kind, lock.Entry.Space, lock.Channel = k, k.Space, wire.Prefix(wire.RWChannel, key)
	return lock
}

// Group returns the lock of some values of a group.
func (c *Locks) Group(key string, names []string) Spec {
	lock := c.Plain(key)
	vs := term.NewValues(names)
	switch {
	case lock.Err != nil:
	case !wire.PlainCodec(c.Codec):
		lock.Err = invalid.Errorf("redlatch: group %q: Redisson clients with the codec %q have other names for its values, and would not exclude this lock; give them StringCodec, and say so under codec in Redisson's file (codec: !<org.redisson.client.codec.StringCodec> {}), or in Config.Redisson.Codec; do that, too, if no Redisson client uses the group", lock.Name(), c.Codec)
	case len(vs.Fields) == 0:
		lock.Err = invalid.Errorf("redlatch: group %q has no values; a group lock needs at least one", lock.Name())
	}
	lock.More = slices.Concat([]string{strconv.Itoa(len(vs.Fields))}, vs.Fields, []string{wire.Millis(c.Skew)})
	// Callers that want the same values line up with each other. Those that want
	// others are kept apart by Redis, so no gate ever waits for another.
	lock.Entry.Name = key + "\x00" + strings.Join(vs.Fields, "\x00")
	lock.Kind, lock.Own = group, vs
	return lock
}
