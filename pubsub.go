package redlatch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/script"
)

// PubSub says by which of the two kinds of Pub/Sub clients tell one another.
// Who uses one of them does not hear the other.
type PubSub uint8

// The values of PubSub.
const (
	// PubSubAuto is what Redisson does: sharded Pub/Sub in a cluster whose servers
	// know it (Redis 7, Valkey), and classic everywhere else.
	PubSubAuto PubSub = iota
	// PubSubClassic is PUBLISH and SUBSCRIBE: what Redisson does in a cluster with
	// shardedSubscriptionMode OFF, and before 3.19.
	PubSubClassic
	// PubSubSharded is SPUBLISH and SSUBSCRIBE. Redis before 7 does not know them:
	// there a release fails with this value, and with PubSubBoth.
	PubSubSharded
	// PubSubBoth publishes and listens both ways, for as long as clients of both
	// kinds share locks. It costs a second message and a second subscription, and
	// whoever uses the other kind alone takes part in turns by chance only.
	PubSubBoth
)

// String returns "auto", "classic", "sharded" or "both".
func (p PubSub) String() string {
	switch p {
	case PubSubAuto:
		return "auto"
	case PubSubClassic:
		return "classic"
	case PubSubSharded:
		return "sharded"
	case PubSubBoth:
		return "both"
	}
	return fmt.Sprintf("PubSub(%d)", uint8(p))
}

var pubsubProbe = script.Load(luaFiles, "pubsub.probe")

// pubsub is how a client tells others. What PubSubAuto means is asked of the
// server with the first request that has a key.
type pubsub struct {
	decided  atomic.Bool
	messages atomic.Uint32 // a script.Messages
}

func (p *pubsub) decide(m script.Messages) {
	p.messages.Store(uint32(m))
	p.decided.Store(true)
}

func (p *pubsub) start(mode PubSub, cluster bool) {
	switch {
	case mode == PubSubSharded:
		p.decide(script.Sharded)
	case mode == PubSubBoth:
		p.decide(script.Both)
	case mode == PubSubClassic || !cluster:
		p.decide(script.Classic)
	}
}

// sharded says that all who listen do so at the node that has the channel's slot,
// where a script sees them.
func (p *pubsub) sharded() bool { return script.Messages(p.messages.Load()) == script.Sharded }

// by returns how o's script is to tell others. The error is that of a request,
// and o says how that went.
func (o *op) by(ctx context.Context) (script.Messages, error) {
	p := &o.c.pubsub
	if p.decided.Load() || len(o.keys) == 0 {
		return script.Messages(p.messages.Load()), nil
	}
	probe := op{c: o.c, script: pubsubProbe, keys: o.keys[:1], lease: o.lease, stop: o.stop, until: o.until, single: o.single}
	reply, err := probe.send(ctx)
	if err != nil {
		o.sent, o.left, o.failed = probe.sent, probe.left, probe.failed
		return 0, err
	}
	m := script.Classic
	if reply.Int == 1 {
		m = script.Sharded
	}
	p.decide(m)
	return m, nil
}

// listen starts the subscription of news to an object's channel, unless it has
// been started. seen is called with each notice before those who wait are woken,
// onForeign as notify.Listener says; both may be nil.
func (c *Client) listen(news *notify.Listener, channel string, seen func(Notice), onForeign func()) {
	news.Start(func(h func(confirmed bool)) func() {
		return c.subscribe(channel, func(n Notice) {
			if seen != nil {
				seen(n)
			}
			h(n.Subscribed)
		}, news.Nudge)
	}, onForeign)
}

// own returns for how many subscribers to a channel this client stands, for a script
// that counts the others: one, if the server has confirmed news. Of several clients
// of this process that share a driver none is that one.
func (c *Client) own(news *notify.Listener, channel string) string {
	sharded := script.Messages(c.pubsub.messages.Load()) != script.Classic
	if s, ok := c.redis.(Sharer); !news.Confirmed() || (ok && s.Listeners(channel, sharded) > 1) {
		return "0"
	}
	return "1"
}

// subscribe listens to an object's channel. Messages that come another way than
// those that others count are only a nudge.
func (c *Client) subscribe(channel string, h func(Notice), nudge func()) (stop func()) {
	switch m := script.Messages(c.pubsub.messages.Load()); m {
	case script.Both:
		sharded := c.redis.Subscribe(channel, true, h)
		classic := c.redis.Subscribe(channel, false, func(Notice) { nudge() })
		return sync.OnceFunc(func() { sharded(); classic() })
	default:
		return c.redis.Subscribe(channel, m == script.Sharded, h)
	}
}
