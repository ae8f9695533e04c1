// Package golden is what the golden files in internal/wire say: what one version
// of Redisson does to Redis, call by call. tests/interop records it from the real
// one, and tests/clients compares redlatch with it.
package golden

import "time"

// Dir is where the files are, seen from a package of tests.
const Dir = "../../internal/wire/testdata/"

// A File is about one version of Redisson.
type File struct {
	Redisson string   `json:"redisson"`
	Vectors  []Vector `json:"vectors"`
}

// A Vector is one life of a lock or a synchronizer.
type Vector struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// WatchdogMs is Redisson's lockWatchdogTimeout.
	WatchdogMs int64 `json:"watchdogMs"`

	Steps []Step `json:"steps"`
}

// A Step is one call and what it left.
type Step struct {
	// Do is lock, tryLock, unlock, forceUnlock, lockAndGetToken,
	// tryLockAndGetToken, getToken; waits, a lock that has to wait and goes on
	// doing so; renewal, no call but the watchdog; or pause, no call at all.
	Do      string   `json:"do"`
	Thread  string   `json:"thread"`
	Kind    string   `json:"kind,omitempty"`   // if it is not the vector's
	Values  []string `json:"values,omitempty"` // of a group
	WaitMs  int64    `json:"waitMs,omitempty"`
	LeaseMs int64    `json:"leaseMs"` // 0: the watchdog keeps it
	Args

	// Result is true, false, a number, or the exception; of a call that returns
	// nothing it is true.
	Result string `json:"result"`
	Token  int64  `json:"token,omitempty"`
	// Differs is why redlatch, on purpose, does otherwise from here on.
	Differs string `json:"differs,omitempty"`
	// Then is the thread whose wait the call ended; if there are several, a
	// space is between.
	Then string `json:"then,omitempty"`
	// Scripts are the calls of scripts, in order, each with the commands that
	// it ran. If several waits ended, theirs are left out: their order is any.
	Scripts []Script `json:"scripts"`
	// Subscribed are the channels that were subscribed.
	Subscribed []string `json:"subscribed,omitempty"`
	// Messages are channel and payload, with a space between, of what was
	// published.
	Messages []string `json:"messages,omitempty"`
	// After are the keys after the call, without unlock latches, which Redisson
	// deletes at its leisure.
	After map[string]Hash `json:"after"`
}

// Lease is LeaseMs.
func (s Step) Lease() time.Duration { return time.Duration(s.LeaseMs) * time.Millisecond }

// Args are what a Step has of what is not a lock.
type Args struct {
	N           int      `json:"n,omitempty"`
	IDs         []string `json:"ids,omitempty"`  // of the permits that it is about, as the life calls them
	Gets        []string `json:"gets,omitempty"` // of the permits that it returned, or that the thread in Then got
	IntervalMs  int64    `json:"intervalMs,omitempty"`
	KeepAliveMs int64    `json:"keepAliveMs,omitempty"`
	PerClient   bool     `json:"perClient,omitempty"`
}

// A Script has its lists joined by spaces: none of their words has one.
type Script struct {
	Keys string   `json:"keys"`
	Args string   `json:"args"`
	Runs []string `json:"runs"`
}

// A Hash is what stands at a key. Unless it says so it is a hash.
type Hash struct {
	Fields map[string]string `json:"fields"`
	List   []string          `json:"list,omitempty"`
	Scores map[string]string `json:"scores,omitempty"` // as written, of a sorted set
	Value  string            `json:"value,omitempty"`  // of a string
	TTLMs  int64             `json:"ttlMs"`            // rounded up, see RoundUp; -1: none
}

// RoundUp rounds a TTL in milliseconds up to a second, or if it is longer than
// ten to ten: a life lasts some.
func RoundUp(ttl int64) int64 {
	unit := int64(1000)
	if ttl > 10*unit {
		unit *= 10
	}
	if ttl < 0 {
		return ttl // there is none
	}
	return (ttl + unit - 1) / unit * unit
}

// Entries are what one version of Redisson calls the locks and synchronizers of
// entries.
type Entries struct {
	Redisson string  `json:"redisson"`
	Entries  []Entry `json:"entries"`
}

// An Entry is one of a map, a set and a multimap of the same name.
type Entry struct {
	Object string            `json:"object"`
	Key    string            `json:"key"`
	Names  map[string]string `json:"names"` // by the method in Java that returns it: RMap.getLock
}
