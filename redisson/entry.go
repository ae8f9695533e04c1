package redisson

import "github.com/redlatch/redlatch/internal/wire"

// An Entry is one entry of a Redisson object that has a lock for each of its
// entries: RMap, RSet, RMultimap or one of their relatives. Its methods return the
// names of these locks, and of the semaphores and latches, for this client:
//
//	client.Lock(redisson.Entry{Object: "accounts", Key: "42"}.Lock()) // accounts.getLock("42")
//
// They are whole names in Redis, which a redlatch.Config.Prefix would change: use
// a client without one. They begin with the object's name in braces, unless it has
// braces itself: redlatch acl '{accounts}:' prints the rights for them, and
// redlatch acl accounts does not.
//
// The Java service must use the StringCodec for the object: with another one,
// Redisson's default included, it hashes other bytes, and the names are not those
// of its locks. Nothing here can tell, because Java gives an object its codec:
// getMap("accounts", StringCodec.INSTANCE). Without that it is the one of the
// file, and package redissonyaml warns of a file that names another one. The names
// are those of Redisson 3.18 to 4.7.
type Entry struct {
	Object string // the name of the map, set or multimap
	Key    string // the key in a map or multimap, the value in a set
}

// Lock returns the name of getLock(key), for redlatch.Client.Lock.
func (e Entry) Lock() string { return wire.Entry(e.Object, e.Key, "lock") }

// FairLock returns the name of getFairLock(key), for redlatch.Client.FairLock.
func (e Entry) FairLock() string { return wire.Entry(e.Object, e.Key, "fairlock") }

// ReadWriteLock returns the name of getReadWriteLock(key), for
// redlatch.Client.ReadWriteLock.
func (e Entry) ReadWriteLock() string { return wire.Entry(e.Object, e.Key, "rw_lock") }

// Semaphore returns the name of getSemaphore(key), for semaphore.New.
func (e Entry) Semaphore() string { return wire.Entry(e.Object, e.Key, "semaphore") }

// ExpirableSemaphore returns the name of getPermitExpirableSemaphore(key), for
// semaphore.NewExpirable.
func (e Entry) ExpirableSemaphore() string {
	return wire.Entry(e.Object, e.Key, "permitexpirablesemaphore")
}

// CountDownLatch returns the name of getCountDownLatch(key), which is one for
// latch.New; not in a cluster, where Redisson's channel for it is in another slot
// than its count.
func (e Entry) CountDownLatch() string { return wire.Entry(e.Object, e.Key, "countdownlatch") }
