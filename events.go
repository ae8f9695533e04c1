package redlatch

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/worker"
)

// Events are functions to be called when something happens. Each may be nil. The
// structs may gain fields.
//
// Acquired and Released are called by the goroutine that acquires or releases,
// several at a time; they must not block and must not call back into the Client.
// All others are called one at a time, in the order in which things happened, and
// nothing waits for them: a slow one delays only those behind it. Of those at most
// 10,000 wait, the rest are summed up by Skipped, and Close drops them.
type Events struct {
	// Acquired is called after each successful acquisition.
	Acquired func(AcquiredEvent)
	// Released is called after each release by its holder.
	Released func(ReleasedEvent)
	// Lost is called when a hold is lost, after its context has ended.
	Lost func(LostEvent)
	// ReleaseFailed is called when a release could not be confirmed. The lock
	// is then left to its TTL, and a later request may still free it sooner.
	// Permits of a Semaphore are gone.
	ReleaseFailed func(ReleaseFailedEvent)
	// RenewFailed is called for each batch of renewals that failed; they are
	// tried again until the holds' trust ends.
	RenewFailed func(RenewFailedEvent)
	// SlowWait is called once for an acquisition that has waited for
	// Config.SlowWait for a lock that this process itself holds.
	SlowWait func(SlowWaitEvent)
	// Requeued is called when a caller that waits for a fair lock has lost its
	// place in the queue and has to stand at its end again: its client could not
	// be heard for six seconds, or a Redisson client took it for dead.
	Requeued func(RequeuedEvent)
	// NotAcknowledged is called when an acquisition went on without its replicas
	// (AcksBestEffort), or when they do not know of permits that were given back, or of
	// another change of their number.
	NotAcknowledged func(NotAcknowledgedEvent)
	// Skipped is called when more happened than could be told one by one.
	Skipped func(SkippedEvent)
	// Dropped is called when a Hold was garbage collected without having been
	// released. It has been released then.
	Dropped func(DroppedEvent)
}

// An AcquiredEvent tells of an acquisition.
type AcquiredEvent struct {
	Name, Owner string
	Waited      time.Duration // from the call to the acquisition
	Count       int           // the hold count that Redis shows: 1, or more after a re-entry
	HandedOff   bool          // passed on inside the process, without going back to Redis
}

// A ReleasedEvent tells of a release.
type ReleasedEvent struct {
	Name, Owner string
	Held        time.Duration // from the acquisition to the release
}

// A LostEvent tells of a lost hold.
type LostEvent struct {
	Err  *LostError
	Held time.Duration // from the acquisition to the loss
	Site string        // file:line of the acquisition
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

// A RequeuedEvent tells of a waiter that has lost its place.
type RequeuedEvent struct {
	Name, Owner string
	Waited      time.Duration // so far
}

// A NotAcknowledgedEvent tells of an acquisition, or a change of the number of
// permits, that replicas have not acknowledged in time. It counts nevertheless.
type NotAcknowledgedEvent struct {
	Name string
	Err  *AckError
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

// maxReports is how many reports may wait to be told.
const maxReports = 10000

// reporter turns what happens into events and log lines, in the order in which it
// happened. Whoever notices something waits for none of them.
type reporter struct {
	log    *slog.Logger
	events Events
	queue  *worker.Queue

	losses, failures atomic.Uint64 // since the client began; failures are of renewals
}

func (r *reporter) start(log *slog.Logger, events Events) {
	r.log, r.events = log, events
	r.queue = worker.NewQueue(maxReports, func(n int) {
		r.log.Error("more happened than could be reported", "events", n)
		tell(r.events.Skipped, SkippedEvent{Events: n})
	})
}

// tell calls a function for an event, if there is one.
func tell[E any](f func(E), e E) {
	if f != nil {
		f(e)
	}
}

func (r *reporter) lost(end error, since time.Time, at callsite.Site) {
	err, ok := end.(*LostError) //nolint:errorlint // lostLock or permitLost made it
	if !ok {
		return
	}
	r.losses.Add(1)
	held := time.Since(since)
	r.queue.Add(func() {
		r.log.Error("lock lost", "name", err.Name, "owner", err.Owner, "reason", string(err.Reason), "held", held, "acquired_at", at.String())
		tell(r.events.Lost, LostEvent{Err: err, Held: held, Site: at.String()})
	})
}

func (r *reporter) releaseFailed(name, owner string, err error) {
	e := ReleaseFailedEvent{Name: name, Owner: owner, Err: err}
	r.queue.Add(func() {
		r.log.Warn("release not confirmed", "name", e.Name, "owner", e.Owner, "err", e.Err)
		tell(r.events.ReleaseFailed, e)
	})
}

func (r *reporter) renewFailed(holds int, err error) {
	r.failures.Add(uint64(holds))
	e := RenewFailedEvent{Holds: holds, Err: err}
	r.queue.Add(func() {
		r.log.Warn("renewal failed", "holds", e.Holds, "err", e.Err)
		tell(r.events.RenewFailed, e)
	})
}

func (r *reporter) slowWait(name string, waited time.Duration, waiting, holding callsite.Site) {
	r.queue.Add(func() {
		e := SlowWaitEvent{Name: name, Waited: waited, WaitSite: waiting.String(), HoldSite: holding.String()}
		r.log.Warn("waiting for a lock that this process holds", "name", e.Name, "waited", e.Waited, "waiting_at", e.WaitSite, "acquired_at", e.HoldSite)
		tell(r.events.SlowWait, e)
	})
}

func (r *reporter) requeued(name, owner string, waited time.Duration) {
	e := RequeuedEvent{Name: name, Owner: owner, Waited: waited}
	r.queue.Add(func() {
		r.log.Warn("place in a fair lock's queue lost", "name", e.Name, "owner", e.Owner, "waited", e.Waited)
		tell(r.events.Requeued, e)
	})
}

func (r *reporter) notAcknowledged(err error) {
	short, ok := err.(*AckError) //nolint:errorlint // tooFew makes it
	if !ok {
		return
	}
	e := NotAcknowledgedEvent{Name: short.Name, Err: short}
	r.queue.Add(func() {
		r.log.Warn("not acknowledged by replicas", "name", e.Name, "want", e.Err.Want, "got", e.Err.Got)
		tell(r.events.NotAcknowledged, e)
	})
}

func (r *reporter) dropped(name string, at callsite.Site) {
	r.queue.Add(func() {
		r.log.Error("hold dropped without release", "name", name, "acquired_at", at.String())
		tell(r.events.Dropped, DroppedEvent{Name: name, Site: at.String()})
	})
}

// locks are the events of locks as these tell them.
func (r *reporter) locks() lock.Events {
	e := lock.Events{
		Lost: r.lost, ReleaseFailed: r.releaseFailed, RenewFailed: r.renewFailed,
		SlowWait: r.slowWait, Requeued: r.requeued, Dropped: r.dropped,
	}
	if f := r.events.Acquired; f != nil {
		e.Acquired = func(a lock.Acquired) { f(AcquiredEvent(a)) }
	}
	if f := r.events.Released; f != nil {
		e.Released = func(name, owner string, held time.Duration) {
			f(ReleasedEvent{Name: name, Owner: owner, Held: held})
		}
	}
	return e
}
