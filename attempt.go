package redlatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// An op is one request to the server, sent until the server has answered it.
// Every script allows for being executed more than once, and late.
//
//	run ──► attempt ── answered ──► the reply
//	 ▲         ├────── failed: sleep, and again, while that makes sense
//	 └─────────┘
//	           └────── the caller leaves: left, and pending is the attempt
//	                   that is under way, if one is
//	                     ├── outcome: what becomes of that attempt
//	                     └── finish: the same, and on with run if it failed
type op struct {
	c      *Client
	script *Script
	keys   []string
	args   []string
	lease  time.Duration   // what it is about; bounds each attempt
	stop   <-chan struct{} // ends the op with ErrClosed
	until  time.Time       // ends the op with errWaitOver; zero: never
	single bool            // one attempt only
	acks   bool            // replicas are to acknowledge it

	// How it went.
	sent    time.Time // when the latest attempt was sent
	unknown bool      // some attempt may have been executed, or may still be
	short   *AckError // too few replicas have acknowledged what was answered
	left    bool      // run returned early: ctx, stop or until ended it
	pending *attempt  // the attempt under way when run returned early
	failed  error     // why the latest attempt failed
	retried func()    // called before each attempt but the first
}

// uncertain says whether the script may have written, or may do so yet, though it
// has failed with err: its outcome is unknown, or the server has refused one of its
// commands. Of a script whose keys have another type nothing was done: it looks
// before it writes. Nor of one that the user may not run or give these keys: that is
// NOPERM, and ERR for a command inside of it.
func (o *op) uncertain(err error) bool {
	re := runError(err)
	return o.unknown || re.Outcome == Refused && re.Code != "WRONGTYPE" && re.Code != "NOPERM"
}

// run returns the server's answer. It returns early, with an error, when ctx
// ends, stop is closed, until has come, the server answers that trying again is
// no use, or it has given no useful answer for Config.OutageTimeout.
func (o *op) run(ctx context.Context) (Reply, error) {
	m, err := o.by(ctx)
	if err != nil {
		return Reply{}, err
	}
	o.script = o.script.By(m)
	return o.send(ctx)
}

// send is run for a script as it is.
func (o *op) send(ctx context.Context) (Reply, error) {
	var start time.Time // when the first attempt was sent
	var pause time.Duration
	for {
		reply, err := o.attempt(ctx)
		if err == nil {
			return reply, nil
		}
		if left, ok := err.(leftError); ok { //nolint:errorlint // made right here, never wrapped
			o.left = true
			return Reply{}, during(o.failed, left.error)
		}
		if start.IsZero() {
			start = o.sent
		}
		re := runError(err)
		if re.Outcome == Unknown {
			o.unknown = true
		}
		if o.single || re.permanent() {
			return Reply{}, fmt.Errorf("redlatch: %w", err)
		}
		if time.Since(start) >= o.c.cfg.OutageTimeout {
			return Reply{}, &outageError{cause: err}
		}
		o.failed = err
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		if err := o.sleep(ctx, pause/2+rand.N(pause/2)); err != nil { //nolint:gosec // jitter
			o.left = true
			return Reply{}, during(o.failed, err)
		}
		if o.retried != nil {
			o.retried()
		}
	}
}

// during says why a call ended, and that the server did not answer then.
func during(outage, err error) error {
	if outage == nil || errors.Is(err, ErrClosed) {
		return err
	}
	if errors.Is(err, errWaitOver) {
		return &outageError{cause: outage}
	}
	return &outageError{cause: outage, ended: err}
}

// An outageError is ErrUnavailable with its cause, and with what ended the wait
// for the server, if that was the caller's context.
type outageError struct{ cause, ended error }

func (e *outageError) Error() string {
	if e.ended != nil {
		return fmt.Sprintf("%v: %v: %v", ErrUnavailable, e.ended, e.cause)
	}
	return fmt.Sprintf("%v: %v", ErrUnavailable, e.cause)
}

func (e *outageError) Unwrap() []error {
	if e.ended != nil {
		return []error{ErrUnavailable, e.ended, e.cause}
	}
	return []error{ErrUnavailable, e.cause}
}

// errNoAnswer is an attempt's end. It is not context.DeadlineExceeded, which
// would look as if the caller's time were over.
var errNoAnswer = errors.New("no answer in time")

// attempt sends the request once: by a worker if the caller may have to leave
// before the driver returns, which no driver can be trusted to do in time; else
// right here.
func (o *op) attempt(ctx context.Context) (Reply, error) {
	s := o.c.senders.of(o.keys)
	if ctx.Done() == nil && o.until.IsZero() && o.c.promptFor(o.lease) {
		a := o.c.newAttempt(ctx, o)
		o.sent = time.Now()
		s.wait(a)
		return o.answer(a)
	}
	if ctx.Err() != nil {
		return Reply{}, leftError{ctxError(ctx)}
	}
	a := o.c.newAttempt(ctx, o)
	o.sent = time.Now()
	limit := attemptTimeout(o.lease)
	var over <-chan time.Time
	if rest := o.until.Sub(o.sent); !o.until.IsZero() && rest <= limit {
		a.timer.Reset(max(rest, 0))
		over = a.timer.C
	} else {
		a.limit = o.sent.Add(limit)
	}
	s.send(a)
	var end error
	select {
	case <-a.done:
		switch a.early {
		case noAnswer:
			// It goes on, and nobody waits for it.
			return Reply{}, &RunError{Outcome: Unknown, Err: fmt.Errorf("%w (%v)", errNoAnswer, limit)}
		case stopped:
			o.pending = a
			return Reply{}, leftError{ErrClosed}
		}
		if over != nil {
			a.timer.Stop()
		}
		return o.answer(a)
	case <-over:
		end = errWaitOver
	case <-ctx.Done():
		end = ctxError(ctx)
	}
	s.leave(a)
	o.pending = a
	return Reply{}, leftError{end}
}

// answer returns how a has ended, and frees it.
func (o *op) answer(a *attempt) (Reply, error) {
	o.short = a.short
	return o.c.answer(a)
}

// sleep waits for d, or for an end of the op.
func (o *op) sleep(ctx context.Context, d time.Duration) error {
	_, err := nap(ctx, o.stop, nil, o.until, d)
	return err
}

// nap waits for d, and says whether wake delivered before. It ends with ctx,
// stop and until.
func nap(ctx context.Context, stop, wake <-chan struct{}, until time.Time, d time.Duration) (woken bool, err error) {
	last := false
	if !until.IsZero() {
		if left := time.Until(until); left <= d {
			d, last = max(left, 0), true
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-wake:
		return true, nil
	case <-ctx.Done():
		return false, ctxError(ctx)
	case <-stop:
		return false, ErrClosed
	case <-t.C:
		if last {
			return false, errWaitOver
		}
		return false, nil
	}
}

// sleepOver waits for d and says whether the client still settles things.
func (c *Client) sleepOver(d time.Duration) bool {
	_, err := nap(context.Background(), c.over, nil, time.Time{}, d)
	return err == nil
}

// finish brings a run that returned early to its end, whoever has left: it
// waits for the outcome of what is under way, and goes on.
func (o *op) finish() (Reply, error) {
	o.stop, o.until = o.c.over, time.Time{}
	if o.pending != nil {
		reply, err := o.outcome()
		if err == nil || o.single || runError(err).permanent() {
			return reply, err
		}
	}
	if o.retried != nil {
		o.retried()
	}
	return o.run(context.Background())
}

// outcome waits for the attempt that was under way when run returned early,
// and returns what became of it. With nothing under way it returns an error.
func (o *op) outcome() (Reply, error) {
	a := o.pending
	if a == nil {
		return Reply{}, errNothingPending
	}
	o.pending = nil
	a.timer.Reset(o.c.traits.Timeout + attemptTimeout(o.lease))
	select {
	case <-a.done:
		a.timer.Stop()
		reply, err := o.answer(a)
		if err != nil && runError(err).Outcome == Unknown {
			o.unknown = true
		}
		return reply, err
	case <-a.timer.C:
		o.unknown = true
		return Reply{}, &RunError{Outcome: Unknown, Err: errNoAnswer}
	}
}

var errNothingPending = &RunError{Outcome: NotExecuted, Err: errors.New("nothing under way")}

// A leftError says that the caller left; it is not the server's word.
type leftError struct{ error }

// promptFor says whether the driver itself bounds a call as tightly as an
// attempt is to be bounded.
func (c *Client) promptFor(lease time.Duration) bool {
	return c.traits.Timeout <= attemptTimeout(lease)
}

// ctxError returns ctx's error and, if it says more, its cause.
func ctxError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		if cause != nil {
			return cause
		}
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
