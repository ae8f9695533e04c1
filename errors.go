package redlatch

import (
	"errors"
	"fmt"
	"time"
)

// One sentinel per state. Facts travel in *BusyError and *LostError.
var (
	// ErrBusy: somebody else has the lock. Every error with this state is also
	// a *BusyError. A wait that ended with its context is both ErrBusy and the
	// context's error.
	ErrBusy = errors.New("redlatch: lock is held by another owner")

	// ErrLost: a hold ended before it was released. Every error with this
	// state is also a *LostError. It is the cause of the hold's context.
	ErrLost = errors.New("redlatch: lock lost")

	// ErrNotHeld: the hold has already been released. It is the cause of a
	// released hold's context.
	ErrNotHeld = errors.New("redlatch: lock not held")

	// ErrReentry: this acquisition could never succeed, because the caller
	// already holds what it would wait for.
	ErrReentry = errors.New("redlatch: lock cannot be re-entered")

	// ErrClosed: the client was closed.
	ErrClosed = errors.New("redlatch: client closed")

	// ErrUnavailable: the server did not answer for Config.OutageTimeout. It
	// wraps the last cause.
	ErrUnavailable = errors.New("redlatch: server unavailable")
)

// A BusyError says who has the lock. It is ErrBusy, and what ended the wait,
// if a context did.
type BusyError struct {
	Name  string        // the lock's name
	Owner string        // the owner's field in Redis; empty if not known
	TTL   time.Duration // what was left of the owner's lease when last seen; 0 if not known
	Cause error         // the context's error, or nil

	what string // what Name names; empty: a lock
}

// Error implements error.
func (e *BusyError) Error() string {
	what := e.what
	if what == "" {
		what = "lock"
	}
	s := fmt.Sprintf("redlatch: %s %q was not acquired", what, e.Name)
	if e.Owner != "" {
		s = fmt.Sprintf("redlatch: lock %q is held by %s", e.Name, e.Owner)
	}
	if e.TTL > 0 {
		s += fmt.Sprintf(" for another %v at most", e.TTL.Round(time.Millisecond))
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns ErrBusy and the cause.
func (e *BusyError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrBusy}
	}
	return []error{ErrBusy, e.Cause}
}

// A LossReason says how a hold was lost.
type LossReason string

// The ways to lose a hold.
const (
	// LostExpired: no renewal was confirmed in time; the hold ended before
	// Redis could give the lock away.
	LostExpired LossReason = "expired"
	// LostGone: the server says that the lock is no longer this hold's: forced,
	// deleted, evicted, or gone with a restart or failover. Somebody else may
	// have held it already.
	LostGone LossReason = "gone"
	// LostRevoked: a ForceRelease asked for the lock; the hold ended before it
	// was given away.
	LostRevoked LossReason = "revoked"
	// LostMaxHold: the hold reached Config.MaxHold.
	LostMaxHold LossReason = "max hold"
)

// A LostError says how a hold was lost. It is ErrLost.
type LostError struct {
	Name   string // the lock's name
	Owner  string // the lost hold's own field in Redis
	Reason LossReason
	// Confirmed is when the last take or renewal was sent that the server
	// confirmed.
	Confirmed time.Time
}

// Error implements error.
func (e *LostError) Error() string {
	var how string
	switch e.Reason {
	case LostExpired:
		how = "its lease ran out before a renewal was confirmed"
	case LostGone:
		how = "the server no longer has it (released by force, expired, evicted, or lost with a restart or failover)"
	case LostRevoked:
		how = "it was released by force"
	case LostMaxHold:
		how = "it was held for Config.MaxHold"
	}
	return fmt.Sprintf("redlatch: lock %q lost: %s", e.Name, how)
}

// Is reports that a LostError is ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// IsRetryable reports whether the same call may succeed later without anybody
// changing anything: the lock was busy, or the server could not be reached or
// was short of memory. It is false for a nil error, for an ended context and
// for a lost hold.
func IsRetryable(err error) bool {
	var (
		busy   *BusyError
		outage *outageError
		re     *RunError
	)
	switch {
	case errors.As(err, &busy):
		return busy.Cause == nil
	case errors.As(err, &outage):
		return outage.ended == nil
	case errors.As(err, &re):
		return !re.permanent()
	}
	return false
}
