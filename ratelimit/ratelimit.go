// Package ratelimit limits how often something is done, by all processes together
// or by each of them: Redisson's RRateLimiter.
//
//	api := ratelimit.New(client, "api", ratelimit.Rate{Permits: 100, Interval: time.Second})
//	err := api.Acquire(ctx, 1)      // waits for its turn
//	err = api.TryAcquire(ctx, 1, 0) // or says with a *redlatch.BusyError when to come back (RetryAfter)
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/nameclash"
	"github.com/redlatch/redlatch/internal/ratelimit"
	"github.com/redlatch/redlatch/internal/ratequeue"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
)

// A Limiter lets so many permits be taken in any interval, by all clients
// together or by each of them. It is a name: immutable, cheap, and may be shared.
//
// The interval slides: what was given counts for a whole interval from then on, by
// the server's clock, which is the only one that redlatch asks. Redisson's clients
// count by their own clocks, so with them the interval can be too short, by as
// much as the clocks differ. If a clock is more than
// redlatch.Config.Redisson.MaxClockSkew ahead, what it has written counts from
// when redlatch first sees it. A permit is used later than the server gave it, by
// the time that the answer takes.
//
// A request whose answer is lost is sent again and gives nothing twice. One that
// comes late gives nothing; what it would have given counts as used for an
// interval only if it is late by more than an interval. If a caller has left
// before it got its permits, they are given back as soon as that is known; until
// then, and if the process dies, they count as used. So they do, for an interval,
// if Release took them off the record before the request that gave them was sent
// again.
//
// Goroutines of one process get permits in the order in which they asked: one
// that wants many is not passed by others that want few. Between processes chance
// decides; with Redisson whose clock is ahead is served first. However many wait,
// one request at a time is in flight, for up to 256 of them, and none while the
// server has said that there are no permits; but every two seconds it is asked
// again, for another process may have given some back.
//
// Where Redisson and redlatch differ: a refused call does not prolong the
// keep-alive time; a rate without keep-alive ends the keep-alive that was set
// before; Available changes nothing; permits that were given back do not come back
// once more when the interval has passed; a state of which a part is missing is
// put right, where Redisson fails for ever; and a hash of something else, such as
// a lock of that name, gets no rate and is not deleted: that fails with WRONGTYPE.
// Redisson's clients must be of 3.17 or newer.
type Limiter struct {
	e    *bridge.Engines
	in   ratelimit.Limiter
	give Rate  // what it is given if it has no rate; zero: nothing
	err  error // a name, or a rate to be given, that cannot be used
}

// A Rate is how many permits a Limiter gives.
type Rate struct {
	// Permits is how many may be taken in an interval, at least 1.
	Permits int
	// Interval is at least a millisecond; Redis counts whole ones, so it is
	// rounded up.
	Interval time.Duration
	// PerClient gives every client as many permits, where else all share them. A
	// client is a redlatch.Client or an instance of Redisson. Redlatch's state
	// ends an interval after its last use; Redisson's stays in Redis when the
	// instance has ended, unless there is a KeepAlive.
	PerClient bool
	// KeepAlive deletes the limiter, rate and all, when nobody has taken a permit
	// for so long; at least Interval. Zero means never.
	KeepAlive time.Duration
}

// New returns the rate limiter with this name, Redisson's getRateLimiter, and with
// a rate to be set up: where Acquire or TryAcquire finds that it has none, at the
// first start or after the server has lost its data, it calls TrySetRate with this
// one and goes on. A rate that the limiter has is left as it is; UpdateRate
// changes it. With the zero Rate nothing is set up: a limiter without a rate is
// refused with redlatch.ErrUninitialized, until somebody calls TrySetRate.
//
// Every method refuses a name that Redis cannot handle, and a rate that cannot be;
// and Acquire more permits than the rate that the limiter has. "x" and "{x}" share
// what they have given, as in Redisson, so a client that has used one of these
// names is refused the other.
func New(c *redlatch.Client, name string, rate Rate) *Limiter {
	e := bridge.Open(c)
	key := e.Server.Key(name)
	l := &Limiter{e: e, in: ratelimit.New(e.Rates, c.ID(), key), give: rate, err: request.CheckKey(key)}
	if l.err == nil && l.setsUp() {
		l.err = rate.check()
	}
	return l
}

// setsUp says whether the limiter has brought a rate.
func (l *Limiter) setsUp() bool { return l.give != Rate{} }

// Name returns the limiter's name.
func (l *Limiter) Name() string { return l.in.Name() }

// TrySetRate gives the limiter a rate and returns true, unless it has one already.
// If an answer was lost, and the limiter has this very rate when it is asked
// again, that was this call.
//
// Here and in the other methods that change a rate, or give permits back: if it
// fails because ctx has ended or with redlatch.ErrUnavailable, it may still be
// done, once.
func (l *Limiter) TrySetRate(ctx context.Context, r Rate) (bool, error) {
	if err := l.settable(ctx, r); err != nil {
		return false, err
	}
	set, err := l.in.TrySet(ctx, inspect.Rate(r), nil)
	return set, l.explain(err)
}

// SetRate gives the limiter a rate, whatever it had, and begins anew: what was
// taken before does not count any more, but for what other clients have taken each
// for itself, which counts to the end of its interval. UpdateRate keeps what was
// taken.
func (l *Limiter) SetRate(ctx context.Context, r Rate) error {
	if err := l.settable(ctx, r); err != nil {
		return err
	}
	return l.explain(l.in.Set(ctx, inspect.Rate(r)))
}

// UpdateRate gives the limiter another rate, and what was taken still counts. It
// fails with redlatch.ErrUninitialized if the limiter has no rate. To change
// PerClient is to begin anew: what was taken by all clients together counts for no
// client by itself, nor the reverse.
//
// With PerClient a higher rate holds for the other clients at once. A client that
// has taken more than a hundred times in the last interval has it within about an
// interval. A lower rate takes back nothing of what the old one has left them: in
// the interval of the change they may take that, too.
func (l *Limiter) UpdateRate(ctx context.Context, r Rate) error {
	if err := l.settable(ctx, r); err != nil {
		return err
	}
	return l.explain(l.in.Update(ctx, inspect.Rate(r)))
}

// settable says what is wrong with a call that gives the limiter a rate.
func (l *Limiter) settable(ctx context.Context, r Rate) error {
	if err := r.check(); err != nil {
		return err
	}
	return l.usable(ctx)
}

// Expire lets the limiter end when d is over, at least a millisecond: its rate,
// and what was taken, but for what other clients have taken for themselves. With a
// KeepAlive its time begins anew with the next use, and with SetRate and
// UpdateRate; these leave the end where it is if neither the old rate nor the new
// one has a KeepAlive. It says whether there is such a limiter.
func (l *Limiter) Expire(ctx context.Context, d time.Duration) (bool, error) {
	return args.Expire(ctx, d, l.lives)
}

// Persist lets the limiter last for ever: the reverse of Expire. With a KeepAlive
// that is so until the next use, from which on the limiter is kept for so long.
// What clients have taken each for itself still ends an interval after its last
// use. It says whether there is such a limiter.
func (l *Limiter) Persist(ctx context.Context) (bool, error) {
	return l.lives(ctx, args.ForEver)
}

func (l *Limiter) lives(ctx context.Context, ms string) (bool, error) {
	if err := l.usable(ctx); err != nil {
		return false, err
	}
	return l.in.Lives(ctx, ms)
}

// Acquire waits until n permits can be had, and takes them. ctx bounds the
// waiting.
//
// On failure nothing was taken, or it is given back. The error is a
// *redlatch.BusyError if the permits could not be had in time (and then also ctx's
// error, if ctx ended), redlatch.ErrUninitialized if the limiter has no rate and
// New was given none, redlatch.ErrUnavailable if the server did not answer for
// redlatch.Config.OutageTimeout or until the caller gave up, redlatch.ErrClosed
// after the client's Close or Shutdown, or the error with which the server
// refused. To ask for more permits than the rate is redlatch.ErrInvalid at once.
func (l *Limiter) Acquire(ctx context.Context, n int) error {
	return l.take(ctx, n, args.Patience{}, l.e.WaitSite())
}

// TryAcquire does what Acquire does, and waits no longer than wait. A negative
// wait is redlatch.ErrInvalid. With a wait of 0 it takes n permits if that is
// possible at once, and overtakes nobody of this process. If it is not possible it
// returns a *redlatch.BusyError that says when it will be, and nothing is taken.
// If the server does not answer, such a call goes on for
// redlatch.Config.OutageTimeout, or until ctx ends.
//
// A wait that would be in vain is not slept through. TryAcquire returns that error
// at once, also while it waits, if there will be too few permits until its wait is
// over. Permits that are given back, and a higher rate, may come sooner: such a
// caller has left then. A caller waits on if one that is before it in this process
// wants more permits than it does.
func (l *Limiter) TryAcquire(ctx context.Context, n int, wait time.Duration) error {
	return l.take(ctx, n, args.AtMost(wait), l.e.WaitSite())
}

func (l *Limiter) take(ctx context.Context, n int, wait args.Patience, at callsite.Site) error {
	until, once, bad := wait.End()
	ctx, a := l.e.Begin(ctx, hooks.Acquisition{Name: l.Name(), Kind: string(redlatch.KindRateLimiter), N: n}, once)
	err := l.ask(ctx, ratequeue.Want{N: n, Once: once, Site: at}, until, bad)
	a.Counted(false, err)
	return err
}

// ask takes permits, unless something is bad about the call.
func (l *Limiter) ask(ctx context.Context, want ratequeue.Want, until time.Time, bad error) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	if err := checkPermits(want.N); err != nil {
		return err
	}
	switch {
	case bad != nil:
		return bad
	case ctx.Err() != nil:
		return &redlatch.BusyError{Name: l.Name(), Kind: redlatch.KindRateLimiter, Cause: request.ContextError(ctx)}
	}
	tooMany := l.setsUp() && want.N > l.give.Permits // for the rate that this one brings, not for the one that there is
	if l.setsUp() && !tooMany {
		want.SetUp = func(asks *request.Refusals) error {
			_, err := l.in.TrySet(context.Background(), inspect.Rate(l.give), asks)
			return err
		}
	}
	err := l.in.Take(ctx, want, until)
	switch {
	case !errors.Is(err, redlatch.ErrUninitialized):
	case tooMany:
		return invalid.Errorf("redlatch: %d permits at once of a rate limiter to be set up with %d in an interval; ask for fewer, or raise the rate", want.N, l.give.Permits)
	case l.setsUp():
		return l.noRate("to set it up did not help, so call SetRate")
	}
	return l.explain(err)
}

// explain turns what the engine says of the limiter into the error that users see.
func (l *Limiter) explain(err error) error {
	switch {
	case !errors.Is(err, redlatch.ErrUninitialized):
		return err
	case l.setsUp():
		return l.noRate("call TrySetRate, or first Acquire, which sets it up")
	}
	return l.noRate("call TrySetRate, or give ratelimit.New one")
}

// noRate says that the limiter has no rate, and how it gets one.
func (l *Limiter) noRate(remedy string) error {
	return fmt.Errorf("%w: rate limiter %q has no rate; %s", redlatch.ErrUninitialized, l.Name(), remedy)
}

// Release gives back n permits that were taken and not used, so that they can be
// taken again before their interval is over. What was taken longer ago than an
// interval is not to be given back: it would let others take more than the rate.
// No more is given back than the oldest ten thousand takes have got. n = 0 does
// nothing.
func (l *Limiter) Release(ctx context.Context, n int) error {
	if n == 0 {
		return l.usable(ctx)
	}
	if n < 0 || n > largestRate {
		return invalid.Errorf("redlatch: %d permits of a rate limiter to be given back; it must be at least 0 and at most %d", n, largestRate)
	}
	if err := l.usable(ctx); err != nil {
		return err
	}
	return l.explain(l.in.Release(ctx, n))
}

// Available returns how many permits could be taken now. While more than ten
// thousand takes of the last interval have to be added up anew, that is too few,
// or 0; only calls that take or give back go on with that.
func (l *Limiter) Available(ctx context.Context) (int, error) {
	if err := l.usable(ctx); err != nil {
		return 0, err
	}
	n, err := l.in.Available(ctx)
	return n, l.explain(err)
}

// Config returns the limiter's rate, or redlatch.ErrUninitialized if it has none.
func (l *Limiter) Config(ctx context.Context) (Rate, error) {
	if err := l.usable(ctx); err != nil {
		return Rate{}, err
	}
	r, err := l.in.Rate(ctx)
	return Rate(r), l.explain(err)
}

// Delete deletes the limiter and what was taken, but for what other clients have
// taken for themselves. It says whether there was anything.
func (l *Limiter) Delete(ctx context.Context) (bool, error) {
	if err := l.usable(ctx); err != nil {
		return false, err
	}
	return l.in.Delete(ctx)
}

// usable says why a call cannot even be tried.
func (l *Limiter) usable(ctx context.Context) error {
	return l.e.UsableName(ctx, l.err, nameclash.Rates, l.in.Key)
}

// largestRate is what fits into a record, and a rate of which is as good as none.
const largestRate = math.MaxInt32

func checkPermits(n int) error {
	if n < 1 || n > largestRate {
		return invalid.Errorf("redlatch: %d permits of a rate limiter; it must be at least 1 and at most %d", n, largestRate)
	}
	return nil
}

// check refuses what does not fit together.
func (r Rate) check() error {
	switch {
	case r.Permits < 1 || r.Permits > largestRate:
		return invalid.Errorf("redlatch: Rate.Permits is %d; it must be at least 1 and at most %d", r.Permits, largestRate)
	case r.Interval < time.Millisecond || r.Interval > renew.MaxLease:
		return invalid.Errorf("redlatch: Rate.Interval is %v; it must be at least 1ms and at most %v", r.Interval, renew.MaxLease)
	case r.KeepAlive < 0 || r.KeepAlive > renew.MaxLease:
		return invalid.Errorf("redlatch: Rate.KeepAlive is %v; it must be positive and at most %v, or 0 for ever", r.KeepAlive, renew.MaxLease)
	case r.KeepAlive > 0 && r.KeepAlive < r.Interval:
		return invalid.Errorf("redlatch: Rate.KeepAlive is %v, which is less than Rate.Interval (%v): what was taken would be forgotten too soon", r.KeepAlive, r.Interval)
	}
	return nil
}
