package redlatch

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/worker"
)

// Events are functions to be called when something happens. Each may be nil. The
// structs may gain fields. No function may panic.
//
// AcquireStart, AcquireEnd and HoldEnd tell of every acquisition, its begin and its
// ends: traces and metrics can be made of them. They are called by the goroutine that
// acquires or releases, several at a time; they must not block and must not call back
// into the Client.
//
// An acquisition is a call that may wait: Acquire, AcquireMany, Do, and the same with Try, of
// locks, semaphores and rate limiters, CountDownLatch.Wait and Barrier.Await. A Multi is
// acquired as one, and told of by the first of its members' clients that has one of these
// functions. A call with a nil context is not told of.
//
// All others are called one at a time, in the order in which things happened, and
// nothing waits for them: a slow one delays only those behind it. Of those at most
// 10,000 wait, the rest are summed up by Skipped, and Close drops them, but for
// ReleaseFailed, which may also be called after Close.
type Events struct {
	// AcquireStart is called when an acquisition begins, before anything is asked. The
	// context that it returns is the one that the acquisition goes on with, and of which
	// Hold.Context and the function that Do calls have the values. It must descend from
	// ctx, or nobody could end the call or re-enter a lock; nil stands for ctx.
	AcquireStart func(ctx context.Context, e AcquireStartEvent) context.Context
	// AcquireEnd is called once for each call of AcquireStart, before the acquisition
	// returns, with the context that AcquireStart returned. That may have ended.
	AcquireEnd func(ctx context.Context, e AcquireEndEvent)
	// HoldEnd is called once for whatever was acquired and is held: a Hold, a MultiHold,
	// or each Permit, of several that were acquired at once too. That is after AcquireEnd,
	// and with the same context, of which the values count: it may have ended.
	//
	// A Release calls it when it is known whether the hold had been lost, and before it
	// returns. For holds that end otherwise it is called one at a time, in the order in
	// which they ended, and nothing waits for it but Close, at most for
	// Config.CloseTimeout. None of them is skipped or dropped; that of a MultiHold, or of a
	// hold that was lost when the client was being closed, may come just after Close.
	//
	// The next holder of the same lock may have begun, and its AcquireEnd may have been
	// called, before.
	HoldEnd func(ctx context.Context, e HoldEndEvent)
	// Lost is called when a hold is lost, after its context has ended. A Release may be the
	// first to learn that.
	Lost func(LostEvent)
	// ReleaseFailed is called when a release could not be confirmed. The lock
	// is then left to its TTL, and a later request may still free it sooner.
	// Permits of a Semaphore are not given back again.
	ReleaseFailed func(ReleaseFailedEvent)
	// RenewFailed is called for each batch of renewals that failed; they are
	// tried again until the holds' trust ends.
	RenewFailed func(RenewFailedEvent)
	// SlowWait is called once for an acquisition that has waited for
	// Config.SlowWait for a lock that this process itself holds.
	SlowWait func(SlowWaitEvent)
	// PossibleDeadlock is called when Client.Participants has found callers, of whatever
	// clients, that seem to wait for one another: once for each circle while it stands. See
	// Participants.PossibleDeadlocks.
	PossibleDeadlock func(PossibleDeadlockEvent)
	// Requeued is called when a caller that waits for a fair lock has lost its
	// place in the queue and has to stand at its end again: its client could not
	// be heard for six seconds, or a Redisson client took it for dead.
	Requeued func(RequeuedEvent)
	// NotAcknowledged is called when an acquisition went on without its replicas
	// (AckBestEffort), or when they do not know of permits that were given back, or of
	// another change of their number.
	NotAcknowledged func(NotAcknowledgedEvent)
	// Skipped is called when more happened than could be told one by one.
	Skipped func(SkippedEvent)
	// Dropped is called when a Hold or a Permit was garbage collected without having
	// been released. redlatch releases it then.
	Dropped func(DroppedEvent)
}

// An AcquireStartEvent tells of an acquisition that begins.
type AcquireStartEvent struct {
	Name string // of a Multi: the names of its members, separated by commas, equal ones once
	Kind Kind
	Mode string // of a read-write lock: "read" or "write"
	N    int    // how many permits are wanted; 0 if it is not about permits
}

// An AcquireEndEvent tells how an acquisition went.
type AcquireEndEvent struct {
	Name, Mode string        // as in AcquireStartEvent
	Kind       Kind          // as in AcquireStartEvent
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
	Kind       Kind          // as in AcquireStartEvent
	Owner      string        // as in AcquireEndEvent; the id of each of several permits
	Held       time.Duration // from the acquisition to the end
	Reason     EndReason
	Err        error // why it was lost: a *LostError, or several, joined, of a RedLock; else nil
}

// An Outcome says how an acquisition went.
type Outcome string

// The outcomes of an acquisition. Only with the first three it has succeeded.
const (
	// OutcomeAcquired: it has what it wanted. A latch has been counted down, at a
	// barrier all have arrived.
	OutcomeAcquired Outcome = "acquired"
	// OutcomeHandedOff: the same, but from another goroutine of this process, without a
	// request for it; or readers of this process share what one of them has.
	OutcomeHandedOff Outcome = "handed_off"
	// OutcomeReentered: the caller held the lock already, and does once more.
	OutcomeReentered Outcome = "reentered"
	// OutcomeBusy: a call that does not wait (TryAcquire or TryDo with 0) could not have it at once.
	OutcomeBusy Outcome = "busy"
	// OutcomeTimedOut: the wait given to TryAcquire or TryDo, or the context's deadline,
	// was over before.
	OutcomeTimedOut Outcome = "timed_out"
	// OutcomeCancelled: the context was cancelled before.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeBroken: the generation of a barrier was broken.
	OutcomeBroken Outcome = "broken"
	// OutcomeUnavailable: the server did not answer, for Config.OutageTimeout or until the
	// wait was over, or it was short of memory; or its replicas did not acknowledge in time.
	OutcomeUnavailable Outcome = "unavailable"
	// OutcomeRefused: the same call would fail again, until somebody changes something:
	// ErrInvalid, ErrReentry, an outer hold that is over, ErrUninitialized, a
	// key of another type, no permission.
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
	// EndDetached: Permit.Detach has handed it over by its id.
	EndDetached EndReason = "detached"
	// EndLost: it was lost; its Release may have been the first to learn that.
	EndLost EndReason = "lost"
	// EndDropped: it was garbage collected without having been released.
	EndDropped EndReason = "dropped"
	// EndClosed: the client was closed.
	EndClosed EndReason = "closed"
)

// A LostEvent tells of a lost hold, or a lost permit of an ExpirableSemaphore. What was
// acquired as several is lost, and told, one by one.
type LostEvent struct {
	Err     *LostError    // what was lost, why, and when the server had last confirmed it
	Kind    Kind          // of what was lost
	Mode    string        // of a read-write lock: "read" or "write"
	Several bool          // it was acquired by a Multi
	Token   int64         // fencing token; 0 if it has none
	At      time.Time     // when it was lost: its context had ended then
	Held    time.Duration // from the acquisition to the loss
	Site    string        // file:line of the acquisition
	Renewed bool          // the watchdog renewed it; else it had a Lease
	Lease   time.Duration // for how long the server had confirmed it
	// Late is how much later than the end of its time the loss was noticed: a millisecond
	// or so, or else this process, or its machine, stood still. The next holder may have
	// been inside meanwhile. It is 0 if Err.Reason is LostGone or LostRevoked.
	Late time.Duration
	// RenewErr is why the latest renewal failed that failed after Err.Confirmed, and
	// RenewFailed when that was known. They are zero if none has failed.
	RenewErr    error
	RenewFailed time.Time
	Node        string   // that served it, as the driver names it; empty if there is only one
	Client      Identity // of this client
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
	Waits []CircularWait // the holder of what one waits for is the owner of the next
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

// A DroppedEvent tells of a Hold or a Permit that was never released.
type DroppedEvent struct {
	Name string
	Site string // file:line of the acquisition
}

// A SkippedEvent stands for events that were not told, because too many waited.
type SkippedEvent struct {
	Events int // how many
}

const (
	maxReports = 10000 // may wait to be told
	mostLogged = 10    // waits of a circle are in its line
)

// reporter turns what happens into events and log lines, in the order in which it
// happened. Whoever notices something waits for none of them.
type reporter struct {
	log      *slog.Logger
	events   Events
	client   Identity
	redis    string // Config.ServerName
	observes bool   // acquisitions
	queue    *worker.Queue
	ends     *worker.Queue // of holds

	lately           claim.Losses
	losses, failures atomic.Uint64 // since the client began; failures are of renewals
}

func (r *reporter) start(cfg *Config) {
	r.log, r.events, r.client, r.redis = cfg.Logger, cfg.Events, cfg.Identity, cfg.ServerName
	r.observes = r.events.AcquireStart != nil || r.events.AcquireEnd != nil || r.events.HoldEnd != nil
	r.ends = worker.NewQueue(0, nil)
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

func (r *reporter) lost(loss claim.Loss) {
	err, ok := loss.Err.(*LostError) //nolint:errorlint // lostLock or permitLost made it
	if !ok {
		return
	}
	r.losses.Add(1)
	r.lately.Add(loss, string(err.Reason))
	r.queue.Add(func() {
		e := LostEvent{
			Err: err, Kind: Kind(loss.Kind), Mode: loss.Mode, Several: loss.Several, Token: loss.Token,
			At: loss.At, Held: renew.Elapsed(loss.Since, loss.At), Site: loss.Site.String(), Renewed: loss.Renewed, Lease: loss.Lease,
			RenewErr: loss.Failure, RenewFailed: loss.FailureAt, Node: loss.Node, Client: r.client,
		}
		if holdctx.Reason(err.Reason).Lapsed() {
			e.Late = max(0, renew.Elapsed(loss.Until, loss.At))
		}
		r.log.LogAttrs(context.Background(), slog.LevelError, "lock lost", append(e.attrs(), optional("redis", r.redis)...)...)
		tell(r.events.Lost, e)
	})
}

// attrs are all that whoever is woken by the loss needs, in one line.
func (e *LostEvent) attrs() []slog.Attr {
	why := e.Err.Reason.sentence()
	ms := func(key string, d time.Duration) slog.Attr { return slog.Duration(key, d.Round(time.Millisecond)) }
	all := []slog.Attr{slog.String("name", e.Err.Name), slog.String("kind", string(e.Kind))}
	all = append(all, optional("mode", e.Mode)...)
	if e.Several {
		all = append(all, slog.Bool("one_of_several", true))
	}
	all = append(
		all, slog.String("owner", e.Err.Owner), slog.String("reason", string(e.Err.Reason)), slog.String("why", why),
		ms("held", e.Held), ms("late", e.Late), ms("unconfirmed_for", renew.Elapsed(e.Err.Confirmed, e.At)), ms("lease", e.Lease), slog.Bool("watchdog", e.Renewed),
	)
	if e.RenewErr != nil {
		all = append(all, slog.String("renewal_err", e.RenewErr.Error()), ms("renewal_failed_before", renew.Elapsed(e.RenewFailed, e.At)))
	}
	if e.Token != 0 {
		all = append(all, slog.Int64("token", e.Token))
	}
	all = append(all, slog.String("acquired_at", e.Site), slog.String("client", e.Client.String()))
	return append(all, optional("node", e.Node)...)
}

// optional is an attribute, unless it says nothing.
func optional(key, value string) []slog.Attr {
	if value == "" {
		return nil
	}
	return []slog.Attr{slog.String(key, value)}
}

func (r *reporter) releaseFailed(name, owner string, err error) {
	e := ReleaseFailedEvent{Name: name, Owner: owner, Err: err}
	r.queue.AddLasting(func() {
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

func (r *reporter) possibleDeadlock(waits []CircularWait) {
	r.queue.Add(func() {
		lines := make([]string, min(len(waits), mostLogged))
		for i := range lines {
			lines[i] = waits[i].String()
		}
		r.log.Warn("possible deadlock", "callers", len(waits), "waits", lines)
		tell(r.events.PossibleDeadlock, PossibleDeadlockEvent{Waits: waits})
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

// locks are the events of locks as these tell them; refused is told for whom callers wait, and first that the client
// makes its first owner id.
func (r *reporter) locks(refused func(owner string), first func()) lock.Events {
	return lock.Events{
		Lost: r.lost, ReleaseFailed: r.releaseFailed, SlowWait: r.slowWait, Requeued: r.requeued, Dropped: r.dropped,
		Refused: refused, First: first,
	}
}
