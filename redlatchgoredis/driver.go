package redlatchgoredis

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

// A Driver is a [driver.Redis] on top of a go-redis client. It is safe for
// concurrent use. It needs no Close: its goroutines end when its last
// subscription is stopped or the client is closed.
type Driver struct {
	rdb     processor
	single  *redis.Client        // or nil
	cluster *redis.ClusterClient // or nil

	traits     driver.Traits
	limits     adapter.Limits // how long a script may take to be on its way
	contexts   bool           // limits are for the reply as well
	waits      time.Duration  // how long WAIT can last
	shares     adapter.Shares // of a node's pool, for WAIT
	creds      adapter.Credentials
	breaks     adapter.Breaks
	leaving    sync.Mutex  // see leave
	unreadable atomic.Bool // go-redis has panicked over an answer
	classic    *hub
	sharded    *hub
}

var _ driver.Redis = (*Driver)(nil)

// An Option says how a Driver works.
type Option func(*Driver)

// A processor is either kind of client.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// Use returns a driver that works through rdb, which must be a *redis.Client
// (also one made for Sentinel) or a *redis.ClusterClient. Closing rdb remains
// the caller's task. Use does no I/O, and leaves rdb as it is.
//
// If rdb has one of go-redis' CredentialsProviders, and the server refuses what it
// returns, that is taken for an outage: the next connection asks the provider
// again.
//
// For Sentinel take a client of redis.NewFailoverClient. One of
// redis.NewFailoverClusterClient cannot be told from that of a cluster:
// redlatch.PubSubAuto uses sharded Pub/Sub then, which others who share the server
// do not hear, so that they poll; with redlatch.PubSubClassic they hear each
// other.
//
// Use panics for any other client. A *redis.Ring spreads keys over servers that
// know nothing of each other, and moves them to another server when one is
// unreachable. So a lock in it can be held twice.
func Use(rdb redis.UniversalClient, opts ...Option) *Driver {
	d := &Driver{traits: driver.Traits{Name: "redlatchgoredis", ContextValues: true}}
	for _, o := range opts {
		o(d)
	}
	switch c := rdb.(type) {
	case *redis.Client:
		o := c.Options()
		d.rdb, d.single = c, c
		d.traits.Replicated = o.Addr == "FailoverClient" // what go-redis puts there for one that asks sentinels
		if !d.traits.Replicated {
			d.breaks.Leave, d.breaks.Follow = d.leave, d.follow
		}
		d.setTimeouts(o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled)
		d.creds.Rotate = o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil
		d.creds.Secrets = []string{o.Password}
		d.classic = newHub(d, false, alone(c))
		d.sharded = newHub(d, true, alone(c))
		d.traits.Direct = true
	case *redis.ClusterClient:
		o := c.Options()
		d.rdb, d.cluster, d.traits.Cluster = c, c, true
		d.traits.Replicated = true
		d.setTimeouts(o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled)
		d.creds.Rotate = o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil
		d.creds.Secrets = []string{o.Password}
		d.classic = newHub(d, false, anyNode(c))
		d.sharded = newHub(d, true, owner(c))
	case *redis.Ring:
		panic("redlatchgoredis: a redis.Ring cannot hold locks: it moves a key to another server when one is unreachable")
	default:
		panic(fmt.Sprintf("redlatchgoredis: unsupported client %T: use a *redis.Client or a *redis.ClusterClient", rdb))
	}
	if d.cluster != nil {
		d.breaks.Cluster(d.slots)
	}
	return d
}

// Traits implements [driver.Redis].
//
// Timeout is DialTimeout, but at most 3 s, for finding or making a connection,
// plus the longer one of ReadTimeout and WriteTimeout. The second part is for the
// one step, of the handshake or of the script itself, that then meets a dead
// server. With ContextTimeoutEnabled, Timeout is at most 3 s for everything.
// Without that option it is 0 if ReadTimeout or WriteTimeout is negative, which
// means no time-out.
func (d *Driver) Traits() driver.Traits { return d.traits }

// Node implements [driver.Redis]. In a cluster it returns the node's id. Until
// the id is known, it returns a range of hash slots.
func (d *Driver) Node(key string) string { return d.breaks.NodeOf(key) }

// OnBreak implements [driver.Redis].
func (d *Driver) OnBreak(f func(node string)) (stop func()) { return d.breaks.Register(f) }

// Subscribe implements [driver.Redis].
func (d *Driver) Subscribe(channel string, sharded bool, h func(driver.Notice)) (stop func()) {
	if sharded {
		return d.sharded.subscribe(channel, h)
	}
	return d.classic.subscribe(channel, h)
}

// Listeners implements [driver.Sharer].
func (d *Driver) Listeners(channel string, sharded bool) int {
	if sharded {
		return d.sharded.count(channel)
	}
	return d.classic.count(channel)
}

// Unconfirmed implements [driver.Subscriber].
func (d *Driver) Unconfirmed(after time.Duration) int {
	return d.classic.unconfirmed(after) + d.sharded.unconfirmed(after)
}

// patient bounds a call that is not a mere Run: as a whole, if the client minds
// contexts.
func (d *Driver) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d.limits.After)
}

// secondLimit returns the limit of the second step of a call, whose first one had
// one: the server may have taken its time to say that it does not know the script.
func (d *Driver) secondLimit(first context.Context) context.Context {
	if d.contexts { // it bounds the call as a whole
		return first
	}
	return d.limits.Get()
}

// again is secondLimit for a call that is not a mere Run.
func (d *Driver) again(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.contexts {
		return ctx, func() {}
	}
	return d.patient(ctx)
}

// mostPatience is the longest that a Run tries to get its script on its way.
// go-redis would dial five times over; a connection that comes too late is kept
// for the next.
const mostPatience = 3 * time.Second

// setTimeouts takes the options of a client in the state in which go-redis keeps
// them, with its defaults filled in.
func (d *Driver) setTimeouts(dial, read, write time.Duration, contexts bool) {
	d.limits.After, d.waits, d.contexts = mostPatience, mostPatience/3, contexts
	if dial > 0 {
		d.limits.After = min(d.limits.After, dial)
	}
	switch bounded := read > 0 && write > 0; {
	case contexts: // it is for the reply as well
		if d.limits.After += max(read, write); !bounded || d.limits.After > mostPatience {
			d.limits.After = mostPatience
		}
		d.traits.Timeout = d.limits.After
		d.waits = d.limits.After / 3 // twice, if the script is unknown
	case bounded:
		d.traits.Timeout = d.limits.After + max(read, write)
	}
	if read > 0 {
		d.waits = min(d.waits, read/2)
	}
}
