package wire

import (
	"slices"
	"strconv"
	"strings"
)

// Prefixes of side keys and channels that only some locks have.
const (
	LockQueue   = "redisson_lock_queue"   // fair: list of the waiting owners
	LockTimeout = "redisson_lock_timeout" // fair: sorted set, until when each may wait
	RWChannel   = "redisson_rwlock"       // read-write: the channel of both sides
)

// RWWriters is the prefix of a key of redlatch's own: a sorted set of those who
// wait to write a read-write lock, and until when that is to be believed.
const RWWriters = "redlatch_writers"

// FairChannel names the channel of one waiting owner of a fair lock.
func FairChannel(name, owner string) string { return Prefix(LockChannel, name) + ":" + owner }

// Mode is the field of a read-write lock that says what its holders do; it is
// ModeRead or ModeWrite. The other fields are owners.
const (
	Mode      = "mode"
	ModeRead  = "read"
	ModeWrite = "write"
)

// WriteField returns the field of an owner that writes; one that reads has its
// name itself for a field.
func WriteField(owner string) string { return owner + ":write" }

// ReadTimeout names the key that keeps an owner's i-th read hold alive. i counts
// from 1. Unlike other side keys it begins with the lock's name.
func ReadTimeout(name, owner string, i int) string {
	return Suffix(name, owner+":rwlock_timeout:"+strconv.Itoa(i))
}

// Writes says whether a field of a read-write lock is an owner that writes. A
// transaction of Redisson's adds its id behind that.
func Writes(field string) bool {
	return strings.HasSuffix(field, ":write") || strings.Contains(field, ":write:")
}

// Prefixes and suffixes of what is not a lock.
const (
	SemaphoreChannel = "redisson_sc"      // of semaphores of both kinds
	PermitTimeout    = "timeout"          // suffix; expirable semaphore: sorted set, until when each permit is given
	RateValue        = "value"            // suffix; rate limiter: what may still be given now
	RatePermits      = "permits"          // suffix; rate limiter: sorted set, what was given and when
	Sessions         = "redlatch_session" // not Redisson's: the last request of a client that counted something
)

// Suffix names a side key of an object that begins with the object's name:
// "{name}:s", or "name:s" if the name contains a brace.
func Suffix(name, s string) string {
	if strings.Contains(name, "{") {
		return name + ":" + s
	}
	return "{" + name + "}:" + s
}

// Session names the key of a client's session, one of several about one object.
func Session(name, client, lane string) string {
	if strings.HasPrefix(name, "{") && Tag(name) != "" {
		lane += ":{}" // not that of the name within the braces
	}
	return Prefix(Sessions, name) + ":" + client + ":" + lane
}

// LatchChannel names the channel of a count-down latch, whose name is put into
// braces whatever it contains.
func LatchChannel(name string) string { return "redisson_countdownlatch__channel__{" + name + "}" }

// Prefixes of what belongs to a barrier, which Redisson does not have.
const (
	Barrier        = "redlatch_barrier"         // hash: which generation gathers, and of how many; with a generation behind it: who has arrived in that one; with "ended": how others have ended
	BarrierAlive   = "redlatch_barrier_alive"   // sorted set: until when each client in the generation is believed to live
	BarrierChannel = "redlatch_barrier_channel" // where the end of a generation is told
)

// RateRecount is the prefix of where it stands how far a rate limiter's records
// have been added up, a string; with a client's UUID behind it, those of that
// client.
const RateRecount = "redlatch_recount"

// Fields of a rate limiter's hash.
const (
	RateField      = "rate"
	IntervalField  = "interval"
	RateTypeField  = "type"
	KeepAliveField = "keepAliveTime"
)

// PrefixedNames returns the names of which key may be the side key that Prefix
// makes: "name" and "{name}" have the same.
func PrefixedNames(p, key string) []string {
	rest, _ := strings.CutPrefix(key, p+":")
	return namesOf(rest, func(name string) bool { return Prefix(p, name) == key })
}

// SuffixedNames is PrefixedNames for Suffix.
func SuffixedNames(key, s string) []string {
	rest, _ := strings.CutSuffix(key, ":"+s)
	return namesOf(rest, func(name string) bool { return Suffix(name, s) == key })
}

func namesOf(text string, fits func(name string) bool) (names []string) {
	for _, name := range slices.Compact([]string{strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"), text}) {
		if name != "" && fits(name) {
			names = append(names, name)
		}
	}
	return names
}

// IsSideKey says whether a string belongs to an object of another name, by the
// looks of its key.
func IsSideKey(key string) bool {
	if strings.HasPrefix(key, "redisson_") || strings.HasPrefix(key, "redlatch_") {
		return true
	}
	_, rest, found := strings.Cut(key, "{")
	_, rest, closed := strings.Cut(rest, "}")
	return found && closed &&
		(strings.HasSuffix(rest, ":"+RateValue) || strings.Contains(rest, ":"+RateValue+":") || strings.Contains(rest, ":rwlock_timeout:"))
}

// NamesOwners says whether a hash is redlatch's own and beside a lock or barrier:
// its fields are owners, as those of a lock are.
func NamesOwners(key string) bool {
	return strings.HasPrefix(key, Revoke+":") || strings.HasPrefix(key, Barrier+":")
}

// BarrierKeys returns the keys of a barrier's scripts, for one generation: what
// all generations share, what this one has, who is alive, and how the last one
// ended.
func BarrierKeys(name, generation string) []string {
	key := Prefix(Barrier, name)
	return []string{key, key + ":" + generation, Prefix(BarrierAlive, name), key + ":ended"}
}

// RateKeys returns the keys of a rate limiter's scripts, for one client: the
// configuration, the state that all share, that of this client, and how far
// either's records were added up.
func RateKeys(name, client string) []string {
	value, permits := Suffix(name, RateValue), Suffix(name, RatePermits)
	recount := Prefix(RateRecount, name)
	return []string{name, value, permits, value + ":" + client, permits + ":" + client, recount, recount + ":" + client}
}
