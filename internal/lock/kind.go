package lock

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/nameclash"
	"github.com/redlatch/redlatch/internal/wire"
)

// plain is Redisson's RLock.
var plain = &kind{
	scripts: plainScripts,
	what:    claim.Lock,
	numbers: true,
}

// spinning is Redisson's getSpinLock: plain, but nobody is told of a release.
var spinning = &kind{
	scripts: plainScripts,
	what:    claim.Lock,
	pause:   spinPause,
}

var plainScripts = scripts{
	take:     lua.LockTake,
	release:  lua.LockRelease,
	keep:     lua.LockKeep,
	yield:    lua.LockYield,
	transfer: lua.LockTransfer,
	renew:    lua.LockRenew,
	force:    lua.LockForce,
	joint:    lua.MultiLockTake,
}

// fair is Redisson's RFairLock. What concerns the holder alone is as for a plain lock.
var fair = &kind{
	scripts: scripts{
		take:    lua.FairLockTake,
		release: lua.FairLockRelease,
		renew:   lua.LockRenew,
		force:   lua.FairLockForce,
	},
	what:        claim.Fair,
	releaseArgs: fairReleaseArgs,
	forcing:     fairForcing,
	queues:      true,
	gathers:     true,
}

// reading is Redisson's RReadWriteLock.readLock(). It does not pass between
// goroutines: they share it.
var reading = &kind{
	scripts: scripts{
		take:    lua.ReadWriteReadTake,
		release: lua.ReadWriteRelease,
		renew:   lua.ReadWriteRenew,
		force:   lua.ReadWriteReadForce,
	},
	what:   claim.ReadWrite,
	space:  readWrite,
	mode:   modeRead,
	under:  modeWrite,
	shared: true,
}

// writing is Redisson's RReadWriteLock.writeLock().
var writing = &kind{
	scripts: scripts{
		take:     lua.ReadWriteWriteTake,
		release:  lua.ReadWriteRelease,
		yield:    lua.ReadWriteWriteYield,
		transfer: lua.ReadWriteWriteTransfer,
		renew:    lua.ReadWriteRenew,
		force:    lua.ReadWriteWriteForce,
	},
	what:  claim.ReadWrite,
	space: readWrite,
	mode:  modeWrite,
	stops: true,
}

// group is Redisson's getMultiLock(group, values).
var group = &kind{
	scripts: scripts{
		take:    lua.GroupLockTake,
		release: lua.GroupLockRelease,
		renew:   lua.GroupLockRenew,
		force:   lua.GroupLockForce,
	},
	what: claim.Group,
	part: true,
}

// kinds are all of them.
var kinds = []*kind{plain, spinning, fair, reading, writing, group}

// Plain returns the reentrant lock that has this name in Redis.
func (c *Locks) Plain(key string) Spec {
	return Spec{locks: c, acquire: (*Locks).acquireAlone, Lock: newLock(c.env, plain, key, wire.Prefix(wire.LockChannel, key))}
}

// Numbered returns the reentrant lock that has this name in Redis of which every acquisition has a token. The counter has no
// TTL, so that it can be read for as long as somebody has the lock. If the server has lost the counter, it goes on with the
// server's clock, as one with a TTL does.
func (c *Locks) Numbered(key string) Spec {
	lock := c.Plain(key)
	lock.Want(Wish{Fenced: true}, nil)
	lock.KeepTokens()
	return lock
}

// Fair returns the lock that has this name in Redis and that callers get in the order in which they
// asked for it.
func (c *Locks) Fair(key string) Spec {
	lock := c.Plain(key)
	lock.kind, lock.twin = fair, nameclash.Queues
	lock.acquire = func(c *Locks, ctx context.Context, l *Lock, want Params) (*Hold, error) {
		return c.queuers.acquireFair(ctx, l, want)
	}
	lock.keys = []string{key, wire.Prefix(wire.LockQueue, key), wire.Prefix(wire.LockTimeout, key), wire.Prefix(wire.LockAlive, key)}
	return lock
}

// Read returns the read-write lock that has this name in Redis, to read.
func (c *Locks) Read(key string) Spec {
	lock := c.sideOf(key, reading)
	lock.acquire = func(c *Locks, ctx context.Context, l *Lock, want Params) (*Hold, error) {
		return acquireRead(ctx, c.table, l, want)
	}
	return lock
}

// Write returns the read-write lock that has this name in Redis, to write.
func (c *Locks) Write(key string) Spec { return c.sideOf(key, writing) }

// PreferWriters returns the same side of the lock with precedence for writers.
func (lock *Spec) PreferWriters() Spec {
	preferring := *lock
	preferring.writers, preferring.twin = wire.Prefix(wire.RWWriters, lock.Key), nameclash.Writers
	if lock.kind.shared {
		preferring.taking = []string{lock.Key, preferring.writers}
	}
	return preferring
}

func (c *Locks) sideOf(key string, k *kind) Spec {
	lock := c.Plain(key)
	lock.kind, lock.Entry.Space, lock.channel = k, k.space, wire.Prefix(wire.RWChannel, key)
	return lock
}

// Group returns the lock of some values of a group.
func (c *Locks) Group(key string, names []string) Spec {
	lock := c.Plain(key)
	vs := newValues(names)
	switch {
	case lock.Err != nil:
	case !wire.PlainCodec(c.Codec):
		lock.Err = invalid.Errorf("redlatch: group %q: Redisson clients with the codec %q have other names for its values, and would not exclude this lock; give them StringCodec, and say so under codec in Redisson's file (codec: !<org.redisson.client.codec.StringCodec> {}), or in Config.Redisson.Codec; do that, too, if no Redisson client uses the group", lock.Name(), c.Codec)
	case len(vs.fields) == 0:
		lock.Err = invalid.Errorf("redlatch: group %q has no values; a group lock needs at least one", lock.Name())
	}
	lock.more = slices.Concat([]string{strconv.Itoa(len(vs.fields))}, vs.fields, []string{wire.Millis(c.Skew)})
	// Callers that want the same values line up with each other. Those that want
	// others are kept apart by Redis, so no gate ever waits for another.
	lock.Entry.Name = key + "\x00" + strings.Join(vs.fields, "\x00")
	lock.kind, lock.own = group, vs
	return lock
}
