package rueidis

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/adapter"
	"github.com/redlatch/redlatch/internal/wire"
)

// Run implements [redlatch.Redis].
func (d *Driver) Run(ctx context.Context, s *redlatch.Script, keys, args []string) (redlatch.Reply, error) {
	ctx, release := d.bound(ctx)
	defer release()
	client, err := d.commands.get(ctx)
	if err != nil {
		return redlatch.Reply{}, d.creds.Judge(notExecuted(err))
	}
	return d.run(ctx, client, s, keys, args)
}

// bound returns a context that ends what may take Traits.Timeout, until release is
// called. It is not the caller's: rueidis would close the connection that all
// share.
func (d *Driver) bound(ctx context.Context) (_ context.Context, release context.CancelFunc) {
	if d.limits != nil && !d.traits.Cluster && !d.redirects && d.commands.ready.Load() != nil {
		// The connection's own time-outs do; no timer for each script.
		return context.Background(), func() {}
	}
	return d.limit(ctx)
}

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
func (d *Driver) run(ctx context.Context, client rueidis.Client, s *redlatch.Script, keys, args []string) (redlatch.Reply, error) {
	if client.Mode() == rueidis.ClientModeCluster && !sameSlot(keys) {
		// rueidis would panic.
		return redlatch.Reply{}, redlatch.ServerError("CROSSSLOT", errCrossSlot)
	}
	res := client.Do(ctx, command(client.B(), s, bySHA, keys, args))
	if unknownScript(res) {
		res = client.Do(ctx, command(client.B(), s, bySource, keys, args))
	}
	reply, re := convert(res)
	if re == nil {
		return reply, nil
	}
	if adapter.IsBreak(re) {
		d.breaks.Lane(keys)
	}
	return redlatch.Reply{}, d.creds.Judge(re)
}

var (
	errCrossSlot = errors.New("rueidis: the keys of the script do not share a hash slot")
	errNoPrimary = errors.New("rueidis: the server is no primary")
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

func command(b rueidis.Builder, s *redlatch.Script, f form, keys, args []string) rueidis.Completed {
	n := int64(len(keys))
	if f == bySource {
		return b.Eval().Script(s.Source()).Numkeys(n).Key(keys...).Arg(args...).Build()
	}
	return b.Evalsha().Sha1(s.SHA()).Numkeys(n).Key(keys...).Arg(args...).Build()
}

func unknownScript(res rueidis.RedisResult) bool {
	if res.NonRedisError() != nil {
		return false
	}
	re, ok := rueidis.IsRedisErr(res.Error())
	return ok && re.IsNoScript()
}

func convert(res rueidis.RedisResult) (redlatch.Reply, *redlatch.RunError) {
	if err := res.NonRedisError(); err != nil {
		return redlatch.Reply{}, classify(err)
	}
	msg, err := res.ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		return redlatch.Reply{}, redlatch.ServerError(err.Error(), err)
	}
	return reply(msg)
}

// classify says what became of a script that was not answered.
func classify(err error) *redlatch.RunError {
	if re, ok := rueidis.IsRedisErr(err); ok {
		// A reply, but not to the script: the server refused the handshake.
		e := redlatch.ServerError(re.Error(), err)
		e.Outcome = redlatch.NotExecuted
		return e
	}
	var nc *notConnectedError
	var op *net.OpError
	if errors.As(err, &nc) || errors.As(err, &op) && op.Op == "dial" || errors.Is(err, rueidis.ErrNoSlot) {
		return notExecuted(err)
	}
	// Also ErrClosing: what was under way when the client was closed may run.
	return &redlatch.RunError{Outcome: redlatch.Unknown, Err: err}
}

func notExecuted(err error) *redlatch.RunError {
	e := &redlatch.RunError{Outcome: redlatch.NotExecuted, Err: err}
	if re, ok := rueidis.IsRedisErr(err); ok {
		e.Code = redlatch.ServerError(re.Error(), err).Code
	}
	return e
}

// reply converts what rueidis read. A script of redlatch answers with nothing
// else than is converted here.
func reply(m rueidis.RedisMessage) (redlatch.Reply, *redlatch.RunError) {
	switch {
	case m.IsInt64():
		n, _ := m.AsInt64()
		return redlatch.Reply{Kind: redlatch.ReplyInt, Int: n}, nil
	case m.IsNil():
		return redlatch.Reply{}, nil
	case m.IsString():
		s, _ := m.ToString()
		return redlatch.Reply{Kind: redlatch.ReplyString, Str: s}, nil
	case m.IsArray():
		values, _ := m.ToArray()
		list := make([]redlatch.Reply, len(values))
		for i := range values {
			var err *redlatch.RunError
			if list[i], err = reply(values[i]); err != nil {
				return redlatch.Reply{}, err
			}
		}
		return redlatch.Reply{Kind: redlatch.ReplyList, List: list}, nil
	default:
		return redlatch.Reply{}, &redlatch.RunError{Err: fmt.Errorf("rueidis: a script answered with %s", m.String())}
	}
}
