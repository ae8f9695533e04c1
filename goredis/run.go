package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/adapter"
)

// Run implements [redlatch.Redis].
func (d *Driver) Run(ctx context.Context, s *redlatch.Script, keys, args []string) (redlatch.Reply, error) {
	ctx, cancel := d.patient(ctx)
	defer cancel()

	reply, err := d.send(ctx, "evalsha", s.SHA(), keys, args)
	if err != nil && err.Code == "NOSCRIPT" {
		ctx, cancel := d.again(ctx)
		defer cancel()
		reply, err = d.send(ctx, "eval", s.Source(), keys, args)
	}
	if err != nil {
		if adapter.IsBreak(err) {
			d.breaks.Lane(keys)
		}
		return redlatch.Reply{}, d.creds.Judge(err)
	}
	return reply, nil
}

// send sends one command, once. It returns a typed nil, so its result must not
// become an error unchecked.
func (d *Driver) send(ctx context.Context, verb, script string, keys, args []string) (redlatch.Reply, *redlatch.RunError) {
	text := &scriptArg{text: script}
	cmd := command(ctx, verb, text, keys, args)
	return result(cmd, d.rdb.Process(ctx, cmd), text)
}

func command(ctx context.Context, verb string, script *scriptArg, keys, args []string) once {
	words := make([]any, 0, 3+len(keys)+len(args))
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
func result(cmd once, err error, text *scriptArg) (redlatch.Reply, *redlatch.RunError) {
	if err == nil {
		return reply(cmd.Val())
	}
	if errors.Is(err, redis.Nil) {
		return redlatch.Reply{}, nil
	}
	return redlatch.Reply{}, classify(err, text.written.Load())
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
func classify(err error, written bool) *redlatch.RunError {
	var answer redis.Error
	if errors.As(err, &answer) {
		e := redlatch.ServerError(answer.Error(), err)
		if !written { // the server refused the handshake
			e.Outcome = redlatch.NotExecuted
		}
		return e
	}
	if !written || notSent(err) {
		return &redlatch.RunError{Outcome: redlatch.NotExecuted, Err: err}
	}
	return &redlatch.RunError{Outcome: redlatch.Unknown, Err: err}
}

// notSent is for a command that was written before: as go-redis writes ours
// again only after an error reply, such as MOVED, an attempt that found no
// connection then was the last, and nothing is under way.
func notSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}

// reply converts what go-redis read. A script of redlatch answers with nothing
// else than is converted here.
func reply(v any) (redlatch.Reply, *redlatch.RunError) {
	switch v := v.(type) {
	case nil:
		return redlatch.Reply{}, nil
	case int64:
		return redlatch.Reply{Kind: redlatch.ReplyInt, Int: v}, nil
	case string:
		return redlatch.Reply{Kind: redlatch.ReplyString, Str: v}, nil
	case []any:
		list := make([]redlatch.Reply, len(v))
		for i := range v {
			var err *redlatch.RunError
			if list[i], err = reply(v[i]); err != nil {
				return redlatch.Reply{}, err
			}
		}
		return redlatch.Reply{Kind: redlatch.ReplyList, List: list}, nil
	default:
		return redlatch.Reply{}, &redlatch.RunError{Err: fmt.Errorf("goredis: a script answered with a %T", v)}
	}
}
