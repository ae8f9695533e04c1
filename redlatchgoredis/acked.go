package redlatchgoredis

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

var _ driver.Acker = (*Driver)(nil)

// RunAcked implements [driver.Acker]. It uses a connection of the client's pool.
// At most half of the connections to a node (PoolSize) are used for this at the
// same time. A timeout is shortened to half of ReadTimeout, or to one second; with
// ContextTimeoutEnabled, to a third of the time for everything ([Driver.Traits]).
func (d *Driver) RunAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (driver.Reply, int, error) {
	ctx, cancel := d.patient(ctx)
	defer cancel()

	node, err := d.node(ctx, keys[0])
	if err != nil {
		return driver.Reply{}, 0, d.creds.Judge(classify(err, false))
	}
	q := ackedScript{d, s, keys, args, replicas, max(min(timeout, d.waits).Milliseconds(), 1)}
	reply, acked, re := q.run(ctx, node, false)
	if re != nil && (re.Code == "MOVED" || re.Code == "ASK") {
		if other := d.redirected(ctx, re.Err); other != nil {
			if re.Code == "MOVED" {
				d.cluster.ReloadState(ctx)
			}
			ctx, cancel := d.again(ctx)
			defer cancel()
			reply, acked, re = q.run(ctx, other, re.Code == "ASK")
		}
	}
	if re != nil {
		if d.cluster != nil && re.Outcome == driver.NotExecuted {
			d.cluster.ReloadState(ctx)
		}
		d.breaks.Failed(re, keys)
		return driver.Reply{}, 0, d.creds.Judge(re)
	}
	d.breaks.Answered()
	return reply, acked, nil
}

// node returns the client of the primary that has key.
func (d *Driver) node(ctx context.Context, key string) (*redis.Client, error) {
	if d.single != nil {
		return d.single, nil
	}
	return d.cluster.MasterForKey(ctx, key)
}

// redirected returns the client of the node that a MOVED or ASK leads to, or nil.
func (d *Driver) redirected(ctx context.Context, err error) *redis.Client {
	words := strings.Fields(err.Error())
	if d.cluster == nil || len(words) != 3 {
		return nil
	}
	var node atomic.Pointer[redis.Client]
	_ = d.cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		if c.Options().Addr == words[2] {
			node.Store(c)
		}
		return nil
	})
	return node.Load()
}

// An ackedScript is a script with what is to be waited for behind it.
type ackedScript struct {
	d          *Driver
	script     *driver.Script
	keys, args []string
	replicas   int
	timeoutMs  int64
}

// run sends the script and WAIT over one connection to the node, which has the
// keys or, if asking is set, is about to.
func (q *ackedScript) run(ctx context.Context, node *redis.Client, asking bool) (driver.Reply, int, *driver.RunError) {
	opt := node.Options()
	giveBack, err := q.d.shares.Take(opt.Addr, max(opt.PoolSize/2, 1), q.d.limits.After/2)
	if err != nil {
		return driver.Reply{}, 0, classify(err, false)
	}
	defer giveBack()
	reply, acked, re := q.send(ctx, node, "evalsha", q.script.SHA(), asking)
	if re != nil && re.Code == "NOSCRIPT" {
		ctx, cancel := q.d.again(ctx)
		defer cancel()
		return q.send(ctx, node, "eval", q.script.Source(), asking)
	}
	return reply, acked, re
}

func (q *ackedScript) send(
	ctx context.Context, node *redis.Client, verb, script string, asking bool,
) (driver.Reply, int, *driver.RunError) {
	text := &scriptArg{text: script}
	cmd := command(ctx, make([]any, 0, 3+len(q.keys)+len(q.args)), verb, text, q.keys, q.args)
	wait := redis.NewIntCmd(ctx, "wait", q.replicas, q.timeoutMs)
	pipe := node.Pipeline()
	if asking {
		_ = pipe.Process(ctx, redis.NewStatusCmd(ctx, "asking"))
	}
	_ = pipe.Process(ctx, cmd)
	_ = pipe.Process(ctx, wait)
	err := q.d.contained(func() error { _, err := pipe.Exec(ctx); return err }) // of the first that failed, or of a hook
	reply, re := piped(cmd, err, text)
	var answer redis.Error
	switch {
	case re != nil:
		return driver.Reply{}, 0, re
	case wait.Err() == nil:
		return reply, int(wait.Val()), nil
	case errors.As(wait.Err(), &answer):
		return reply, adapter.Unacknowledged(answer.Error()), nil
	default:
		return driver.Reply{}, 0, &driver.RunError{Outcome: driver.Unknown, Err: wait.Err()}
	}
}

// Replicas implements [driver.Acker].
func (d *Driver) Replicas(ctx context.Context, key string) (int, error) {
	ctx, cancel := d.patient(ctx)
	defer cancel()
	node, err := d.node(ctx, key)
	if err != nil {
		return 0, d.creds.Judge(classify(err, false))
	}
	var role []any
	err = d.contained(func() (err error) {
		role, err = node.Do(ctx, "role").Slice()
		return err
	})
	if err != nil {
		re := classify(err, true)
		if re.Outcome == driver.Unknown {
			re.Outcome = driver.NotExecuted // who asks changes nothing
		}
		return 0, d.creds.Judge(re)
	}
	if len(role) >= 3 {
		if replicas, ok := role[2].([]any); ok {
			return len(replicas), nil
		}
	}
	return 0, driver.ServerError("READONLY", errNoPrimary)
}

var (
	errNoPrimary = errors.New("redlatchgoredis: the server is no primary")
	errNoReply   = errors.New("redlatchgoredis: a hook has swallowed the reply")
)
