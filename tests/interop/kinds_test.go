package interop

import (
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// The kinds of lock that a story can be told with.
var (
	plain      = []string{peer.Plain, peer.NonReentrant}
	fair       = []string{peer.Fair, peer.FairOnce}
	listening  = append([]string{peer.Fenced, peer.Fair, peer.FairOnce, peer.Write}, plain...) // waiters are woken by messages
	exclusive  = append([]string{peer.Spin}, listening...)
	reentrantL = []string{peer.Plain, peer.Fenced, peer.Fair, peer.Write} // both
	reentrant  = append([]string{peer.Spin}, reentrantL...)
)

// has says whether a version of Redisson has this kind of lock.
func has(version, kind string) bool {
	if version != peer.Oldest {
		return true
	}
	switch kind {
	case peer.NonReentrant, peer.FairOnce, peer.Fenced, peer.Group:
		return false // since 4.4, 4.4, 3.19, 3.38
	}
	return true
}

// tells says whether stories of a kind are told with this cast. What all kinds
// have in common, the plain ones try with every driver.
func (c cast) tells() bool {
	switch c.kind {
	case peer.Plain, peer.NonReentrant:
		return has(c.version, c.kind)
	}
	if !has(peer.Oldest, c.kind) {
		return c.version == peer.Newest
	}
	return (c.driver == "goredis") == (c.version == peer.Oldest)
}

func goLock(c *redlatch.Client, kind, name string) *redlatch.Lock {
	switch kind {
	case peer.NonReentrant:
		return c.Lock(name, redlatch.NonReentrant())
	case peer.Fenced:
		return c.Lock(name, redlatch.Fenced())
	case peer.Spin:
		return redisson.SpinLock(c, name, nil)
	case peer.Fair:
		return c.FairLock(name)
	case peer.FairOnce:
		return c.FairLock(name, redlatch.NonReentrant())
	case peer.Read:
		return c.ReadWriteLock(name).Read()
	case peer.Write:
		return c.ReadWriteLock(name).Write()
	default:
		return c.Lock(name)
	}
}

// channelOf returns the channel on which an owner waits for a lock.
func channelOf(kind, name, owner string) string {
	switch kind {
	case peer.Fair, peer.FairOnce:
		return wire.FairChannel(name, owner)
	case peer.Read, peer.Write:
		return wire.Prefix(wire.RWChannel, name)
	case peer.Semaphore, peer.Permits:
		return wire.Prefix(wire.SemaphoreChannel, name)
	case peer.Latch:
		return wire.LatchChannel(name)
	}
	return wire.Prefix(wire.LockChannel, name)
}

// hash returns what the lock's hash must be if only this owner has it.
func (w *world) hash(owner, count string) map[string]string {
	switch w.kind {
	case peer.Read:
		return map[string]string{owner: count, wire.Mode: wire.ModeRead}
	case peer.Write:
		return map[string]string{wire.WriteField(owner): count, wire.Mode: wire.ModeWrite}
	}
	return map[string]string{owner: count}
}

// listeners returns how many subscriptions there are of the channels on which
// the lock's waiters listen.
func (w *world) listeners() int64 {
	w.t.Helper()
	return w.subscribers(w.sharded(), channelOf(w.kind, w.name, "*"))
}

// isTokens says whether a key counts fencing tokens: it stays for ever.
func isTokens(key string) bool { return strings.HasPrefix(key, wire.LockToken+":") }
