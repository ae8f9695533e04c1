package lock

import (
	"cmp"
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Lock says which lock it is, and how it differs from others. It is immutable once
// it has been used.
type Lock struct {
	c       *env
	Key     string // its name in Redis
	kind    *kind
	Wish    Wish     // how everybody wants it
	Entry   entryKey // whoever wants a lock with the same one lines up with its callers
	channel string   // where its release is told; empty: nowhere
	keyring          // of its scripts
	tokens  counter  // of a fenced lock; zero: it is of another kind, or has no tokens
	writers string   // key of those who wait to write and have precedence
	own     any      // what only locks of its kind have, and only the files of its kind know; nil: nothing
	twin    string   // what it must not share with its twin; empty: nothing
	more    []string // arguments that every script of this lock gets behind its own; nil: none
	Err     error    // why it cannot be used; nil: it can
}

// A keyring is the keys of a lock's scripts.
type keyring struct {
	alone  [1]string // the lock's
	keys   []string  // nil: that one alone
	taking []string  // of the scripts that make an owner; nil: the same
}

// A counter is that of the fencing tokens of a lock.
type counter struct {
	key     string
	endless time.Duration // what scripts are told instead of a TTL, if it is to have none: see token.luainc
}

// newLock returns the lock of a kind that has this name in Redis, and whose release is told in that channel.
func newLock(c *env, k *kind, key, channel string) Lock {
	return Lock{
		c: c, Key: key, kind: k, Wish: Wish{Lease: c.Watchdog}, channel: channel,
		Entry: entryKey{Name: key, Space: k.space}, keyring: keyring{alone: [1]string{key}}, Err: request.CheckKey(key),
	}
}

// allKeys returns those of the lock's scripts. For most locks that is one, which
// needs no slice of its own: whoever asks for a lock makes a Spec.
func (ring *keyring) allKeys() []string {
	if ring.keys == nil {
		return ring.alone[:]
	}
	return ring.keys
}

func tokenKey(key string) string { return wire.Prefix(wire.LockToken, key) }

// A Wish is how a lock is wanted: what users say with its name.
type Wish struct {
	Lease        time.Duration // of a hold, or for which the watchdog renews it, in whole milliseconds
	AtLeast      time.Duration // for so long nobody else is to get the lock, however soon it is released
	MaxHold      time.Duration // the longest that the watchdog keeps a hold; 0: that of the client
	HasLease     bool          // the hold ends with it; else the watchdog keeps the hold
	Fenced       bool          // a hold gets a token
	NonReentrant bool          // whoever has the lock already is refused
	Note         string        // what a hold is for, until its holder says something else
}

// Want says how a lock is wanted that nobody has used yet, or why it cannot be wanted so. Without a lease it is the client's
// watchdog's.
func (l *Lock) Want(wish Wish, bad error) {
	wish.Lease = cmp.Or(wish.Lease, l.c.Watchdog)
	wish.Fenced = wish.Fenced && !l.kind.shared // a token could tell no reader from the others
	if wish.Fenced && l.kind.numbers {
		l.tokens.key = tokenKey(l.Key)
	}
	l.Wish = wish
	if bad != nil && l.Err == nil {
		l.Err = bad
	}
}

// KeepTokens has the counter of the lock's tokens last for as long as somebody has the lock, and be read meanwhile: it has no TTL.
func (l *Lock) KeepTokens() { l.tokens.endless = -time.Millisecond }

// Owns says whether a holder of the lock's key has this lock, by
// the mode and the value that are stored of it, and what the value is.
func (l *Lock) Owns(mode, value string) (string, bool) {
	if l.kind.part {
		return l.values().owns(value)
	}
	if l.kind.mode != "" && mode != l.kind.mode {
		return "", false
	}
	return value, true
}

// Mode returns as what the lock is had, if that is stored; empty if there is one way.
func (l *Lock) Mode() string { return l.kind.mode }

// Whole says whether the lock is all that has its name in Redis.
func (l *Lock) Whole() bool { return !l.kind.part && l.kind.mode == "" }

// Forcing returns the first arguments of the script that frees the lock whoever has
// it; those of Seen follow. And it says whether that script has something to do also if
// nobody has the lock: those who waited in Redis, and have died, are to be removed.
func (l *Lock) Forcing() (args []string, queue bool) {
	if l.kind.forcing != nil {
		return l.kind.forcing(l), true
	}
	return []string{l.channel}, false
}

// Force frees the lock if one of those has it that args name, and says whether it did,
// or may have.
func (l *Lock) Force(ctx context.Context, args []string) (bool, error) {
	call := request.Call{Server: l.c.Server, Script: l.kind.force, Keys: l.allKeys(), Args: args, Lease: l.c.Watchdog, Stop: l.c.Server.Quit}
	reply, err := call.Run(ctx)
	return call.Unknown || l.left(ctx, reply).Int != 0, err
}

// Name returns the lock's name, as its user gave it.
func (l *Lock) Name() string { return l.c.Server.Name(l.Key) }

// what returns which kind of lock it is, as users read it.
func (l *Lock) what() string {
	if l.tokens.key != "" {
		return claim.Fenced
	}
	return l.kind.what
}

// Wanted returns what is said of a wait for the lock, as that owner if it has an id.
func (l *Lock) Wanted(owner string) claim.Claim {
	return claim.Claim{Name: l.Key, Kind: l.what(), Mode: l.kind.mode, Owner: owner}
}

// Exclusive says whether one at a time has the lock.
func (l *Lock) Exclusive() bool { return !l.kind.shared }

// Within says whether ctx descends from a hold of the lock, or an owner.
func (l *Lock) Within(ctx context.Context) bool {
	outer, scope, err := l.enclosing(ctx)
	return outer != nil || scope != nil || err != nil
}

// An entryKey tells entries apart. A name may be a lock's and, by mistake, a
// read-write lock's: those share nothing here.
type entryKey struct {
	Name, Space string
}

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
	queues  bool   // its callers stand in Redis: whoever gives up has to leave there
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
