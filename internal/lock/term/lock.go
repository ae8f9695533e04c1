package term

import (
	"cmp"
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Lock says which lock it is, and how it differs from others. It is immutable
// once it has been used.
type Lock struct {
	Env     *Env
	Key     string // its name in Redis
	Kind    *Kind
	Wish    Wish     // how everybody wants it
	Entry   EntryKey // whoever wants a lock with the same one lines up with its callers
	Channel string   // where its release is told; empty: nowhere
	keyring          // of its scripts
	tokens  counter  // of a fenced lock; zero: it is of another kind, or has no tokens
	Writers string   // key of those who wait to write and have precedence
	Own     any      // what only locks of its kind have, and only the files of its kind know; nil: nothing
	Twin    string   // what it must not share with its twin; empty: nothing
	More    []string // arguments that every script of this lock gets behind its own; nil: none
	Err     error    // why it cannot be used; nil: it can
}

// A keyring is the keys of a lock's scripts.
type keyring struct {
	alone  [1]string // the lock's
	Keys   []string  // nil: that one alone
	Taking []string  // of the scripts that make an owner; nil: the same
}

// A counter is that of the fencing tokens of a lock.
type counter struct {
	key     string
	endless time.Duration // what scripts are told instead of a TTL, if it is to have none: see token.luainc
}

// NewLock returns the lock of a kind that has this name in Redis, and whose
// release is told in that channel.
func NewLock(c *Env, k *Kind, key, channel string) Lock {
	return Lock{
		Env: c, Key: key, Kind: k, Wish: Wish{Lease: c.Watchdog}, Channel: channel,
		Entry: EntryKey{Name: key, Space: k.Space}, keyring: keyring{alone: [1]string{key}}, Err: request.CheckKey(key),
	}
}

// AllKeys returns those of the lock's scripts. For most locks that is one, which
// needs no slice of its own: whoever asks for a lock makes a Spec.
func (ring *keyring) AllKeys() []string {
	if ring.Keys == nil {
		return ring.alone[:]
	}
	return ring.Keys
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

// Want says how a lock is wanted that nobody has used yet, or why it cannot be
// wanted so. Without a lease it is the client's watchdog's.
func (l *Lock) Want(wish Wish, bad error) {
	wish.Lease = cmp.Or(wish.Lease, l.Env.Watchdog)
	wish.Fenced = wish.Fenced && !l.Kind.Shared // a token could tell no reader from the others
	if wish.Fenced && l.Kind.Numbers {
		l.tokens.key = tokenKey(l.Key)
	}
	l.Wish = wish
	if bad != nil && l.Err == nil {
		l.Err = bad
	}
}

// KeepTokens has the counter of the lock's tokens last for as long as somebody has
// the lock, and be read meanwhile: it has no TTL.
func (l *Lock) KeepTokens() { l.tokens.endless = -time.Millisecond }

// Owns says whether a holder of the lock's key has this lock, by
// the mode and the value that are stored of it, and what the value is.
func (l *Lock) Owns(mode, value string) (string, bool) {
	if l.Kind.Part {
		return l.values().owns(value)
	}
	if l.Kind.Mode != "" && mode != l.Kind.Mode {
		return "", false
	}
	return value, true
}

// Mode returns as what the lock is had, if that is stored; empty if there is one
// way.
func (l *Lock) Mode() string { return l.Kind.Mode }

// Whole says whether the lock is all that has its name in Redis.
func (l *Lock) Whole() bool { return !l.Kind.Part && l.Kind.Mode == "" }

// Forcing returns the first arguments of the script that frees the lock whoever
// has it; those of Seen follow. And it says whether that script has something to
// do also if nobody has the lock: those who waited in Redis, and have died, are to
// be removed.
func (l *Lock) Forcing() (args []string, queue bool) {
	if l.Kind.Forcing != nil {
		return l.Kind.Forcing(l), true
	}
	return []string{l.Channel}, false
}

// Force frees the lock if one of those has it that args name, and says whether it
// did, or may have.
func (l *Lock) Force(ctx context.Context, args []string) (bool, error) {
	call := request.Call{Server: l.Env.Server, Script: l.Kind.Force, Keys: l.AllKeys(), Args: args, Lease: l.Env.Watchdog, Stop: l.Env.Server.Quit}
	reply, err := call.Run(ctx)
	return call.Unknown || l.left(ctx, reply).Int != 0, err
}

// Name returns the lock's name, as its user gave it.
func (l *Lock) Name() string { return l.Env.Server.Name(l.Key) }

// what returns which kind of lock it is, as users read it.
func (l *Lock) what() string {
	if l.tokens.key != "" {
		return claim.Fenced
	}
	return l.Kind.What
}

// Wanted returns what is said of a wait for the lock, as that owner if it has an
// id.
func (l *Lock) Wanted(owner string) claim.Claim {
	return claim.Claim{Name: l.Key, Kind: l.what(), Mode: l.Kind.Mode, Owner: owner}
}

// Exclusive says whether one at a time has the lock.
func (l *Lock) Exclusive() bool { return !l.Kind.Shared }

// Within says whether ctx descends from a hold of the lock, or an owner.
func (l *Lock) Within(ctx context.Context) bool {
	outer, scope, err := l.Enclosing(ctx)
	return outer != nil || scope != nil || err != nil
}

// An EntryKey tells entries apart. A name may be a lock's and, by mistake, a
// read-write lock's: those share nothing here.
type EntryKey struct {
	Name, Space string
}

// A Kind is all that tells one type of lock from another. No other code asks which
// type it works for: it asks the kind what is so. A field that is not set says
// that the lock is in this like a plain one.
type Kind struct {
	Scripts

	// Pause says how long to pause after that many tries for a term. nil: until
	// somebody tells of a release, or the lock's TTL is over.
	Pause func(t *Term, tries int) time.Duration
	// ReleaseArgs returns what the release takes of the arguments owner, channel and
	// own subscriptions.
	ReleaseArgs func(l *Lock, args []string) []string
	// Forcing returns the first arguments of the script that frees the lock whoever
	// has it, if that is more than the channel; those whom the caller has seen follow.
	// A kind that sets it has its waiters in Redis: Force has to remove those that
	// have died from a lock that nobody has, too.
	Forcing func(l *Lock) []string

	What    string // as users read it
	Space   string // locks of one name and another space share nothing here
	Queues  bool   // its callers stand in Redis: whoever gives up has to leave there
	Gathers bool   // ids that are given up at the same time are released with one request
	Numbers bool   // with tokens it is a fenced lock for who looks at it, as it is in Redisson
	Part    bool   // others have other parts of what has the lock's name: values of a group
	Mode    string // of those who have the lock, if that is stored; another mode is another lock
	Under   string // an owner that has the lock in this mode, too, has it alone
	Shared  bool   // many may have it: they share a term
	Stops   bool   // while somebody waits for it, nobody new shares
}

// Scripts are those of a kind.
type Scripts struct {
	Take     *script.Script // the only one that can make an owner
	Release  *script.Script // also undoes a take that nobody waits for any more
	Keep     *script.Script // ends a hold whose lock is to stay for a while; nil: there is no such hold
	Yield    *script.Script // nil if it does not pass between goroutines of a process,
	Transfer *script.Script // nor this one
	Renew    *script.Script
	Force    *script.Script
	Joint    *script.Script // takes several locks of this kind at once; nil: there is none
}
