package lock

import (
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/script"
)

// A kind is what tells one type of exclusive lock from another.
type kind struct {
	take     *script.Script // the only one that can make an owner
	release  *script.Script // also undoes a take that nobody waits for any more
	turn     *script.Script // nil if it does not pass between goroutines of a process,
	transfer *script.Script // nor this one
	renew    *script.Script
	force    *script.Script
	fair     bool // who waits does so in a queue in Redis
}

// releaseArgs returns what the release takes of the arguments owner, channel and own
// subscriptions. That of a fair lock gives the lock to one of those who wait, and takes
// any number of owners.
func (k *kind) releaseArgs(args []string) []string {
	if k.fair {
		return []string{args[1], args[0]}
	}
	return args
}

// writeSide is Redisson's RReadWriteLock.writeLock().
var writeSide = &kind{
	take:     lua.ReadWriteWriteTake,
	release:  lua.ReadWriteRelease,
	turn:     lua.ReadWriteWriteTurn,
	transfer: lua.ReadWriteWriteTransfer,
	renew:    lua.ReadWriteRenew,
	force:    lua.ReadWriteWriteForce,
}

// readSide is Redisson's RReadWriteLock.readLock(). It does not pass between
// goroutines: they share it.
var readSide = &kind{
	take:    lua.ReadWriteReadTake,
	release: lua.ReadWriteRelease,
	renew:   lua.ReadWriteRenew,
	force:   lua.ReadWriteReadForce,
}

// plainLock is Redisson's RLock.
var plainLock = &kind{
	take:     lua.LockTake,
	release:  lua.LockRelease,
	turn:     lua.LockTurn,
	transfer: lua.LockTransfer,
	renew:    lua.LockRenew,
	force:    lua.LockForce,
}

// fairLock is Redisson's RFairLock. What concerns the holder alone is as for the
// plain lock.
var fairLock = &kind{
	take:    lua.FairLockTake,
	release: lua.FairLockRelease,
	renew:   plainLock.renew,
	force:   lua.FairLockForce,
	fair:    true,
}
