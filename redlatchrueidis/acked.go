package redlatchrueidis

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

var _ driver.Acker = (*Driver)(nil)

const (
	// mostWait is how many connections of a node wait for replicas at a time: rueidis
	// waits for one without end.
	mostWait = 64
	// smallBuffer is enough for one script. rueidis would take half a megabyte.
	smallBuffer = 16 << 10
)

// RunAcked implements [driver.Acker]. It uses connections of rueidis' pool for
// blocking commands: of a client of its own, which a driver that New has made
// makes when it is needed, or of the client that was given to Use. For each node
// it uses at most half of that pool (BlockingPoolSize), and at most 64
// connections. A timeout is shortened to a third of what is left of
// Traits.Timeout. With Standalone.EnableRedirect no replica is asked for
// acknowledgement.
func (d *Driver) RunAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (reply driver.Reply, acked int, err error) {
	if d.redirects { // which a connection of one's own does not follow
		reply, err = d.Run(ctx, s, keys, args)
		return reply, -1, err
	}
	ctx, release := d.limit(ctx)
	defer release()
	client, err := d.waits.get(ctx)
	if err != nil {
		return driver.Reply{}, 0, d.creds.Judge(notExecuted(err))
	}
	if client.Mode() == rueidis.ClientModeCluster && !sameSlot(keys) {
		return driver.Reply{}, 0, driver.ServerError("CROSSSLOT", errCrossSlot)
	}
	giveBack, err := d.shares.Take(d.Node(keys[0]), d.share, d.traits.Timeout/3)
	if err != nil {
		return driver.Reply{}, 0, notExecuted(err)
	}
	defer giveBack()
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end)/3) // twice, if the script is unknown
	}
	q := ackedScript{s, keys, args, int64(replicas), max(timeout.Milliseconds(), 1)}
	res, wait := q.run(ctx, client, false)
	if addr, asking := redirected(res); addr != "" {
		if node := client.Nodes()[addr]; node != nil {
			res, wait = q.run(ctx, node, asking)
		}
	}
	reply, re := convert(res)
	if re != nil {
		d.breaks.Failed(re, keys)
		return driver.Reply{}, 0, d.creds.Judge(re)
	}
	if err := wait.NonRedisError(); err != nil { // whoever is the primary by now may not have it
		d.breaks.Node(keys)
		return driver.Reply{}, 0, &driver.RunError{Outcome: driver.Unknown, Err: err}
	}
	d.breaks.Answered()
	return reply, acknowledged(wait), nil
}

// An ackedScript is a script with what is to be waited for behind it.
type ackedScript struct {
	script     *driver.Script
	keys, args []string
	replicas   int64
	timeoutMs  int64
}

// run sends both over a connection of their own to the node that has the keys, or
// if asking is set, to the one that is about to.
func (q *ackedScript) run(ctx context.Context, client rueidis.Client, asking bool) (res, wait rueidis.RedisResult) {
	own, giveBack := client.Dedicate()
	defer giveBack()
	send := func(f form) {
		b := own.B()
		cmds := make([]rueidis.Completed, 0, 3)
		if asking {
			cmds = append(cmds, b.Asking().Build())
		}
		cmds = append(cmds, command(b, q.script, f, q.keys, q.args),
			b.Wait().Numreplicas(q.replicas).Timeout(q.timeoutMs).Build())
		all := own.DoMulti(ctx, cmds...)
		res, wait = all[len(all)-2], all[len(all)-1]
	}
	send(bySHA)
	if unknownScript(res) {
		send(bySource)
	}
	return res, wait
}

// redirected returns the address of the node that a MOVED or an ASK leads to, or
// "".
func redirected(res rueidis.RedisResult) (addr string, asking bool) {
	if re, ok := rueidis.IsRedisErr(res.Error()); ok {
		if addr, asking = re.IsAsk(); !asking {
			addr, _ = re.IsMoved()
		}
	}
	return addr, asking
}

// acknowledged reads the answer to WAIT.
func acknowledged(wait rueidis.RedisResult) int {
	n, err := wait.AsInt64()
	if re, ok := rueidis.IsRedisErr(err); ok {
		return adapter.Unacknowledged(re.Error())
	}
	return int(n)
}

// Replicas implements [driver.Acker].
func (d *Driver) Replicas(ctx context.Context, key string) (int, error) {
	ctx, release := d.bound(ctx)
	defer release()
	client, err := d.commands.get(ctx)
	if err != nil {
		return 0, d.creds.Judge(notExecuted(err))
	}
	role := client.B().Role().Build()
	if client.Mode() == rueidis.ClientModeCluster {
		role = role.SetSlot(key)
	}
	res := client.Do(ctx, role)
	if err := res.NonRedisError(); err != nil {
		return 0, d.creds.Judge(classify(err))
	}
	list, err := res.ToArray()
	if err != nil {
		return 0, driver.ServerError(err.Error(), err)
	}
	if len(list) < 3 {
		return 0, driver.ServerError("READONLY", errNoPrimary)
	}
	replicas, err := list[2].ToArray()
	if err != nil { // a replica tells the port of its primary there
		return 0, driver.ServerError("READONLY", errNoPrimary)
	}
	return len(replicas), nil
}
