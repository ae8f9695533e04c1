package redlatch

import (
	"time"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
)

// A PlainOption says how those who acquire a lock hold it. It stands with the
// lock's name, and every acquisition by that value of the Lock has it; another one
// may have others, under the same name. A PlainOption is for locks that one owner
// at a time has, and that have no queue in Redis: Lock, StripedLock and
// redisson.SpinLock. They take LockOptions and HoldOptions as well. A value that
// cannot be used, such as a Lease that is too short, is refused with ErrInvalid by
// every method of the lock. If an option is given twice, the last one counts.
type PlainOption interface{ forPlainLock() }

// A LockOption is a PlainOption that locks of all kinds take.
type LockOption interface {
	PlainOption
	forEveryLock()
}

// A HoldOption is a LockOption that semaphores whose permits have leases take as
// well.
type HoldOption interface {
	LockOption
	forEveryHold()
}

type (
	plainOption struct{}
	lockOption  struct{ plainOption }
	holdOption  struct{ lockOption }
)

func (plainOption) forPlainLock() {}
func (lockOption) forEveryLock()  {}
func (holdOption) forEveryHold()  {}

type (
	lease struct {
		holdOption
		d time.Duration
	}
	minHold struct {
		plainOption
		d time.Duration
	}
	maxHold struct {
		holdOption
		d time.Duration
	}
	note struct {
		holdOption
		text string
	}
	fenced       struct{ lockOption }
	nonReentrant struct{ lockOption }
	watchdog     struct {
		holdOption
		d time.Duration
	}
)

// Lease gives each hold a fixed lease of d instead of the watchdog. The hold ends
// after d, less a safety margin of 10 ms + d/50, unless Extend raises the lease.
// Redis counts whole milliseconds; d is rounded up. A d of less than 20 ms is
// refused.
//
// Holds that are nested in one another, or that have one WithOwner, share one
// lease in Redis. Each of them lasts as long as the longest lease that any of them
// asked for, even if the hold with that lease has been released. While one of them
// has the watchdog, they last without end. Only the read holds of a ReadWriteLock
// end when their own leases do.
func Lease(d time.Duration) HoldOption { return lease{d: d} }

// Watchdog is Config.WatchdogTimeout for this name: the watchdog renews each hold
// for a lease of d. A longer one outlasts a longer outage, and after a crash
// others wait for as long. 0 is the Config's. With a Lease it is refused.
func Watchdog(d time.Duration) HoldOption { return watchdog{d: d} }

// MaxHold is Config.MaxHold for this name: the watchdog keeps each hold for d at
// most. 0 is the Config's. With a Lease, which ends by itself, it is refused.
func MaxHold(d time.Duration) HoldOption { return maxHold{d: d} }

// Note says what each hold is for, until Hold.SetNote says something else.
func Note(text string) HoldOption { return note{text: text} }

// checkNote refuses what others would not be shown.
func checkNote(text string) error {
	if len(text) > claim.MostNote || !utf8.ValidString(text) {
		return invalid.Errorf("redlatch: a note of %d bytes; it must be UTF-8, and have at most %d", len(text), claim.MostNote)
	}
	return nil
}

// Fenced gives each hold a fencing token: see Hold.Token. It comes from a counter
// beside the lock, redisson_lock_token:{name}, which outlives the lock (for how
// long, Config.TokenTTL says). Read holds of a ReadWriteLock have no token: it
// could tell none of the readers from the others.
//
// With Fenced, a lock passes between goroutines of one process with a round trip
// each time, for a token of its own. Re-entering does not count: Redisson does
// count that, which makes its outer hold look like one that was lost.
func Fenced() LockOption { return fenced{} }

// NonReentrant refuses whoever has the lock already, with ErrReentry at once,
// instead of entering once more. In Redis it is the same lock as without. Of a
// ReadWriteLock it refuses each side to whoever has one of the two.
func NonReentrant() LockOption { return nonReentrant{} }

// MinHold keeps the lock for d from its acquisition, however soon it is released.
// It is for a job that is over so fast that a process whose clock is a little late
// would begin it once more. A hold that is released sooner ends as any other does:
// its context ends, and a Release that returns nil has left the lock in place for
// the rest of d. Until then nobody acquires the lock, in this process neither,
// unless after admin.ForceRelease or ReleaseID. Nobody renews it. A shorter wait
// fails at once: see BusyError.RetryAfter.
//
// The lock is kept for less than d if the hold, or one around it, is lost (by
// MaxHold, too) and its lease in Redis ends before the release; if the process
// dies, and the lock lasts for its lease; or if the client is closed before the
// release. With a Lease, d may not be longer than that. Redis counts whole
// milliseconds; d is rounded up, and 0 keeps nothing. Several locks as one refuse
// a member with MinHold.
func MinHold(d time.Duration) PlainOption { return minHold{d: d} }

// want gives a lock that nobody has used yet its options.
func want[O PlainOption](l *lock.Spec, opts []O) {
	if len(opts) == 0 {
		return
	}
	l.Want(wishOf(l.Client().Server, opts))
}

// wishOf adds up the options of a name.
func wishOf[O PlainOption](server *request.Server, opts []O) (w term.Wish, err error) {
	var renewed time.Duration
	for i, o := range opts {
		switch o := any(o).(type) {
		case lease:
			w.Lease, w.HasLease = o.d, true
		case watchdog:
			renewed = o.d
		case minHold:
			w.AtLeast = o.d
		case maxHold:
			w.MaxHold = o.d
		case note:
			w.Note = o.text
			if err = checkNote(w.Note); err != nil {
				return w, err
			}
		case fenced:
			w.Fenced = true
		case nonReentrant:
			w.NonReentrant = true
		default:
			return w, invalid.Errorf("redlatch: option %d is nil; leave it out, or use Lease, Watchdog, MaxHold, Note, Fenced, NonReentrant or MinHold", i+1)
		}
	}
	if w.HasLease {
		if w.Lease, err = args.Lease(w.Lease); err != nil {
			return w, err
		}
	}
	switch {
	case renewed != 0 && w.HasLease:
		return w, invalid.Errorf("redlatch: Watchdog(%v) with Lease(%v): the watchdog does not renew what has a Lease; leave one out", renewed, w.Lease)
	case w.MaxHold < 0:
		return w, invalid.Errorf("redlatch: MaxHold(%v): it must be positive, or 0 for Config.MaxHold", w.MaxHold)
	case w.MaxHold > 0 && w.HasLease:
		return w, invalid.Errorf("redlatch: MaxHold(%v) with Lease(%v): MaxHold bounds what the watchdog keeps, and a Lease ends by itself; leave one out", w.MaxHold, w.Lease)
	case w.AtLeast < 0 || w.AtLeast > maxLease:
		return w, invalid.Errorf("redlatch: MinHold(%v): it must not be negative, and be at most %v", w.AtLeast, maxLease)
	case w.HasLease && w.AtLeast > w.Lease:
		return w, invalid.Errorf("redlatch: MinHold(%v) is longer than Lease(%v), after which others may have the lock; raise the lease", w.AtLeast, w.Lease)
	}
	if renewed != 0 {
		if err := checkWatchdog("the option Watchdog", renewed, server.Traits); err != nil {
			return w, err
		}
	}
	w.AtLeast = args.Millis(w.AtLeast)
	if !w.HasLease {
		w.Lease = args.Millis(renewed)
	}
	return w, nil
}

// anyWish is wishOf for the packages beside this one.
func anyWish(server *request.Server, opts any) (term.Wish, error) {
	switch opts := opts.(type) {
	case []PlainOption:
		return wishOf(server, opts)
	case []LockOption:
		return wishOf(server, opts)
	default:
		return wishOf(server, opts.([]HoldOption)) //nolint:forcetypeassert // there is no other
	}
}
