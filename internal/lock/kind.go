package lock

import (
	"context"

	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/script"
)

// A kind is all that tells one type of lock from another. No other code asks which
// type it works for: it asks the kind what is so. A field that is not set says that
// the lock is in this like a plain one.
type kind struct {
	take     *script.Script // the only one that can make an owner
	release  *script.Script // also undoes a take that nobody waits for any more
	yield    *script.Script // nil if it does not pass between goroutines of a process,
	transfer *script.Script // nor this one
	renew    *script.Script
	force    *script.Script
	joint    *script.Script // takes several locks of this kind at once; nil: there is none

	// acquire waits for a lock that the caller does not have already.
	acquire func(c *Locks, ctx context.Context, l *Spec, o Params) (*Hold, error)
	// releaseArgs returns what the release takes of the arguments owner, channel and
	// own subscriptions.
	releaseArgs func(args []string) []string

	space   string // locks of one name and another space share nothing here
	gathers bool   // ids that are given up at the same time are released with one request
	part    bool   // others have other parts of what has the lock's name: values of a group
	mode    string // of those who have the lock, if that is stored; another mode is another lock
	under   string // an owner that has the lock in this mode, too, has it alone
	shared  bool   // many may have it: they share a term
	stops   bool   // while somebody waits for it, nobody new shares
}

// plain is Redisson's RLock.
var plain = &kind{
	take:     lua.LockTake,
	release:  lua.LockRelease,
	yield:    lua.LockYield,
	transfer: lua.LockTransfer,
	renew:    lua.LockRenew,
	force:    lua.LockForce,
	joint:    lua.MultiLockTake,
	acquire:  (*Locks).acquireAlone,
}

// fair is Redisson's RFairLock. What concerns the holder alone is as for a plain lock.
var fair = &kind{
	take:        lua.FairLockTake,
	release:     lua.FairLockRelease,
	renew:       lua.LockRenew,
	force:       lua.FairLockForce,
	acquire:     (*Locks).acquireFair,
	releaseArgs: fairReleaseArgs,
	gathers:     true,
}

// reading is Redisson's RReadWriteLock.readLock(). It does not pass between
// goroutines: they share it.
var reading = &kind{
	take:    lua.ReadWriteReadTake,
	release: lua.ReadWriteRelease,
	renew:   lua.ReadWriteRenew,
	force:   lua.ReadWriteReadForce,
	acquire: (*Locks).acquireRead,
	space:   readWrite,
	mode:    modeRead,
	under:   modeWrite,
	shared:  true,
}

// writing is Redisson's RReadWriteLock.writeLock().
var writing = &kind{
	take:     lua.ReadWriteWriteTake,
	release:  lua.ReadWriteRelease,
	yield:    lua.ReadWriteWriteYield,
	transfer: lua.ReadWriteWriteTransfer,
	renew:    lua.ReadWriteRenew,
	force:    lua.ReadWriteWriteForce,
	acquire:  (*Locks).acquireAlone,
	space:    readWrite,
	mode:     modeWrite,
	stops:    true,
}

// group is Redisson's getMultiLock(group, values).
var group = &kind{
	take:    lua.GroupLockTake,
	release: lua.GroupLockRelease,
	renew:   lua.GroupLockRenew,
	force:   lua.GroupLockForce,
	acquire: (*Locks).acquireAlone,
	part:    true,
}

// kinds are all of them, and spaces theirs.
var (
	kinds  = []*kind{plain, fair, reading, writing, group}
	spaces = []string{"", readWrite}
)
