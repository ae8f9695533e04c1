package observe

import (
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// An AcquireStartEvent tells of an acquisition that begins.
type AcquireStartEvent struct {
	Name string // of several locks: the names of its members, separated by commas, equal ones once
	Kind redlatch.Kind
	Mode string // of a read-write lock: "read" or "write"
	N    int    // how many permits are wanted; 0 if it is not about permits
}

// An AcquireEndEvent tells how an acquisition went.
type AcquireEndEvent struct {
	Name, Mode string        // as in AcquireStartEvent
	Kind       redlatch.Kind // as in AcquireStartEvent
	N          int           // as in AcquireStartEvent
	Owner      string        // of the hold, or the id of the permit; empty if there is none, or more than one
	Waited     time.Duration // from the call to its end
	Outcome    Outcome
	Err        error // what the call returns; nil if it has succeeded
	Count      int   // of a lock: the hold count that Redis shows, 1, or more after a re-entry
}

// A HoldEndEvent tells how a hold ended.
type HoldEndEvent struct {
	Name, Mode string        // as in AcquireStartEvent
	Kind       redlatch.Kind // as in AcquireStartEvent
	Owner      string        // as in AcquireEndEvent; the id of each of several permits
	Held       time.Duration // from the acquisition to the end
	Reason     EndReason
	Err        error // why it was lost: a *redlatch.LostError, or several, joined, of a RedLock; else nil
}

// An Outcome says how an acquisition went.
type Outcome string

// The outcomes of an acquisition. Only with the first three it has succeeded.
const (
	// OutcomeAcquired: it has what it wanted. A latch has been counted down, at a
	// barrier all have arrived.
	OutcomeAcquired Outcome = "acquired"
	// OutcomeHandedOff: the same, but from another goroutine of this process, without
	// a request for it; or readers of this process share what one of them has.
	OutcomeHandedOff Outcome = "handed_off"
	// OutcomeReentered: the caller held the lock already, and does once more.
	OutcomeReentered Outcome = "reentered"
	// OutcomeBusy: a call that does not wait (TryAcquire or TryDo with 0) could not
	// have it at once.
	OutcomeBusy Outcome = "busy"
	// OutcomeTimedOut: the time that TryAcquire or TryDo was given, or the context's
	// deadline, was over before; or that time was known to be too short, and the call
	// did not wait (redlatch.BusyError.RetryAfter).
	OutcomeTimedOut Outcome = "timed_out"
	// OutcomeCancelled: the context was cancelled before.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeBroken: the generation of a barrier was broken.
	OutcomeBroken Outcome = "broken"
	// OutcomeUnavailable: the server did not answer, for redlatch.Config.OutageTimeout
	// or until the wait was over, or it was short of memory; or its replicas did not
	// acknowledge in time.
	OutcomeUnavailable Outcome = "unavailable"
	// OutcomeRefused: the same call would fail again, until somebody changes
	// something: redlatch.ErrInvalid, ErrReentry, an outer hold that is over,
	// ErrUninitialized, a key of another type, no permission.
	OutcomeRefused Outcome = "refused"
	// OutcomeClosed: the client was closed.
	OutcomeClosed Outcome = "closed"
)

// An EndReason says how a hold ended.
type EndReason string

// The ways in which a hold ends.
const (
	// EndReleased: it was released, and nothing says that it had been lost before.
	EndReleased EndReason = "released"
	// EndDetached: redlatch.Hold.Detach has handed it over by its id.
	EndDetached EndReason = "detached"
	// EndLost: it was lost; its Release may have been the first to learn that.
	EndLost EndReason = "lost"
	// EndDropped: it was garbage collected without having been released.
	EndDropped EndReason = "dropped"
	// EndClosed: the client was closed.
	EndClosed EndReason = "closed"
)

// A LostEvent tells of a lost hold, or a lost permit of a semaphore.Expirable.
// What was acquired as several is lost, and told, one by one.
type LostEvent struct {
	Err     *redlatch.LostError // what was lost, why, and when the server had last confirmed it
	Kind    redlatch.Kind       // of what was lost
	Mode    string              // of a read-write lock: "read" or "write"
	Several bool                // it was acquired as one of several
	Token   int64               // fencing token; 0 if it has none
	At      time.Time           // when it was lost: its context had ended then
	Held    time.Duration       // from the acquisition to the loss
	Site    string              // file:line of the acquisition
	Renewed bool                // the watchdog renewed it; else it had a Lease
	Lease   time.Duration       // for how long the server had confirmed it
	// Late is how much later than the end of its time the loss was noticed: a
	// millisecond or so, or else this process, or its machine, stood still. The next
	// holder may have been inside meanwhile. It is 0 if Err.Reason is
	// redlatch.LostGone or redlatch.LostRevoked.
	Late time.Duration
	// RenewErr is why the latest renewal failed that failed after Err.Confirmed, and
	// RenewFailed when that was known. They are zero if none has failed.
	RenewErr    error
	RenewFailed time.Time
	Node        string            // that served it, as the driver names it; empty if there is only one
	Client      redlatch.Identity // of this client
}

// A ReleaseFailedEvent tells of a release that could not be confirmed.
type ReleaseFailedEvent struct {
	Name, Owner string
	Err         error
}

// A RenewFailedEvent tells of a batch of renewals that failed.
type RenewFailedEvent struct {
	Holds int // how many locks were in the batch
	Err   error
}

// A SlowWaitEvent tells of a process that waits for itself.
type SlowWaitEvent struct {
	Name     string
	Waited   time.Duration // so far
	WaitSite string        // file:line of the waiting acquisition
	HoldSite string        // file:line of the acquisition that has the lock
}

// A PossibleDeadlockEvent tells of callers that seem to wait for one another.
type PossibleDeadlockEvent struct {
	Waits []admin.CircularWait // the holder of what one waits for is the owner of the next
}

// A RequeuedEvent tells of a waiter that has lost its place.
type RequeuedEvent struct {
	Name, Owner string
	Waited      time.Duration // so far
}

// A NotAcknowledgedEvent tells of an acquisition, or a change of the number of
// permits, that replicas have not acknowledged in time. It counts nevertheless.
type NotAcknowledgedEvent struct {
	Name string
	Err  *redlatch.AckError
}

// A DroppedEvent tells of a Hold that was never released.
type DroppedEvent struct {
	Name string
	Site string // file:line of the acquisition
}

// A SkippedEvent stands for events that were not told, because too many waited.
type SkippedEvent struct {
	Events int // how many
}
