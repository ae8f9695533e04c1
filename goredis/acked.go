package goredis

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/adapter"
)

var _ redlatch.Acker = (*Driver)(nil)

// RunAcked implements [redlatch.Acker], on a connection of the client's pool. A
// timeout is shortened to half of ReadTimeout.
func (d *Driver) RunAcked(
	ctx context.Context, s *redlatch.Script, keys, args []string, replicas int, timeout time.Duration,
) (redlatch.Reply, int, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()

	node, err := d.node(ctx, keys[0])
	if err != nil {
		return redlatch.Reply{}, 0, classify(err, false)
	}
	q := ackedScript{keys, args, replicas, max(min(timeout, d.waits).Milliseconds(), 1)}
	reply, acked, re := q.run(ctx, node, s, false)
	if re != nil && re.Code == "ASK" {
		if other := d.asked(ctx, re.Err); other != nil {
			reply, acked, re = q.run(ctx, other, s, true)
		}
	}
	if re != nil {
		if d.cluster != nil && re.Outcome == redlatch.NotExecuted {
			d.cluster.ReloadState(ctx)
		}
		if adapter.IsBreak(re) {
			d.breaks.Lane(keys)
		}
		return redlatch.Reply{}, 0, re
	}
	return reply, acked, nil
}

// node returns the client of the primary that has key.
func (d *Driver) node(ctx context.Context, key string) (*redis.Client, error) {
	if d.single != nil {
		return d.single, nil
	}
	return d.cluster.MasterForKey(ctx, key)
}

// asked returns the client of the node that an ASK leads to, or nil.
func (d *Driver) asked(ctx context.Context, ask error) (node *redis.Client) {
	words := strings.Fields(ask.Error())
	_ = d.cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		if len(words) == 3 && c.Options().Addr == words[2] {
			node = c
		}
		return nil
	})
	return node
}

// An ackedScript is what to send of a script, with what is to be waited for behind
// it.
type ackedScript struct {
	keys, args []string
	replicas   int
	timeoutMs  int64
}

// run sends the script and WAIT over one connection to the node, which has the keys
// or, if asking is set, is about to.
func (q *ackedScript) run(
	ctx context.Context, node *redis.Client, s *redlatch.Script, asking bool,
) (reply redlatch.Reply, acked int, err *redlatch.RunError) {
	reply, acked, err = q.send(ctx, node, "evalsha", s.SHA(), asking)
	if err != nil && err.Code == "NOSCRIPT" {
		return q.send(ctx, node, "eval", s.Source(), asking)
	}
	return reply, acked, err
}

func (q *ackedScript) send(
	ctx context.Context, node *redis.Client, verb, script string, asking bool,
) (redlatch.Reply, int, *redlatch.RunError) {
	text := &scriptArg{text: script}
	cmd := command(ctx, verb, text, q.keys, q.args)
	wait := redis.NewIntCmd(ctx, "wait", q.replicas, q.timeoutMs)
	pipe := node.Pipeline()
	if asking {
		_ = pipe.Process(ctx, redis.NewStatusCmd(ctx, "asking"))
	}
	_ = pipe.Process(ctx, cmd)
	_ = pipe.Process(ctx, wait)
	_, err := pipe.Exec(ctx)
	reply, re := result(cmd, cmd.Err(), text)
	if re != nil {
		return reply, 0, re
	}
	var answer redis.Error
	switch {
	case wait.Err() == nil && err == nil:
		return reply, int(wait.Val()), nil
	case errors.As(wait.Err(), &answer):
		return reply, adapter.Unacknowledged(answer.Error()), nil
	default:
		return reply, 0, nil
	}
}

// Replicas implements [redlatch.Acker].
func (d *Driver) Replicas(ctx context.Context, key string) (int, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	node, err := d.node(ctx, key)
	if err != nil {
		return 0, classify(err, false)
	}
	role, err := node.Do(ctx, "role").Slice()
	if err != nil {
		return 0, classify(err, true)
	}
	if len(role) >= 3 {
		if replicas, ok := role[2].([]any); ok {
			return len(replicas), nil
		}
	}
	return 0, redlatch.ServerError("READONLY", errNoPrimary)
}

var errNoPrimary = errors.New("goredis: the server is no primary")
