package redlatchgoredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
)

// Run implements [driver.Redis].
func (d *Driver) Run(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	limit := d.limits.Get()
	reply, err := d.send(bounded{limit, ctx}, "evalsha", s.SHA(), keys, args)
	if err != nil && err.Code == "NOSCRIPT" {
		reply, err = d.send(bounded{d.secondLimit(limit), ctx}, "eval", s.Source(), keys, args)
	}
	if err != nil {
		d.breaks.Failed(err, keys)
		return driver.Reply{}, d.creds.Judge(err)
	}
	d.breaks.Answered()
	return reply, nil
}

// A bounded context ends with a limit, and has the values of a caller's context.
type bounded struct {
	context.Context //nolint:containedctx // this is a context
	values          context.Context
}

// Value answers for the limit first: what is made of the context is told of its
// end without a goroutine.
func (b bounded) Value(key any) any {
	if v := b.Context.Value(key); v != nil {
		return v
	}
	return b.values.Value(key)
}

// A sending is a command with what it needs, in one piece of memory. Hooks may
// keep it.
type sending struct {
	ctx    bounded
	script scriptArg
	words  [8]any // enough for a plain lock; append allocates for others, such as the 13 of a fair one
}

// send sends one command, once. It returns a typed nil, so its result must not
// become an error unchecked.
func (d *Driver) send(ctx bounded, verb any, script string, keys, args []string) (driver.Reply, *driver.RunError) {
	m := &sending{ctx: ctx, script: scriptArg{text: script}}
	cmd := command(&m.ctx, m.words[:0], verb, &m.script, keys, args)
	err := d.contained(func() error { return d.rdb.Process(&m.ctx, cmd) })
	reply, failed := result(cmd, err, &m.script)
	if failed != nil && failed.Outcome == driver.NotExecuted && d.single != nil {
		most, pool := d.single.Options().PoolSize, d.single.PoolStats()
		if pool.IdleConns == 0 && int(pool.TotalConns) >= most {
			failed.Err = fmt.Errorf("all connections of go-redis' pool are in use (%d): %w", most, failed.Err)
		}
	}
	return reply, failed
}

// errUnreadable ends a Driver. go-redis puts a connection back into its pool when
// it has panicked over an answer, and the next command there may read what is left
// of that.
var errUnreadable = errors.New("redlatchgoredis: go-redis cannot read what the server says; nothing is sent any more by this driver")

// contained is the function of that name, for what shares the client's
// connections.
func (d *Driver) contained(call func() error) error {
	if d.unreadable.Load() {
		return errUnreadable
	}
	err := contained(call)
	switch {
	case errors.Is(err, errUnreadable):
		d.unreadable.Store(true)
	case d.unreadable.Load(): // meanwhile: it may have read another's answer
		err = errUnreadable
	}
	return err
}

// contained calls go-redis, which panics where a server says what it has no answer
// to: a length that is none, a message without a channel. That is an error. Panics
// of another kind than the runtime's, a hook's of the program, are none of ours.
func contained(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			cause, ok := p.(runtime.Error)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("%w: %w", errUnreadable, cause)
		}
	}()
	return call()
}

// command makes a command of words, which it adds to a slice.
func command(ctx context.Context, words []any, verb any, script *scriptArg, keys, args []string) once {
	words = append(words, verb, script, len(keys))
	for _, k := range keys {
		words = append(words, k)
	}
	for _, a := range args {
		words = append(words, a)
	}
	return once{redis.NewCmd(ctx, words...)}
}

// result says what became of a command that ended with err.
func result(cmd once, err error, text *scriptArg) (driver.Reply, *driver.RunError) {
	written := text.written.Load()
	if err == nil && cmd.Val() == nil && !written { // a hook has neither sent it nor answered
		err = errNoReply
	}
	if err == nil {
		return reply(cmd.Val())
	}
	if errors.Is(err, redis.Nil) && written { // or sentinels know of no such primary
		return driver.Reply{}, nil
	}
	return driver.Reply{}, classify(err, written)
}

// once is a command that go-redis sends again only after a server has answered
// that it did not execute it.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// A scriptArg is the script, or its name, as an argument that knows whether it
// has been put on a connection: go-redis marshals it then and only then.
type scriptArg struct {
	text    string
	written atomic.Bool
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (a *scriptArg) MarshalBinary() ([]byte, error) {
	a.written.Store(true)
	return []byte(a.text), nil
}

// String is for the hooks of the program that print commands.
func (a *scriptArg) String() string { return a.text }

// classify says what became of a command that failed with err; written is false
// if not a byte of it has been put on a connection.
func classify(err error, written bool) *driver.RunError {
	var answer redis.Error
	if errors.As(err, &answer) {
		e := driver.ServerError(answer.Error(), err)
		if !written { // the server refused the handshake
			e.Outcome = driver.NotExecuted
		}
		return e
	}
	if !written || notSent(err) {
		return &driver.RunError{Outcome: driver.NotExecuted, Err: err}
	}
	return &driver.RunError{Outcome: driver.Unknown, Err: err}
}

// notSent is for a command that was written before: as go-redis writes ours
// again only after an error reply, such as MOVED, an attempt that found no
// connection then was the last, and nothing is in flight.
func notSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}

// reply converts what go-redis read. A script of redlatch answers with nothing
// else than is converted here.
func reply(v any) (driver.Reply, *driver.RunError) {
	switch v := v.(type) {
	case nil:
		return driver.Reply{}, nil
	case int64:
		return driver.Reply{Kind: driver.ReplyInt, Int: v}, nil
	case string:
		return driver.Reply{Kind: driver.ReplyString, Str: v}, nil
	case []any:
		list := make([]driver.Reply, len(v))
		for i := range v {
			var err *driver.RunError
			if list[i], err = reply(v[i]); err != nil {
				return driver.Reply{}, err
			}
		}
		return driver.Reply{Kind: driver.ReplyList, List: list}, nil
	default:
		return driver.Reply{}, &driver.RunError{Err: fmt.Errorf("redlatchgoredis: a script answered with a %T", v)}
	}
}
