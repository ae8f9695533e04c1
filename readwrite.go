package redlatch

// A ReadWriteLock is the name of a lock that many may hold to read, or one to
// write: Redisson's RReadWriteLock. Like a Lock it is immutable, cheap, holds no
// resources and may be shared.
//
// Read and Write are Locks, with all that these can do. What each may be nested
// in, by a context that descends from a hold:
//
//	Write in Write   yes: Redis counts it
//	Read in Write    yes; when the outer hold is released first, the inner one
//	                 lives on, and other readers may enter beside it
//	Read in Read     yes, without asking Redis; several may overlap
//	Write in Read    no, ErrReentry at once: it would wait for its own outer hold
//
// Readers of one process share one read hold in Redis: all but the first enter
// without a round trip. While another goroutine or process waits to write, each
// process lets new readers in for a few milliseconds more at most, and then makes
// them wait. Where several processes read, a writer may wait longer: see
// PreferWriters.
type ReadWriteLock struct{ read, write *Lock }

// ReadWriteLock returns the read-write lock with this name, Redisson's
// getReadWriteLock. A name that Redis could not handle (empty, or with
// unbalanced braces) is refused by every method of the Locks. Both sides have the
// options, but for Fenced, which the read side ignores.
func (c *Client) ReadWriteLock(name string, opts ...LockOption) *ReadWriteLock {
	key := c.engines.Server.Key(name)
	return &ReadWriteLock{
		read:  newLock(c, KindReadWrite, c.engines.Locks.Read(key), opts),
		write: newLock(c, KindReadWrite, c.engines.Locks.Write(key), opts),
	}
}

// Name returns the lock's name.
func (rw *ReadWriteLock) Name() string { return rw.read.Name() }

// Read returns the lock to read: any number of holds at a time, as long as nobody
// writes. They have no fencing token, with the option Fenced neither. Expires of
// each hold is its own: one acquired with Lease ends with that lease, however long
// the hold in Redis lives that it shares with others. In Redis that lasts as long
// as the longest lease that anybody asked of it.
func (rw *ReadWriteLock) Read() *Lock { return rw.read }

// Write returns the lock to write: one hold at a time, and nobody reads but who
// is nested in it. In Redis its owner field is Hold.ID with ":write" behind.
func (rw *ReadWriteLock) Write() *Lock { return rw.write }

// PreferWriters returns the lock for which readers hold back while somebody waits
// to write, in whatever process. Without it a writer may wait for as long as
// several processes keep reading in turns; with it, readers may wait for as long
// as there are writers.
//
// It is a convention among those redlatch clients that use it, on both sides: a
// writer announces itself in redlatch_writers:{name} while it waits, and readers
// look there. Redisson does neither, and nor does a ReadWriteLock without
// PreferWriters. A caller that has a read hold already may always nest another one
// in it.
func (rw *ReadWriteLock) PreferWriters() *ReadWriteLock {
	return &ReadWriteLock{
		read:  &Lock{c: rw.read.c, kind: KindReadWrite, spec: rw.read.spec.PreferWriters()},
		write: &Lock{c: rw.write.c, kind: KindReadWrite, spec: rw.write.spec.PreferWriters()},
	}
}
