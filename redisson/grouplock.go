package redisson

import (
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/bridge"
)

// GroupLock returns the lock of some values of a group: all of them are acquired
// or none, in one round trip, however many they are. Two of these locks exclude
// each other if they have a value in common. The order of the values and how often
// each is named do not matter; a lock of no values is refused by every method.
//
// It is Redisson's getMultiLock(group, values) if that client is configured with
// StringCodec, or with LongCodec or ByteArrayCodec for such values. Other codecs,
// Redisson's default included, make other fields of the same values. So every
// method refuses, with redlatch.ErrInvalid, if redlatch.Config.Redisson.Codec is
// another one, as it is after redissonyaml has read a file without StringCodec.
// The whole group is one hash in Redis, so it is in one slot of a cluster, and its
// values' locks wake each other's waiters. Do not use its name for another lock.
//
// A value is locked until a time that stands in Redis, which redlatch reads and
// writes by the server's clock and Redisson by its own: see
// redlatch.Redisson.MaxClockSkew.
//
// The lock does not pass between goroutines of this process without Redis.
// Acquiring the same values with a context that descends from a hold of them
// re-enters the lock; acquiring others of which some are in that hold is refused
// with redlatch.ErrReentry, as it would wait for itself. So it is for an owner
// that redlatch.WithOwner has made.
func GroupLock(c *redlatch.Client, name string, values []string, opts ...redlatch.LockOption) *redlatch.Lock {
	e := bridge.Open(c)
	return bridge.NewLock(c, string(redlatch.KindGroup), e.Locks.Group(e.Server.Key(name), values), opts).(*redlatch.Lock)
}
