package lock

import (
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/script"
)

// A kind is all that tells one type of lock from another. No other code asks which
// type it works for: it asks the kind what is so. A field that is not set says that
// the lock is in this like a plain one.
type kind struct {
	scripts

	// pause says how long to pause after that many tries for a term. nil: until
	// somebody tells of a release, or the lock's TTL is over.
	pause func(t *term, tries int) time.Duration
	// releaseArgs returns what the release takes of the arguments owner, channel and
	// own subscriptions.
	releaseArgs func(l *Lock, args []string) []string
	// forcing returns the first arguments of the script that frees the lock whoever has it, if that is more than the
	// channel; those whom the caller has seen follow.
	forcing func(l *Lock) []string

	what    string // as users read it
	space   string // locks of one name and another space share nothing here
	gathers bool   // ids that are given up at the same time are released with one request
	numbers bool   // with tokens it is shown as a type of its own, as it is in Redisson
	part    bool   // others have other parts of what has the lock's name: values of a group
	mode    string // of those who have the lock, if that is stored; another mode is another lock
	under   string // an owner that has the lock in this mode, too, has it alone
	shared  bool   // many may have it: they share a term
	stops   bool   // while somebody waits for it, nobody new shares
}

// scripts are those of a kind.
type scripts struct {
	take     *script.Script // the only one that can make an owner
	release  *script.Script // also undoes a take that nobody waits for any more
	keep     *script.Script // ends a hold whose lock is to stay for a while; nil: there is no such hold
	yield    *script.Script // nil if it does not pass between goroutines of a process,
	transfer *script.Script // nor this one
	renew    *script.Script
	force    *script.Script
	joint    *script.Script // takes several locks of this kind at once; nil: there is none
}

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
