package redlatch

import (
	"fmt"
	"hash/fnv"
	"math/bits"

	"github.com/redlatch/redlatch/internal/invalid"
)

// A StripedLock is a fixed number of locks that a larger key space shares: keys
// of one stripe exclude each other, and Redis sees no more locks than there are
// stripes. It is immutable and may be shared.
type StripedLock struct{ stripes []*Lock }

// StripedLock returns n locks, named "name:0" to "name:<n-1>". n is at least 1 and
// should be the same wherever the name is used, or two processes could lock one
// key with different locks; it is part of what the name means. Each lock has the
// options.
func (c *Client) StripedLock(name string, n int, opts ...PlainOption) *StripedLock {
	s := &StripedLock{}
	for i := range max(n, 1) {
		l := c.Lock(fmt.Sprintf("%s:%d", name, i), opts...)
		l.stripe = true
		s.stripes = append(s.stripes, l)
	}
	if n < 1 {
		s.stripes[0].spec.Err = invalid.Errorf("redlatch: StripedLock %q with %d stripes; it needs at least one", name, n)
	}
	return s
}

// For returns the lock of a key's stripe; of several keys, also if they share a
// stripe, a MultiLock of their different stripes, which knows the order in which
// it is safe to acquire them. Without a key, every method of the lock refuses
// that. Which stripe a key has never changes between versions of redlatch: the
// 64-bit FNV-1a hash of the key, mixed once more, times n, divided by 2^64.
func (s *StripedLock) For(keys ...string) *Lock {
	if len(keys) == 0 {
		m := &several{err: invalid.Errorf("redlatch: StripedLock.For needs at least one key")}
		return m.lock(KindMultiLock)
	}
	locks := make([]*Lock, len(keys))
	for i, key := range keys {
		locks[i] = s.stripes[s.index(key)]
	}
	if len(keys) == 1 {
		return locks[0]
	}
	return MultiLock(locks...)
}

func (s *StripedLock) index(key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	hi, _ := bits.Mul64(mix(h.Sum64()), uint64(len(s.stripes)))
	return hi
}

// mix spreads what differs in the low bits over all of them: FNV of short keys
// does not (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
