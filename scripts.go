package redlatch

import (
	"embed"

	"github.com/redlatch/redlatch/internal/script"
)

// The protocol stands in these files, each beside the Go code that runs it.
//
//go:embed *.lua *.luainc
var luaFiles embed.FS

var (
	infoScript = script.Load(luaFiles, "lock.info")
	ttlsScript = script.Load(luaFiles, "lock.ttls")
	multiTake  = script.Load(luaFiles, "multilock.take")
)

// A kind is what tells one type of exclusive lock from another.
type kind struct {
	name     string  // for Info
	take     *Script // the only one that can make an owner
	release  *Script // also undoes a take that nobody waits for any more
	turn     *Script // nil if it does not pass between goroutines of a process,
	transfer *Script // nor this one
	renew    *Script
	force    *Script
	fair     bool // who waits does so in a queue in Redis
}

// releaseArgs returns those of the arguments owner, channel and own subscriptions that
// the release takes. That of a fair lock gives the lock to one of those who wait.
func (k *kind) releaseArgs(args []string) []string {
	if k.fair {
		return args[:2]
	}
	return args
}

// Both sides of a read-write lock: an owner's holds are released and renewed
// together, whatever they are.
var (
	readWriteRelease = script.Load(luaFiles, "readwrite.release")
	readWriteRenew   = script.Load(luaFiles, "readwrite.renew")
	readReenter      = script.Load(luaFiles, "readwrite.read.reenter")
	writeDowngrade   = script.Load(luaFiles, "readwrite.downgrade")
)

// writeSide is Redisson's RReadWriteLock.writeLock().
var writeSide = &kind{
	name:     KindReadWrite,
	take:     script.Load(luaFiles, "readwrite.write.take"),
	release:  readWriteRelease,
	turn:     script.Load(luaFiles, "readwrite.write.turn"),
	transfer: script.Load(luaFiles, "readwrite.write.transfer"),
	renew:    readWriteRenew,
	force:    script.Load(luaFiles, "readwrite.write.force"),
}

// readSide is Redisson's RReadWriteLock.readLock(). It does not pass between
// goroutines: they share it.
var readSide = &kind{
	name:    KindReadWrite,
	take:    script.Load(luaFiles, "readwrite.read.take"),
	release: readWriteRelease,
	renew:   readWriteRenew,
	force:   script.Load(luaFiles, "readwrite.read.force"),
}

// plainLock is Redisson's RLock.
var plainLock = &kind{
	name:     KindLock,
	take:     script.Load(luaFiles, "lock.take"),
	release:  script.Load(luaFiles, "lock.release"),
	turn:     script.Load(luaFiles, "lock.turn"),
	transfer: script.Load(luaFiles, "lock.transfer"),
	renew:    script.Load(luaFiles, "lock.renew"),
	force:    script.Load(luaFiles, "lock.force"),
}

// fairLock is Redisson's RFairLock. What concerns the holder alone is as for the
// plain lock.
var fairLock = &kind{
	name:    KindFair,
	take:    script.Load(luaFiles, "fairlock.take"),
	release: script.Load(luaFiles, "fairlock.release"),
	renew:   plainLock.renew,
	force:   script.Load(luaFiles, "fairlock.force"),
	fair:    true,
}
