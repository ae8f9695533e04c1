// Package fact has what engines say of why a call has failed, as plain values: one
// for each error of the root package that has fields. What is only a text is made
// where it is known, with a sentinel.
//
// It promises that no fact reaches a user, who sees errors of the root package. An
// engine passes a fact through request.Options.Public where it makes it, as what
// ends a context or is reported has to be what the call returns. The engine of
// locks leaves that to those who acquire one, when it is busy: several locks as
// one look at the fact. Nobody wraps a fact before it is passed on.
package fact

import (
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
)

// ErrBusy says that somebody else has what was asked for.
var ErrBusy = errors.New("redlatch: lock is held by another owner")

// ErrNotAcknowledged says that too few replicas acknowledged what was written.
var ErrNotAcknowledged = errors.New("redlatch: not acknowledged by replicas")

// ErrUninitialized says that nobody has set up what was asked for.
var ErrUninitialized = errors.New("redlatch: not initialised")

// Busy says why something could not be had in time.
type Busy struct { //nolint:errname // errors are what the root makes of facts
	Name  string
	Kind  string        // claim.Semaphore, ...; empty: a lock
	Owner string        // who has it; empty if that is not known
	TTL   time.Duration // for how long; 0 if that is not known
	After time.Duration // nobody has it, and so long it stays nevertheless; 0: not known
	Owed  int           // so many others go first
	Cause error         // of the caller's context
}

// Error implements error.
func (b Busy) Error() string { return ErrBusy.Error() }

// Is says that it is ErrBusy.
func (b Busy) Is(target error) bool { return target == ErrBusy }

// Unwrap returns the error of the caller's context, or nil.
func (b Busy) Unwrap() error { return b.Cause }

// Lost says how something held was lost.
type Lost struct { //nolint:errname // errors are what the root makes of facts
	Name      string
	Kind      string // as that of Busy
	Owner     string // of the lock, or the id of the permit; empty: one of several permits
	Reason    holdctx.Reason
	Confirmed time.Time // when the request was sent that the server confirmed last
}

// Error implements error.
func (l Lost) Error() string { return holdctx.ErrLost.Error() + ": " + string(l.Reason) }

// Is says that it is holdctx.ErrLost.
func (l Lost) Is(target error) bool { return target == holdctx.ErrLost }

// TooFew says that too few replicas acknowledged what was written.
type TooFew struct { //nolint:errname // errors are what the root makes of facts
	Name      string        // what it was about
	Want, Got int           // how many were to acknowledge it, and did
	Timeout   time.Duration // in this time
	Err       error         // why they cannot, or nil
}

// Error implements error.
func (t TooFew) Error() string { return ErrNotAcknowledged.Error() }

// Is says that it is ErrNotAcknowledged.
func (t TooFew) Is(target error) bool { return target == ErrNotAcknowledged }
