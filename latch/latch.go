// Package latch lets callers of any number of processes wait until something has
// happened a number of times: Redisson's RCountDownLatch.
//
//	ready := latch.New(client, "workers:ready")
//	_, err := ready.TrySetCount(ctx, 3)
//	err = ready.CountDown(ctx) // each worker, when it is ready
//	err = ready.Wait(ctx)      // whoever needs them all
package latch

import (
	"context"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/latch"
	"github.com/redlatch/redlatch/internal/request"
)

// A Latch lets callers wait until its count is 0. It is a name, immutable, and
// cheap, and may be shared.
//
// One process sets the count, others count it down, and at 0 all callers that wait
// go on. Then it can be set again. A latch that was never set is open: nobody
// waits at it, because Redis cannot tell it from one that has been counted down to
// 0. So set it before anybody waits. It has no owner and no TTL: if a process dies
// that was to count it down, callers wait until another one counts down in its
// place, or deletes the latch.
//
// Each count-down counts once, whatever happens to its request or to the reply.
type Latch struct {
	e   *bridge.Engines
	in  latch.Latch
	err error // a name that cannot be used
}

// New returns the latch with this name, Redisson's getCountDownLatch.
// Every method refuses a name that Redis cannot handle. In a cluster that includes
// names with a hash tag, because Redisson would publish in another slot.
func New(c *redlatch.Client, name string) *Latch {
	e := bridge.Open(c)
	key := e.Server.Key(name)
	l := &Latch{e: e, in: latch.New(e.Server, e.Polls, c.ID(), key), err: request.CheckKey(key)}
	if l.err == nil && e.Server.Traits.Cluster && strings.Contains(key, "{") {
		l.err = invalid.Errorf("redlatch: latch %q has a hash tag; the name of a latch's channel is put into braces whatever it contains, which in a cluster would be another slot than that of the latch: use a name and a Config.Prefix without braces", key)
	}
	return l
}

// Name returns the latch's name.
func (l *Latch) Name() string { return l.in.Name() }

// TrySetCount sets the count to n, at least 1, and says whether it did: not if
// the latch is being counted down.
func (l *Latch) TrySetCount(ctx context.Context, n int) (bool, error) {
	if n < 1 {
		return false, invalid.Errorf("redlatch: TrySetCount(%d): a latch counts down from 1 or more; one at 0 is one that is not set: see Delete", n)
	}
	if err := l.usable(ctx); err != nil {
		return false, err
	}
	return l.in.Set(ctx, n)
}

// CountDown counts down by one. It changes nothing at 0, or if ctx has ended
// before the call.
//
// If it fails without an answer of the server (redlatch.ErrUnavailable,
// redlatch.ErrClosed, or the end of ctx), it may still be executed, but not twice,
// and not after a later request of this client about this latch.
func (l *Latch) CountDown(ctx context.Context) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	_, err := l.in.Down(ctx)
	return err
}

// ErrCounted: CountDownAndWait has counted down, and then failed while it waited.
// Call Wait to wait on. A second CountDownAndWait would count down twice, so
// redlatch.IsRetryable is false.
var ErrCounted = request.ErrCounted

// CountDownAndWait counts down by one, as CountDown does, and then waits until the
// count is 0, as Wait does. The caller that brings the count to 0 does not wait,
// even if somebody sets the latch again at once. A latch that is not set is open:
// nothing is counted, and the call returns nil at once, even if somebody sets the
// latch meanwhile.
//
// On failure the error says whether the call has counted. With ErrCounted it has,
// once, and the error is also that of Wait. Without ErrCounted it is that of
// CountDown. If the server gave no answer, the count-down may still be executed,
// but not twice. With any other error nothing is counted.
func (l *Latch) CountDownAndWait(ctx context.Context) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	closed, err := l.in.Down(ctx)
	if err != nil || !closed {
		return err
	}
	if err := l.wait(ctx, l.e.WaitSite()); err != nil {
		return &countedError{l.Name(), err}
	}
	return nil
}

// A countedError is the error of a wait behind a count-down.
type countedError struct {
	name string
	wait error
}

func (e *countedError) Error() string {
	return fmt.Sprintf("redlatch: latch %q was counted down, but the wait for the others failed: %v", e.name, e.wait)
}

func (e *countedError) Is(target error) bool { return target == ErrCounted }

func (e *countedError) Unwrap() error { return e.wait }

// Delete sets the latch to 0: all callers that wait go on. It says whether the
// latch was set.
func (l *Latch) Delete(ctx context.Context) (bool, error) {
	if err := l.usable(ctx); err != nil {
		return false, err
	}
	return l.in.Delete(ctx)
}

// Count returns how many count-downs are missing.
func (l *Latch) Count(ctx context.Context) (int, error) {
	if err := l.usable(ctx); err != nil {
		return 0, err
	}
	return l.in.Count(ctx)
}

// Wait waits until the count is 0. However many callers of this process wait,
// one of them asks Redis, and there is one subscription.
//
// If a latch is set again at once, a waiter that has not seen it at 0 waits for
// the new count, as in Redisson. To let waiters go on in between, set the next
// latch under another name, or use package barrier.
//
// ctx bounds the waiting. A wait that ended with it is redlatch.ErrBusy and ctx's
// error, or redlatch.ErrUnavailable if the server did not answer meanwhile.
// redlatch.IsRetryable is false for it, as for all that ended with their context;
// waiting again with another one loses nothing.
func (l *Latch) Wait(ctx context.Context) error { return l.wait(ctx, l.e.WaitSite()) }

func (l *Latch) wait(ctx context.Context, at callsite.Site) error {
	ctx, a := l.e.Begin(ctx, hooks.Acquisition{Name: l.Name(), Kind: string(redlatch.KindLatch)}, false)
	err := l.usable(ctx)
	if err == nil {
		err = l.explain(l.in.Wait(ctx, at))
	}
	a.Counted(false, err)
	return err
}

// explain turns the end of a wait into the error that users see.
func (l *Latch) explain(err error) error {
	if gaveUp, cause := request.GaveUp(err); gaveUp {
		return &redlatch.BusyError{Name: l.Name(), Kind: redlatch.KindLatch, Cause: cause}
	}
	return err
}

func (l *Latch) usable(ctx context.Context) error { return l.e.Usable(ctx, l.err) }
