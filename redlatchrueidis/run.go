package redlatchrueidis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// Run implements [driver.Redis].
func (d *Driver) Run(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	ctx, release := d.bound(ctx)
	defer release()
	if err := ctx.Err(); err != nil {
		return driver.Reply{}, notExecuted(err)
	}
	client, err := d.commands.get(ctx)
	if err != nil {
		return driver.Reply{}, d.creds.Judge(notExecuted(err))
	}
	return d.run(ctx, client, s, keys, args)
}

// bound returns a context that ends what may take Traits.Timeout, until release is
// called. It ends with the caller's where rueidis leaves a connection alone then.
func (d *Driver) bound(ctx context.Context) (_ context.Context, release context.CancelFunc) {
	if d.limits == nil || d.traits.Cluster || d.redirects {
		return d.limit(ctx)
	}
	if d.commands.ready.Load() == nil {
		timed, cancel := context.WithTimeout(undated{ctx}, d.limits.after)
		if ctx.Done() == nil {
			return timed, cancel
		}
		return undated{timed}, cancel // once connected, the caller can leave the first script, too
	}
	// The connection's own time-outs do; no timer for each script.
	if _, ok := ctx.Deadline(); ok {
		ctx = undated{ctx}
	}
	return ctx, func() {}
}

// An undated context does not say when it ends. rueidis closes a connection at a
// deadline, but lets a command that is cancelled run its course.
type undated struct{ context.Context }

func (undated) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// limit is bound where a connection has no time-out of its own: for a command that
// blocks.
func (d *Driver) limit(ctx context.Context) (_ context.Context, release context.CancelFunc) {
	switch {
	case d.limits != nil:
		limit := d.limits.get()
		return limit, limit.release
	case d.traits.Timeout > 0:
		return context.WithTimeout(context.WithoutCancel(ctx), d.traits.Timeout)
	default:
		return context.WithoutCancel(ctx), func() {}
	}
}

// run runs one script over client.
func (d *Driver) run(ctx context.Context, client rueidis.Client, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if client.Mode() == rueidis.ClientModeCluster && !sameSlot(keys) {
		// rueidis would panic.
		return driver.Reply{}, driver.ServerError("CROSSSLOT", errCrossSlot)
	}
	res := client.Do(ctx, command(client.B(), s, bySHA, keys, args))
	if unknownScript(res) {
		res = client.Do(ctx, command(client.B(), s, bySource, keys, args))
	}
	reply, re := convert(res)
	if re == nil {
		d.breaks.Answered()
		return reply, nil
	}
	left := d.traits.Interruptible && errors.Is(re.Err, ctx.Err()) // the caller, and the connection is well
	if !left {
		d.breaks.Failed(re, keys)
	}
	return driver.Reply{}, d.creds.Judge(re)
}

var (
	errCrossSlot = errors.New("redlatchrueidis: the keys of the script do not share a hash slot")
	errNoPrimary = errors.New("redlatchrueidis: the server is no primary")
)

func sameSlot(keys []string) bool {
	for i := 1; i < len(keys); i++ {
		if wire.Slot(keys[i]) != wire.Slot(keys[0]) {
			return false
		}
	}
	return true
}

// A form is how a command names its script.
type form bool

const (
	bySHA    form = false // EVALSHA
	bySource form = true  // EVAL, for a server that does not know the script
)

func command(b rueidis.Builder, s *driver.Script, f form, keys, args []string) rueidis.Completed {
	n := int64(len(keys))
	var c rueidis.Completed
	if f == bySource {
		c = b.Eval().Script(s.Source()).Numkeys(n).Key(keys...).Arg(args...).Build()
	} else {
		c = b.Evalsha().Sha1(s.SHA()).Numkeys(n).Key(keys...).Arg(args...).Build()
	}
	if n == 0 {
		c = atAnyPrimary(c)
	}
	return c
}

// atAnyPrimary has a command without keys go to a node of a cluster that serves
// slots. By itself, rueidis takes any node that it has heard of: also a replica,
// or one that is dead. A random slot spreads load, and the next attempt takes
// another node.
func atAnyPrimary(c rueidis.Completed) rueidis.Completed {
	return c.SetSlot(strconv.Itoa(rand.Int())) //nolint:gosec // any slot
}

func unknownScript(res rueidis.RedisResult) bool {
	if res.NonRedisError() != nil {
		return false
	}
	re, ok := rueidis.IsRedisErr(res.Error())
	return ok && re.IsNoScript()
}

func convert(res rueidis.RedisResult) (driver.Reply, *driver.RunError) {
	if err := res.NonRedisError(); err != nil {
		return driver.Reply{}, classify(err)
	}
	msg, err := res.ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		return driver.Reply{}, driver.ServerError(err.Error(), err)
	}
	return reply(msg)
}

// classify says what became of a script that was not answered.
func classify(err error) *driver.RunError {
	if re, ok := rueidis.IsRedisErr(err); ok {
		// A reply, but not to the script: the server refused the handshake.
		e := driver.ServerError(re.Error(), err)
		e.Outcome = driver.NotExecuted
		return e
	}
	var nc *notConnectedError
	var op *net.OpError
	if errors.As(err, &nc) || errors.As(err, &op) && op.Op == "dial" || errors.Is(err, rueidis.ErrNoSlot) {
		return notExecuted(err)
	}
	// Also ErrClosing: what was in flight when the client was closed may run.
	return &driver.RunError{Outcome: driver.Unknown, Err: err}
}

func notExecuted(err error) *driver.RunError {
	e := &driver.RunError{Outcome: driver.NotExecuted, Err: err}
	if re, ok := rueidis.IsRedisErr(err); ok {
		e.Code = driver.ServerError(re.Error(), err).Code
	}
	return e
}

// reply converts what rueidis read. A script of redlatch answers with nothing
// else than is converted here.
func reply(m rueidis.RedisMessage) (driver.Reply, *driver.RunError) {
	switch {
	case m.IsInt64():
		n, _ := m.AsInt64()
		return driver.Reply{Kind: driver.ReplyInt, Int: n}, nil
	case m.IsNil():
		return driver.Reply{}, nil
	case m.IsString():
		s, _ := m.ToString()
		return driver.Reply{Kind: driver.ReplyString, Str: s}, nil
	case m.IsArray():
		values, _ := m.ToArray()
		list := make([]driver.Reply, len(values))
		for i := range values {
			var err *driver.RunError
			if list[i], err = reply(values[i]); err != nil {
				return driver.Reply{}, err
			}
		}
		return driver.Reply{Kind: driver.ReplyList, List: list}, nil
	default:
		return driver.Reply{}, &driver.RunError{Err: fmt.Errorf("redlatchrueidis: a script answered with %s", m.String())}
	}
}
