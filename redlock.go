package redlatch

import (
	"slices"

	"github.com/redlatch/redlatch/internal/multi"
)

// RedLock returns the locks as one that is held when a majority of the members is.
// The members are locks, most often of one name, of as many clients, each of a
// Redis of its own: independent primaries, not nodes of one cluster nor a primary
// and its replicas. It works as long as a majority of them does. Two members of
// one client, and several locks as one, are refused with ErrInvalid. Their options
// are as for MultiLock.
//
// What it does not give: fencing tokens that rise (each member counts by itself),
// order, or safety if a majority does not keep what it has confirmed. A server
// that restarts without having written the lock to disk (appendfsync always), or
// fails over to a replica without it, votes again; keep it away for a lease then.
// Like every lease it trusts the servers' clocks to run as fast as ours, give or
// take 2 %. Redisson has deprecated its RedLock. docs/guarantees.md says more.
//
// All members are tried at the same time, and Acquire returns with the first
// majority. None is given longer to answer than a twentieth of the lease; those
// that answer later but in time join the hold, which is live while a majority of
// members is. A caller that gets no majority releases what it has and tries again
// after a random pause: it does not wait by messages. Goroutines of one process
// that want the same members get them in the order in which they asked; between
// processes there is no order, and no turns.
//
// The error is a *BusyError if others have a majority or there is none, and
// ErrUnavailable if a majority of the servers did not answer for
// Config.OutageTimeout (of the first client), or until the caller gave up, or did
// not answer a call that does not wait.
func RedLock(locks ...*Lock) *Lock {
	m := &several{members: slices.Clone(locks)}
	if m.err = checkMembers("RedLock", locks); m.err != nil {
		return m.lock(KindRedLock)
	}
	m.in, m.err = multi.Majority(m.name(), specs(m.members))
	return m.lock(KindRedLock)
}
