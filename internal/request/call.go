package request

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/script"
)

// A Call is one request to the server.
type Call struct {
	Server  *Server
	Script  *script.Script
	Keys    []string
	Args    []string
	Lease   time.Duration   // what it is about; bounds each attempt
	Stop    <-chan struct{} // ends the call with ErrClosed
	Until   time.Time       // ends the call with ErrWaitOver; zero: never
	Since   time.Time       // when its caller came, if that was before the call
	Single  bool            // one attempt only
	Patient bool            // an attempt may take a third of the lease, where that spares a change of goroutines
	Acks    bool            // replicas are to acknowledge it
	Key     string          // of what it is about, if that is not the first of Keys

	Retried  func()    // called before each attempt but the first
	Refusals *Refusals // of those who wait for one another; may be nil

	Course
}

// A Course is how a call went, beside the answer.
type Course struct {
	Sent    time.Time // when the latest attempt was sent
	Unknown bool      // some attempt may have been executed, or may still be
	Short   error     // too few replicas have acknowledged what was answered
	Left    bool      // Run returned early: ctx, Stop or Until ended it
	Pending *attempt  // the attempt in flight when Run returned early
	Failed  error     // why the latest attempt failed
}

// Unheard says whether an attempt without an answer may have done it after its
// caller had left: what a later attempt finds is then no news of a loss.
func (c *Course) Unheard() bool { return c.Left && c.Unknown }

// Uncertain says whether the script may have written, or may do so yet, though it
// has failed with err: its outcome is unknown, or the server has refused one of
// its commands. Of a script whose keys have another type nothing was done: it
// looks before it writes. Nor of one that the user may not run or give these keys:
// that is NOPERM, and ERR for a command inside of it. Nor of one whose keys are
// elsewhere.
func (call *Call) Uncertain(err error) bool {
	if call.Unknown || err == nil {
		return call.Unknown
	}
	re := driver.Failure(err)
	switch re.Code {
	case "WRONGTYPE", "NOPERM", "CROSSSLOT", "MOVED":
		return false
	}
	return re.Outcome == driver.Refused
}

// Run returns the server's answer. It returns early, with an error, when ctx
// ends, Stop is closed, Until has come, the server answers that trying again is
// no use, or it has given no useful answer for Config.OutageTimeout: see Look.
func (call *Call) Run(ctx context.Context) (driver.Reply, error) {
	if call.Server.messages.decided.Load() != asWritten {
		if err := call.choose(ctx); err != nil {
			return driver.Reply{}, err
		}
	}
	return call.Send(ctx)
}

// Send is Run for a script as it is.
func (call *Call) Send(ctx context.Context) (driver.Reply, error) {
	since := call.Since
	var pause time.Duration
	var elsewhere error // the latest answer that the server is not their primary
	for {
		reply, err := call.attempt(ctx)
		if err == nil && reply.Kind == driver.ReplyString && call.Script.Header().Wants != nil && !slices.Contains(call.Keys, reply.Str) {
			call.Keys = append(slices.Clip(call.Keys), reply.Str) // only of those does the server say that they may be at another node
			continue
		}
		if err == nil {
			call.placed()
			if call.Refusals != nil && (call.Refusals.last.Load() != nil || call.Refusals.also != nil) {
				call.Refusals.Over()
			}
			return reply, nil
		}
		if left, ok := err.(leftError); ok { //nolint:errorlint // made right here, never wrapped
			call.Left = true
			outage := call.Failed
			if outage == nil && call.Pending != nil {
				outage = call.Server.senders.of(call.Keys).late(call.Sent)
			}
			return driver.Reply{}, During(outage, left.error)
		}
		if since.IsZero() {
			since = call.Sent
		}
		err, elsewhere = call.misplaced(err, elsewhere)
		end, err := call.failed(ctx, err, cmp.Or(elsewhere, err), since) // the former says more than that its connection was left
		if err != nil {
			return driver.Reply{}, err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		d, left := pause/2+rand.N(pause/2), time.Until(end) //nolint:gosec // jitter
		if err := call.sleep(ctx, min(d, left)); err != nil {
			call.Left = true
			return driver.Reply{}, During(call.Failed, err)
		}
		if d >= left {
			return driver.Reply{}, &OutageError{Cause: call.Failed}
		}
		if call.Retried != nil {
			call.Retried()
		}
	}
}

// failed notes that the latest attempt has failed, and what is said of that. It
// returns until when the call goes on, or why it does not.
func (call *Call) failed(ctx context.Context, err, says error, since time.Time) (end time.Time, final error) {
	re := driver.Failure(err)
	call.Unknown = call.Unknown || re.Outcome == driver.Unknown
	if call.Refusals == nil {
		call.Refusals = &Refusals{}
	}
	if re.Permanent() { // that is an answer
		call.Refusals.Over()
	} else {
		call.Refusals.Note(says, call.Sent)
	}
	if call.Single || re.Permanent() {
		return end, fmt.Errorf("redlatch: %w", call.named(ctx, err))
	}
	key := ""
	if len(call.Keys) > 0 {
		key = call.Keys[0]
	}
	end, outage := call.Server.Look(key, call.Refusals, since, time.Now())
	if outage != nil {
		return end, &OutageError{Cause: says}
	}
	call.Failed = says
	return end, nil
}

// Patient says whether a caller still waits that has had no answer since then.
func (s *Server) Patient(since time.Time) bool { return time.Since(since) < s.Outage }

// During says why a call ended, and that the server did not answer then.
func During(outage, err error) error {
	ended, cause := GaveUp(err)
	if outage == nil || !ended {
		return err
	}
	return &OutageError{Cause: outage, Ended: cause}
}

// How a call ends if the server does not answer it.
var (
	ErrClosed      = errors.New("redlatch: client closed")
	ErrUnavailable = errors.New("redlatch: server unavailable")
)

// An OutageError is ErrUnavailable with its cause, and with what ended the wait
// for the server, if that was the caller's context.
type OutageError struct{ Cause, Ended error }

func (e *OutageError) Error() string {
	if e.Ended != nil {
		return fmt.Sprintf("%v: %v: %v", ErrUnavailable, e.Ended, e.Cause)
	}
	return fmt.Sprintf("%v: %v", ErrUnavailable, e.Cause)
}

func (e *OutageError) Unwrap() []error {
	if e.Ended != nil {
		return []error{ErrUnavailable, e.Ended, e.Cause}
	}
	return []error{ErrUnavailable, e.Cause}
}

// ErrNoAnswer is an attempt's end. It is not context.DeadlineExceeded, which
// would look as if the caller's time were over.
var ErrNoAnswer = errors.New("no answer in time")

// attempt sends the request once. The caller does so itself if that can be, and if
// few requests are in flight; many go out together. Else a worker does: no driver
// can be trusted to return in time.
func (call *Call) attempt(ctx context.Context) (driver.Reply, error) {
	if ctx.Err() != nil {
		return driver.Reply{}, leftError{ContextError(ctx)}
	}
	out := call.Server.senders.of(call.Keys)
	leaves, quick := ctx.Done() != nil, call.Until.IsZero() && call.Server.Traits.Timeout <= AttemptTimeout(call.Lease)
	call.Sent = time.Now()
	if call.inCaller(leaves, quick) && !call.acked() && !closed(call.Stop) {
		if b := out.enter(ctx, call.Sent); b != nil {
			return call.direct(ctx, b)
		}
	}
	a := call.Server.newAttempt(ctx, call)
	if quick && !leaves {
		out.wait(a)
		return call.answer(a)
	}
	limit := AttemptTimeout(call.Lease)
	var over <-chan time.Time
	if rest := call.Until.Sub(call.Sent); !call.Until.IsZero() && rest <= limit {
		a.timer.Reset(max(rest, 0))
		over = a.timer.C
	} else {
		a.limit = call.Sent.Add(limit)
	}
	out.send(a)
	var end error
	select {
	case <-a.done:
		switch a.ended {
		case noAnswer:
			// It goes on, and nobody waits for it.
			return driver.Reply{}, &driver.RunError{Outcome: driver.Unknown, Err: out.missing(limit)}
		case stopped:
			call.Pending = a
			return driver.Reply{}, leftError{ErrClosed}
		}
		if over != nil {
			a.timer.Stop()
		}
		return call.answer(a)
	case <-over:
		end = ErrWaitOver
	case <-ctx.Done():
		end = ContextError(ctx)
	}
	out.leave(a)
	call.Pending = a
	return driver.Reply{}, leftError{end}
}

// inCaller says whether the caller may be in the driver for as long as that takes.
// One that may want to leave needs a driver that it can leave. The driver is quick
// if it returns as soon as an attempt ends.
func (call *Call) inCaller(leaves, quick bool) bool {
	traits := &call.Server.Traits
	if leaves && (call.Single || !traits.Interruptible && !traits.Direct) {
		return false
	}
	return quick || call.Patient && call.Until.IsZero() && traits.Timeout <= call.Lease/3
}

// closed says whether a channel is: a caller that goes to the driver would not
// hear of that there.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// direct takes the request to the driver. If ctx has ended and there is no answer,
// the caller leaves, and a worker sends the request once more: the driver drops
// the first answer.
func (call *Call) direct(ctx context.Context, b *batch) (driver.Reply, error) {
	call.Short = nil
	out := b.s
	reply, err := b.run(ctx, call)
	if !call.dropped(ctx, err) {
		return reply, err
	}
	if driver.Failure(err).Outcome == driver.Unknown {
		call.Unknown = true
		if call.Retried != nil {
			call.Retried()
		}
		call.Pending = call.Server.newAttempt(ctx, call)
		call.Pending.ended = left
		out.send(call.Pending)
	} else if call.Failed == nil {
		call.Failed = out.late(call.Sent) // there was no connection
	}
	return driver.Reply{}, leftError{ContextError(ctx)}
}

// dropped says whether a driver has dropped the answer, because its caller has
// left.
func (call *Call) dropped(ctx context.Context, err error) bool {
	return call.Server.Traits.Interruptible && ctx.Err() != nil && !answered(err)
}

// acked says whether replicas are to acknowledge the request, on a connection of
// its own.
func (call *Call) acked() bool { return call.Acks && !call.Server.Acks.pointless(call.Keys[0]) }

// answer returns how a has ended, and frees it.
func (call *Call) answer(a *attempt) (driver.Reply, error) {
	reply, err := a.request.Reply, a.request.Err
	call.Short = a.short
	a.request, a.ctx, a.stop, a.limit, a.ended = driver.Request{}, nil, nil, time.Time{}, notEarly
	a.acks, a.key, a.short = 0, "", nil
	call.Server.attempts.Put(a)
	return reply, err
}

// sleep waits for d, or for an end of the call.
func (call *Call) sleep(ctx context.Context, d time.Duration) error {
	_, err := Pause(ctx, call.Stop, nil, call.Until, d)
	return err
}

// Finish brings a Run that returned early to its end, whoever has left: it
// waits for the outcome of what is in flight, and goes on.
func (call *Call) Finish() (driver.Reply, error) {
	call.Stop, call.Until = call.Server.Over, time.Time{}
	if call.Pending != nil {
		reply, err := call.Outcome()
		if err == nil || call.Single || driver.Failure(err).Permanent() {
			return reply, err
		}
	}
	if call.Retried != nil {
		call.Retried()
	}
	return call.Run(context.Background())
}

// Outcome waits for the attempt that was in flight when Run returned early,
// and returns what became of it. With nothing in flight it returns an error.
func (call *Call) Outcome() (driver.Reply, error) {
	a := call.Pending
	if a == nil {
		return driver.Reply{}, errNothingPending
	}
	call.Pending = nil
	a.timer.Reset(call.Server.Traits.Timeout + AttemptTimeout(call.Lease))
	select {
	case <-a.done:
		a.timer.Stop()
		reply, err := call.answer(a)
		if err != nil && driver.Failure(err).Outcome == driver.Unknown {
			call.Unknown = true
		}
		return reply, err
	case <-a.timer.C:
		call.Unknown = true
		return driver.Reply{}, &driver.RunError{Outcome: driver.Unknown, Err: ErrNoAnswer}
	}
}

var errNothingPending = &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("nothing in flight")}

// A leftError says that the caller left; it is not the server's word.
type leftError struct{ error }

// AttemptTimeout is how long one attempt may take before it is given up (it
// may still be executed later, and every script allows for that).
func AttemptTimeout(lease time.Duration) time.Duration {
	return min(max(lease/10, 100*time.Millisecond), LongestAttempt)
}

// LongestAttempt is the longest that an attempt may take.
const LongestAttempt = 3 * time.Second

// Question prepares a request that changes nothing.
func (s *Server) Question(script *script.Script, keys []string) Call {
	return Call{Server: s, Script: script, Keys: keys, Args: []string{}, Lease: s.Length, Stop: s.Quit}
}
