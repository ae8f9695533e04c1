package redlatch

import (
	"context"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/poll"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// A CountDownLatch lets any number of callers wait until something has happened
// so many times, in whatever process. It is Redisson's RCountDownLatch: a name,
// immutable, and cheap.
//
// Somebody sets its count, others count it down, and at 0 all that wait go on.
// Then it can be set again. A latch that was never set is at 0: nobody waits at
// it. It belongs to nobody and has no TTL: if those who are to count it down die,
// it waits for whoever counts down in their place, or deletes it.
//
// Each count-down counts once, whatever happens to its request or to the reply.
type CountDownLatch struct {
	c       *Client
	name    string
	key     string // its name in Redis
	channel string
	err     error // a name that cannot be used
}

// CountDownLatch returns the latch with this name, Redisson's getCountDownLatch.
// A name that Redis could not handle is refused by every method; in a cluster
// that is also one with a hash tag, since Redisson would publish in another slot.
func (c *Client) CountDownLatch(name string) *CountDownLatch {
	key := c.server.Key(name)
	l := &CountDownLatch{c: c, name: name, key: key, channel: wire.LatchChannel(key)}
	if l.err = request.CheckKey(key); l.err == nil && c.server.Traits.Cluster && strings.Contains(key, "{") {
		l.err = invalid.Errorf("redlatch: latch %q has a hash tag; the name of a latch's channel is put into braces whatever it contains, which in a cluster would be another slot than that of the latch: use a name and a Config.Prefix without braces", key)
	}
	return l
}

// Name returns the latch's name.
func (l *CountDownLatch) Name() string { return l.name }

// TrySetCount sets the count to n, at least 1, and says whether it did: not if
// the latch is being counted down.
func (l *CountDownLatch) TrySetCount(ctx context.Context, n int) (bool, error) {
	if n < 1 {
		return false, invalid.Errorf("redlatch: TrySetCount(%d): a latch counts down from 1 or more; one at 0 is one that is not set: see Delete", n)
	}
	set, err := l.counted(ctx, lua.LatchSet, strconv.Itoa(n), l.channel)
	return set == 1, err
}

// CountDown counts down by one. At 0 it changes nothing, nor if ctx has ended
// before the call.
//
// When it fails without the server's word (ErrUnavailable, ErrClosed, or with its
// context) it may still be executed, but not twice, and not after a later request
// of this client about this latch.
func (l *CountDownLatch) CountDown(ctx context.Context) error {
	_, err := l.counted(ctx, lua.LatchDown, l.channel)
	return err
}

// Delete sets the latch to 0, which lets all that wait go on, and says whether it
// was set.
func (l *CountDownLatch) Delete(ctx context.Context) (bool, error) {
	was, err := l.counted(ctx, lua.LatchDelete, l.channel)
	return was == 1, err
}

// Count returns how many count-downs are missing.
func (l *CountDownLatch) Count(ctx context.Context) (int, error) {
	if err := l.usable(ctx); err != nil {
		return 0, err
	}
	o := l.c.server.Question(lua.LatchCount, []string{l.key})
	reply, err := o.Run(ctx)
	if err != nil {
		return 0, err
	}
	return l.count(reply)
}

func (l *CountDownLatch) count(r driver.Reply) (int, error) {
	n, err := request.Number(r, l.key, "latch")
	return max(n, 0), err
}

// Wait waits until the count is 0. However many callers of this process wait,
// one of them asks Redis, and there is one subscription.
//
// If a latch is set again at once, a waiter that has not seen it at 0 waits for the new
// count, as in Redisson. To let waiters go on in between, set the next latch under another
// name, or use a Barrier.
//
// The option Wait bounds the waiting; a wait that is over, or ended with ctx,
// is ErrBusy, or ErrUnavailable if the server did not answer meanwhile.
func (l *CountDownLatch) Wait(ctx context.Context, opts ...Option) error {
	o, bad := collect(opts, false, ofLatches)
	at := l.c.waitSite()
	return l.c.report.observe(ctx, AcquireStartEvent{Name: l.name, Kind: KindLatch}, o.once, func(ctx context.Context) (bool, error) {
		if err := l.usable(ctx); err != nil {
			return false, err
		}
		if bad != nil {
			return false, bad
		}
		return false, l.wait(ctx, &o, at)
	})
}

func (l *CountDownLatch) wait(ctx context.Context, o *options, at callsite.Site) error {
	if o.once {
		n, err := l.Count(ctx)
		if err == nil && n > 0 {
			err = request.ErrWaitOver
		}
		return l.busy(err)
	}
	return l.busy(l.c.polls.Wait(ctx, o.until, "latch:"+l.key, l.channel, poll.Question{
		Script: lua.LatchCount, Keys: []string{l.key},
		Read: func(r driver.Reply) (bool, error) {
			n, err := l.count(r)
			return n == 0, err
		},
		About: claim.Claim{Name: l.key, Kind: claim.Latch, Site: at},
	}))
}

func (l *CountDownLatch) busy(err error) error {
	return asBusy(err, BusyError{Name: l.name, Kind: KindLatch})
}

// counted sends a request that must not be executed twice.
func (l *CountDownLatch) counted(ctx context.Context, s *script.Script, args ...string) (int64, error) {
	if err := l.usable(ctx); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, request.ContextError(ctx)
	}
	x, put := l.c.server.Sessions.Get(wire.Session(l.key, l.c.id, "latch"))
	defer put()
	return x.Do(ctx, request.Count{Script: s, Keys: []string{l.key}, Args: args, Adds: s == lua.LatchDown})
}

var ofLatches = ofWaits("CountDownLatch.Wait")

func (l *CountDownLatch) usable(ctx context.Context) error {
	return l.c.usable(ctx, l.err)
}
