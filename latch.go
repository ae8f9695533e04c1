package redlatch

import (
	"context"
	"strings"

	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/latch"
	"github.com/redlatch/redlatch/internal/request"
)

// A CountDownLatch lets callers of any number of processes wait until something has
// happened a number of times. It is Redisson's RCountDownLatch: a name, immutable,
// and cheap.
//
// One process sets the count, others count it down, and at 0 all callers that wait go
// on. Then it can be set again. A latch that was never set is at 0: nobody waits at
// it. It has no owner and no TTL: if a process dies that was to count it down, callers
// wait until another one counts down in its place, or deletes the latch.
//
// Each count-down counts once, whatever happens to its request or to the reply.
type CountDownLatch struct {
	c   *Client
	in  latch.Latch
	err error // a name that cannot be used
}

// CountDownLatch returns the latch with this name, Redisson's getCountDownLatch.
// Every method refuses a name that Redis cannot handle. In a cluster that includes
// names with a hash tag, because Redisson would publish in another slot.
func (c *Client) CountDownLatch(name string) *CountDownLatch {
	key := c.server.Key(name)
	l := &CountDownLatch{c: c, in: latch.New(c.server, c.polls, c.id, key), err: request.CheckKey(key)}
	if l.err == nil && c.server.Traits.Cluster && strings.Contains(key, "{") {
		l.err = invalid.Errorf("redlatch: latch %q has a hash tag; the name of a latch's channel is put into braces whatever it contains, which in a cluster would be another slot than that of the latch: use a name and a Config.Prefix without braces", key)
	}
	return l
}

// Name returns the latch's name.
func (l *CountDownLatch) Name() string { return l.in.Name() }

// TrySetCount sets the count to n, at least 1, and says whether it did: not if
// the latch is being counted down.
func (l *CountDownLatch) TrySetCount(ctx context.Context, n int) (bool, error) {
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
// If it fails without an answer of the server (ErrUnavailable, ErrClosed, or the end
// of ctx), it may still be executed, but not twice, and not after a later request of
// this client about this latch.
func (l *CountDownLatch) CountDown(ctx context.Context) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	return l.in.Down(ctx)
}

// Delete sets the latch to 0: all callers that wait go on. It says whether the latch
// was set.
func (l *CountDownLatch) Delete(ctx context.Context) (bool, error) {
	if err := l.usable(ctx); err != nil {
		return false, err
	}
	return l.in.Delete(ctx)
}

// Count returns how many count-downs are missing.
func (l *CountDownLatch) Count(ctx context.Context) (int, error) {
	if err := l.usable(ctx); err != nil {
		return 0, err
	}
	return l.in.Count(ctx)
}

// Wait waits until the count is 0. However many callers of this process wait,
// one of them asks Redis, and there is one subscription.
//
// If a latch is set again at once, a waiter that has not seen it at 0 waits for the new
// count, as in Redisson. To let waiters go on in between, set the next latch under another
// name, or use a Barrier.
//
// ctx bounds the waiting. A wait that ended with it is ErrBusy and ctx's error, or
// ErrUnavailable if the server did not answer meanwhile. IsRetryable is false for it, as for
// all that ended with their context; waiting again with another one loses nothing.
func (l *CountDownLatch) Wait(ctx context.Context) error {
	at := l.c.engines.WaitSite()
	return l.c.report.observe(ctx, hooks.Acquisition{Name: l.Name(), Kind: string(KindLatch)}, false, func(ctx context.Context) (bool, error) {
		if err := l.usable(ctx); err != nil {
			return false, err
		}
		return false, asBusy(l.in.Wait(ctx, at), BusyError{Name: l.Name(), Kind: KindLatch})
	})
}

func (l *CountDownLatch) usable(ctx context.Context) error {
	return l.c.usable(ctx, l.err)
}
