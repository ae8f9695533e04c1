package redlatchrueidis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

// A Driver is a [driver.Batcher] on top of rueidis. It is safe for concurrent
// use.
type Driver struct {
	traits    driver.Traits
	redirects bool // rueidis follows REDIRECT
	creds     adapter.Credentials
	breaks    adapter.Breaks
	limits    *limiter // nil for a foreign client
	shares    adapter.Shares
	share     int // how many connections of a node wait for replicas at a time
	commands  *connector
	subs      *connector
	waits     *connector // for those who wait for replicas

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	topics topics
}

var _ driver.Batcher = (*Driver)(nil)

// New makes a driver and the clients that it works through. The driver must be
// closed, which a redlatch.Client that has it does.
//
// New tries to connect, for at most ConnWriteTimeout. An unreachable server is
// not an error: the driver tries again whenever it has a script to run. Options
// with which it can never work are an error. If New has seen no server, and the
// options do not say which kind it is, the driver takes it for a cluster, which
// costs a single server some speed.
//
// New overrules these options: DisableCache and DisableRetry are on; ConnLifetime
// is 0, because rueidis may send a request twice when a connection reaches its
// age; DisableAutoPipelining is off; nothing is sent to replicas. These options
// have other defaults: ConnWriteTimeout 3 s, PipelineMultiplex -1 (one
// connection), ClusterOption.MaxMovedRedirections 5,
// Sentinel.TopologyRefreshInterval 5 s.
//
// With AuthCredentialsFn, its error is taken for an outage, and so is a server's
// refusal of what it returns: the next connection calls it again. Without it,
// credentials that are refused stay refused.
//
// ConnWriteTimeout limits how long a script waits for a connection, and on a
// connection that has gone silent. It is the Timeout of [driver.Traits], and must
// be positive. It is divided among rueidis' own time-outs, and none of these is
// longer.
func New(opt rueidis.ClientOption) (*Driver, error) {
	if len(opt.InitAddress) == 0 {
		return nil, rueidis.ErrNoAddr
	}
	if opt.ReplicaOnly {
		return nil, errors.New("redlatchrueidis: ReplicaOnly: locks live on primaries")
	}
	if opt.ConnWriteTimeout < 0 {
		return nil, errors.New("redlatchrueidis: ConnWriteTimeout must be positive: without it a dead connection would not be noticed")
	}
	d := newDriver(opt)
	opt = d.prepare(opt)
	limit := opt.ConnWriteTimeout
	opt = within(opt, limit)
	d.commands = d.connector(opt)
	opt.PipelineMultiplex = -1
	d.subs = d.connector(opt)
	opt.ReadBufferEachConn = cmp.Or(opt.ReadBufferEachConn, smallBuffer)
	opt.WriteBufferEachConn = cmp.Or(opt.WriteBufferEachConn, smallBuffer)
	d.waits = d.connector(opt)
	d.limits = newLimiter(limit)
	d.redirects = opt.Standalone.EnableRedirect
	d.traits = driver.Traits{
		Name: "redlatchrueidis", Timeout: limit,
		Cluster: !opt.ForceSingleClient && opt.Sentinel.MasterSet == "" && !opt.Standalone.EnableRedirect,
	}
	client, err := d.commands.wait()
	switch {
	case err == nil:
		d.traits.Cluster = client.Mode() == rueidis.ClientModeCluster
	case !unreachable(err):
		_ = d.Close()
		return nil, d.creds.Mask(err)
	}
	d.traits.Replicated = d.traits.Cluster || opt.Sentinel.MasterSet != ""
	d.traits.Interruptible = !d.traits.Cluster && !d.redirects
	if opt.Sentinel.MasterSet == "" {
		d.breaks.Leave, d.breaks.Follow = d.leave, d.subs.dialled.Leave
	}
	d.learnNodes()
	return d, nil
}

// Use returns a driver that works through client, which was made with opt. Closing
// client remains the caller's task, after that of each redlatch.Client that has
// the driver. Scripts and subscriptions share the client's connections, and every
// script costs a few allocations. A broken connection is noticed only by what runs
// over it. Client subscribes again by itself, so until it has, a lost subscription
// is not noticed.
//
// A script can take opt.ConnWriteTimeout, including the time to connect. If that
// is 0, it is rueidis' default, ten seconds. If it is negative, there is no
// limit.
//
// With Sentinel, opt has to set Sentinel.Dialer.KeepAlive. Without it rueidis does
// not notice a sentinel that has gone silent, and may follow no failover. New sets
// it.
//
// Use panics if opt sets ConnLifetime. rueidis may send a request twice when a
// connection reaches its age, and nothing can prevent that.
func Use(client rueidis.Client, opt rueidis.ClientOption) *Driver {
	if opt.ConnLifetime != 0 {
		panic("redlatchrueidis: a client with ConnLifetime may send a script twice")
	}
	d := newDriver(opt)
	c := &connector{d: d, client: client, foreign: true}
	d.commands, d.subs, d.waits = c, c, c
	d.redirects, d.creds.Rotate = opt.Standalone.EnableRedirect, opt.AuthCredentialsFn != nil
	d.traits = driver.Traits{
		Name: "redlatchrueidis", Timeout: max(opt.ConnWriteTimeout, 0),
		Cluster: client.Mode() == rueidis.ClientModeCluster,
	}
	if opt.ConnWriteTimeout == 0 {
		d.traits.Timeout = 10 * max(rueidis.DefaultTCPKeepAlive, opt.Dialer.KeepAlive)
	}
	d.traits.Replicated = d.traits.Cluster || opt.Sentinel.MasterSet != ""
	d.learnNodes()
	return d
}

func newDriver(opt rueidis.ClientOption) *Driver {
	d := &Driver{creds: adapter.Credentials{Secrets: []string{opt.Password, opt.Sentinel.Password}}, topics: topics{m: make(map[topicKey]*topic)}, share: mostWait}
	if size := opt.BlockingPoolSize; size > 0 {
		d.share = min(d.share, max(size/2, 1))
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Close ends all subscriptions and closes the clients that New made. Scripts in
// flight end with an error, and so do later ones. Further calls do nothing. So
// does a call for a driver that Use made: nothing in it is its own. The error is
// nil.
func (d *Driver) Close() error {
	if d.commands.foreign {
		return nil
	}
	d.cancel()
	d.stopAll()
	d.commands.close()
	d.subs.close()
	d.waits.close()
	d.topics.wg.Wait()
	return nil
}

// Traits implements [driver.Redis].
func (d *Driver) Traits() driver.Traits { return d.traits }

// Node implements [driver.Redis]. In a cluster it returns the node's id. Until
// the id is known, it returns a range of hash slots.
func (d *Driver) Node(key string) string { return d.breaks.NodeOf(key) }

// OnBreak implements [driver.Redis].
func (d *Driver) OnBreak(f func(node string)) (stop func()) { return d.breaks.Register(f) }

// leave closes the connections over which scripts go, unless they lead to a
// cluster: its client follows by itself.
func (d *Driver) leave() (left bool) {
	if p := d.commands.ready.Load(); p != nil && (*p).Mode() == rueidis.ClientModeCluster {
		return false
	}
	d.commands.dialled.Leave()
	d.waits.dialled.Leave()
	return true
}

// within returns options with which a connection that has gone silent is given up
// within d, and one to a sentinel within three times that. A request that waits
// for a reply by itself runs into rueidis' read time-out; one that shares a
// connection is ended by the ping that rueidis sends when nothing has come for two
// pauses. (Dialler.KeepAlive is also the pause between two pings.) Without pings
// rueidis waits for a sentinel for ever, and follows no failover.
func within(opt rueidis.ClientOption, d time.Duration) rueidis.ClientOption {
	opt.ConnWriteTimeout = d * 2 / 3
	for _, x := range []struct {
		dialer *net.Dialer
		pause  time.Duration
	}{{&opt.Dialer, d / 6}, {&opt.Sentinel.Dialer, d}} { // all clients may have one sentinel, and no call waits for it
		if x.dialer.KeepAlive <= 0 || x.dialer.KeepAlive > x.pause {
			x.dialer.KeepAlive = x.pause
		}
		if x.dialer.Timeout <= 0 || x.dialer.Timeout > d {
			x.dialer.Timeout = d
		}
	}
	return opt
}

// prepare returns the options that New's clients are made with.
func (d *Driver) prepare(opt rueidis.ClientOption) rueidis.ClientOption {
	if opt.ConnWriteTimeout == 0 {
		opt.ConnWriteTimeout = 3 * time.Second
	}
	if opt.PipelineMultiplex == 0 {
		opt.PipelineMultiplex = -1
	}
	if opt.ClusterOption.MaxMovedRedirections == 0 {
		opt.ClusterOption.MaxMovedRedirections = 5
	}
	if opt.Sentinel.TopologyRefreshInterval == 0 {
		opt.Sentinel.TopologyRefreshInterval = 5 * time.Second
	}
	opt.DisableCache, opt.DisableRetry = true, true
	opt.ConnLifetime = 0
	opt.DisableAutoPipelining = false
	opt.SendToReplicas, opt.ReadNodeSelector = nil, nil
	opt.ReplicaSelector = nil //nolint:staticcheck // deprecated, and still in force if set
	opt.Standalone.ReplicaAddress = nil
	if ask := opt.AuthCredentialsFn; ask != nil {
		d.creds.Rotate = true
		opt.AuthCredentialsFn = func(at rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			found, err := ask(at)
			if err != nil {
				err = &notConnectedError{fmt.Errorf("no credentials: %w", err)}
			}
			return found, err
		}
	}
	return opt
}
