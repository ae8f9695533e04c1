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
type op struct {
	c      *Client
	script *Script
	keys   []string
	args   []string
	lease  time.Duration   // what it is about; bounds each attempt
	stop   <-chan struct{} // ends the op with ErrClosed; nil: never
	single bool            // one attempt only

	// How it went.
	sent    time.Time // when the latest attempt was sent
	unknown bool      // some attempt may have been executed, or may still be
	pending *attempt  // the attempt under way when run returned early
	retried func()    // called before each attempt but the first
}

// run returns the server's answer. It returns early, with an error, when ctx
// ends, stop is closed, the server answers that trying again is no use, or it
// has not answered for Config.OutageTimeout.
func (o *op) run(ctx context.Context) (Reply, error) {
	since := time.Now() // the server's last answer, or our first question
	var pause time.Duration
	for {
		reply, err := o.attempt(ctx)
		if err == nil {
			return reply, nil
		}
		if left, ok := err.(leftError); ok { //nolint:errorlint // made right here, never wrapped
			return Reply{}, left.error
		}
		re := runError(err)
		switch {
		case re.Outcome == Unknown:
			o.unknown = true
		case re.permanent():
			return Reply{}, fmt.Errorf("redlatch: %w", err)
		}
		if re.Code != "" {
			since = time.Now()
			if re.Outcome == Refused && pause >= time.Second {
				return Reply{}, fmt.Errorf("redlatch: %w", err) // OOM and the like: it had its second chances
			}
		}
		if o.single {
			return Reply{}, fmt.Errorf("redlatch: %w", err)
		}
		if time.Since(since) >= o.c.cfg.OutageTimeout {
			return Reply{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		if err := o.c.sleep(ctx, o.stop, pause/2+rand.N(pause/2)); err != nil { //nolint:gosec // jitter
			return Reply{}, err
		}
		if o.retried != nil {
			o.retried()
		}
	}
}

// attempt sends the request once: on a worker if the caller may have to leave
// before the driver returns, which no driver can be trusted to do in time;
// else right here.
func (o *op) attempt(ctx context.Context) (Reply, error) {
	if ctx.Done() == nil && o.c.promptFor(o.lease) {
		o.sent = time.Now()
		return o.c.redis.Run(ctx, o.script, o.keys, o.args)
	}
	if err := ctx.Err(); err != nil {
		return Reply{}, leftError{ctxError(ctx)}
	}
	a := o.c.newAttempt()
	a.op, a.ctx = *o, context.WithoutCancel(ctx)
	a.timer.Reset(attemptTimeout(o.lease))
	o.sent = time.Now()
	o.c.pool.Go(a)
	select {
	case <-a.done:
		reply, err := a.reply, a.err
		o.c.freeAttempt(a)
		return reply, err
	case <-a.timer.C:
		// It goes on in its worker, and nobody waits for it.
		return Reply{}, &RunError{Outcome: Unknown, Err: fmt.Errorf("no answer within %v: %w", attemptTimeout(o.lease), context.DeadlineExceeded)}
	case <-ctx.Done():
		o.pending = a
		return Reply{}, leftError{ctxError(ctx)}
	case <-o.stop:
		o.pending = a
		return Reply{}, leftError{ErrClosed}
	}
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
		reply, err := a.reply, a.err
		o.c.freeAttempt(a)
		if err != nil && runError(err).Outcome == Unknown {
			o.unknown = true
		}
		return reply, err
	case <-a.timer.C:
		o.unknown = true
		return Reply{}, &RunError{Outcome: Unknown, Err: context.DeadlineExceeded}
	}
}

var errNothingPending = &RunError{Outcome: NotExecuted, Err: errors.New("nothing under way")}

// A leftError says that the caller left; it is not the server's word.
type leftError struct{ error }

// An attempt is one Run under way on a worker.
type attempt struct {
	op    op
	ctx   context.Context //nolint:containedctx // travels with the request it belongs to
	timer *time.Timer
	done  chan struct{} // one slot
	reply Reply
	err   error
}

// Run implements worker.Job.
func (a *attempt) Run() {
	a.reply, a.err = a.op.c.redis.Run(a.ctx, a.op.script, a.op.keys, a.op.args)
	a.done <- struct{}{}
}

func (c *Client) newAttempt() *attempt {
	if a, ok := c.attempts.Get().(*attempt); ok {
		return a
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &attempt{timer: t, done: make(chan struct{}, 1)}
}

// freeAttempt is for attempts that have ended and whose end was received.
func (c *Client) freeAttempt(a *attempt) {
	a.timer.Stop()
	a.op, a.ctx, a.reply, a.err = op{}, nil, Reply{}, nil
	c.attempts.Put(a)
}

// promptFor says whether the driver itself bounds a call as tightly as an
// attempt is to be bounded.
func (c *Client) promptFor(lease time.Duration) bool {
	return c.traits.Timeout <= attemptTimeout(lease)
}

// sleep waits for d, for ctx to end or for stop.
func (c *Client) sleep(ctx context.Context, stop <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctxError(ctx)
	case <-stop:
		return ErrClosed
	}
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
