package redlatch

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// One sentinel per state. Facts travel in *BusyError and *LostError.
var (
	// ErrBusy: somebody else has the lock. Every error with this state is also a
	// *BusyError. A wait that ended with its context is both ErrBusy and the context's
	// error. It is ErrUnavailable instead if the server did not say who has the lock,
	// unless it had been silent for less than 0.1 s (with Config.Acks, AckTimeout
	// more): Owner is empty.
	ErrBusy = fact.ErrBusy

	// ErrLost: a hold ended before it was released. Every error with this state is
	// also a *LostError. It is the cause of the hold's context.
	ErrLost = holdctx.ErrLost

	// ErrNotHeld: the hold has already been released. It is the cause of a released
	// hold's context. Calls that name a hold by its id return it also when its lease
	// has run out, or nobody ever had it.
	ErrNotHeld = holdctx.ErrNotHeld

	// ErrReentry: this acquisition could never succeed, because the caller already
	// holds what it would wait for.
	ErrReentry = term.ErrReentry

	// ErrInvalid: the call cannot work with what it was given: a name, a number, an
	// option, a context, an id, a lock, a Config or its driver, or because of what was
	// set before, such as the rate of a ratelimit.Limiter. The error says why, and
	// what to do. The call has acquired, released and set nothing.
	ErrInvalid = invalid.Err

	// ErrUninitialized: nobody has set up what was asked for, so a wait could last for
	// ever: the permits of a semaphore (call TrySetPermits, or give the number to its
	// New), the rate of a ratelimit.Limiter (TrySetRate, or its New).
	ErrUninitialized = fact.ErrUninitialized

	// ErrNotAcknowledged: too few replicas acknowledged an acquisition in time, so it
	// was given back, or an extension, which does not count then. Every error with
	// this state is also an *AckError.
	ErrNotAcknowledged = fact.ErrNotAcknowledged

	// ErrClosed: the client was closed, or is being shut down.
	ErrClosed = request.ErrClosed

	// ErrUnavailable: the server did not answer for Config.OutageTimeout, or until the
	// caller gave up: then nobody knows whether the lock is held. It wraps the last
	// cause.
	ErrUnavailable = request.ErrUnavailable
)

// public makes the error that users see of what an engine says.
func (c *Client) public(err error) error {
	switch f := err.(type) { //nolint:errorlint // nobody wraps a fact
	case fact.Busy:
		return c.busy(f)
	case fact.Lost:
		return &LostError{Name: f.Name, Kind: cmp.Or(Kind(f.Kind), KindLock), Owner: f.Owner, Reason: LossReason(f.Reason), Confirmed: f.Confirmed}
	case fact.TooFew:
		e := AckError(f)
		return &e
	}
	return err
}

// A BusyError says who has the lock. It is ErrBusy, and what ended the wait,
// if a context did.
type BusyError struct {
	Name string // of the lock or synchronizer
	// Kind is that of the synchronizer, or KindLock for a lock; KindReadWrite if that
	// has turned out to be of this type.
	Kind  Kind
	Owner string        // the owner's field in Redis; empty if not known
	TTL   time.Duration // what was left of the owner's lease when last seen; 0 if not known
	// By is who the owner's client says it is (Config.Identity), such as
	// "billing@host-7 pid 4121"; empty if not known. Callers that wait ask for it,
	// together, when they are refused. docs/protocol.md says when, and who does not
	// ask.
	By string
	// For is for how long the owner has had the lock, Renewed whether the watchdog
	// renews it, and Note what the hold is for (Hold.SetNote), printable; zero if not
	// known. Shortly before the end of a wait the owner's client is asked.
	For     time.Duration
	Renewed bool
	Note    string
	// Owed, if not 0, says that nobody was asked: this process has just released the
	// lock, and so many others go first.
	Owed int
	// RetryAfter is for how long a rate limiter has too few permits, unless some are
	// given back, or MinHold keeps a lock that was released, unless it is forced. 0:
	// not known. A TTL alone does not say it: the holder may release earlier.
	RetryAfter time.Duration
	Cause      error // the context's error, or nil
}

// stillBusy is what there is to say of a name that is no lock's.
var stillBusy = map[Kind]string{
	KindSemaphore:   "semaphore %q was not acquired",
	KindExpirable:   "permit of semaphore %q was not acquired",
	KindLatch:       "the count of latch %q is not 0",
	KindRateLimiter: "rate limiter %q has not enough permits",
	KindBarrier:     "not all parties have come to barrier %q",
	KindReadWrite:   "lock %q was not acquired: a read-write lock has this name, and somebody has that",
}

// Error implements error.
func (e *BusyError) Error() string {
	s := fmt.Sprintf("redlatch: lock %q was not acquired", e.Name)
	if e.Owner != "" {
		s = fmt.Sprintf("redlatch: lock %q is held by %s", e.Name, e.holder())
	}
	kept := wire.Kept(e.Owner)
	if kept { // nobody has it
		s = fmt.Sprintf("redlatch: lock %q was released, and MinHold keeps it", e.Name)
	}
	if what := stillBusy[e.Kind]; what != "" {
		s = fmt.Sprintf("redlatch: "+what, e.Name)
	}
	if e.Owed > 0 {
		s += fmt.Sprintf("; this process has just released it, and others that wait go first (%d)", e.Owed)
	}
	switch {
	case e.RetryAfter > 0:
		s += fmt.Sprintf(" for another %v at least", e.RetryAfter.Round(time.Millisecond))
	case e.TTL > 0 && e.Kind == KindExpirable:
		s += fmt.Sprintf("; the first one is over in %v", e.TTL.Round(time.Millisecond))
	case e.TTL > 0 && !e.Renewed && !kept:
		s += fmt.Sprintf("; its lease ends in %v unless it is renewed", e.TTL.Round(time.Millisecond))
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// holder says who has the lock, and since when.
func (e *BusyError) holder() string {
	s := wire.Text(e.Owner)
	if e.By != "" {
		s = e.By + " (" + s + ")"
	}
	if e.For > 0 {
		s += fmt.Sprintf(" for %v", e.For.Round(time.Millisecond))
	}
	if e.Renewed {
		s += " (renewed while it lives)"
	}
	if e.Note != "" {
		s += ": " + wire.Said(e.Note) // it must not forge what follows
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

// busy makes a BusyError.
func (c *Client) busy(b fact.Busy) error {
	client, _ := wire.ClientOf(b.Owner)
	e := &BusyError{
		Name: b.Name, Kind: cmp.Or(Kind(b.Kind), KindLock), Owner: b.Owner, TTL: b.TTL, By: c.engines.Census.By(client),
		Owed: b.Owed, RetryAfter: b.After, Cause: b.Cause,
	}
	if held, known := c.engines.Census.Hold(c.engines.Server.Key(b.Name), b.Owner); known {
		e.For, e.Renewed, e.Note = time.Since(held.Since), held.Renewed, held.Note
	}
	return e
}

// meet has it found out who the client of an owner is, for the error of a caller
// that it keeps waiting.
func (c *Client) meet(owner string) {
	if client, redlatch := wire.ClientOf(owner); redlatch {
		c.engines.Census.Learn(client)
	}
}

// inquire has it found out what the owner of a lock says of it, for the error of a
// caller that will not wait much longer.
func (c *Client) inquire(key, owner string) { c.engines.Census.Inquire(key, owner) }

// An AckError says that too few replicas acknowledged what the primary did. It is
// ErrNotAcknowledged.
type AckError struct {
	Name      string        // the name of the lock, or of the first of several
	Want, Got int           // how many replicas were to acknowledge it, and did
	Timeout   time.Duration // in this time
	Err       error         // why they cannot, or nil
}

// Error implements error.
func (e *AckError) Error() string {
	s := fmt.Sprintf("redlatch: %q was acknowledged by %d of %d replicas within %v (Config.Acks)", e.Name, e.Got, e.Want, e.Timeout)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is reports that an AckError is ErrNotAcknowledged.
func (e *AckError) Is(target error) bool { return target == ErrNotAcknowledged }

// Unwrap returns why replicas cannot acknowledge anything, or nil.
func (e *AckError) Unwrap() error { return e.Err }

// A LossReason says how a hold was lost.
type LossReason string

// The ways to lose a hold.
const (
	// LostExpired: no renewal was confirmed in time; the hold ended before Redis could
	// give the lock away.
	LostExpired LossReason = "expired"
	// LostGone: the server says that the lock is no longer this hold's: forced,
	// deleted, evicted, or gone with a restart or failover. Somebody else may have
	// held it already.
	LostGone LossReason = "gone"
	// LostRevoked: somebody released it by force (package admin); the hold ended
	// before it was given away.
	LostRevoked LossReason = "revoked"
	// LostMaxHold: the hold reached its MaxHold, or Config.MaxHold.
	LostMaxHold LossReason = "max hold"
	// LostLease: its Lease was over, and not extended; the hold ended before Redis
	// could give the lock away.
	LostLease LossReason = "lease over"
)

// A LostError says how a hold was lost. It is ErrLost.
type LostError struct {
	Name   string // of the lock or the semaphore
	Kind   Kind   // KindExpirable for a permit; KindLock for a lock of any type
	Owner  string // the lost hold's own field in Redis, or the permit's id; empty if a release found some of several permits gone
	Reason LossReason
	// Confirmed is when the last take or renewal was sent that the server confirmed.
	Confirmed time.Time
}

// Error implements error.
func (e *LostError) Error() string {
	what := "lock"
	if e.Kind == KindExpirable {
		what = "permit of semaphore"
	}
	return fmt.Sprintf("redlatch: %s %q lost: %s", what, e.Name, e.Reason.sentence())
}

// sentence says what happened.
func (reason LossReason) sentence() string {
	switch reason {
	case LostExpired:
		return "its lease ran out before a renewal was confirmed"
	case LostGone:
		return "the server no longer has it (released by force, expired, evicted, or lost with a restart or failover)"
	case LostRevoked:
		return "it was released by force"
	case LostMaxHold:
		return "it was held for as long as MaxHold allows"
	case LostLease:
		return "its Lease was over before it was released or extended"
	}
	return string(reason)
}

// Is reports that a LostError is ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// IsRetryable reports whether the same call may succeed later without anybody
// changing anything: the lock was busy, its replicas were silent, or the server
// could not be reached or was short of memory. It is false for a nil error, for an
// ended context, for a lost hold, and for latch.ErrCounted.
func IsRetryable(err error) bool {
	var (
		busy *BusyError
		acks *AckError
	)
	switch {
	case endedBy(err) != nil, errors.Is(err, request.ErrCounted):
		return false
	case errors.As(err, &acks):
		return acks.Err == nil
	case errors.As(err, &busy):
		return busy.Cause == nil
	}
	return request.Retryable(err)
}

// endedBy returns the error of the context that ended a call, if err is that
// call's and the context did.
func endedBy(err error) error {
	switch e := err.(type) { //nolint:errorlint // not what else it is made of
	case *BusyError:
		return e.Cause
	case *request.OutageError:
		return e.Ended
	}
	return nil
}
