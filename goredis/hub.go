package goredis

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

// A hub holds the subscriptions of one kind. It has one goroutine, the manager,
// which alone subscribes and unsubscribes, and one reader per connection; all of
// them only as long as there is a subscription.
//
// go-redis' own reconnection is not relied on: it subscribes to all channels in
// one request, which a cluster refuses for sharded ones, and it does not find
// out that a server has fallen silent. A connection that fails is dropped, and
// its channels are subscribed anew, on the node that has them then.
type hub struct {
	d       *Driver
	sharded bool
	route   route
	wake    chan struct{} // one slot; tells the manager that there is work

	mu       sync.Mutex // guards all below, and the topics
	topics   map[string]*topic
	dirty    map[string]*topic // what the manager has to look at
	failed   []*link           // what it has to drop
	attempt  int               // failures since the last confirmation
	broken   bool              // a connection was lost since then
	managing bool
	closed   bool // the client was closed: the end
}

// A topic is a channel that somebody listens to, or did until just now.
type topic struct {
	name      string
	listeners adapter.Listeners
	link      *link // where it is, or is about to be, subscribed
	confirmed bool
}

func newHub(d *Driver, sharded bool, r route) *hub {
	return &hub{
		d: d, sharded: sharded, route: r,
		topics: make(map[string]*topic), dirty: make(map[string]*topic), wake: make(chan struct{}, 1),
	}
}

func (h *hub) subscribe(channel string, f func(driver.Notice)) (stop func()) {
	l := adapter.NewListener(f)
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[channel]
	if t == nil {
		t = &topic{name: channel}
		h.topics[channel] = t
	}
	t.listeners = t.listeners.With(l)
	if t.confirmed {
		go l.Confirmed(false) // not from here: our caller may hold what f wants
	}
	h.touch(t)
	if !h.managing && !h.closed {
		h.managing = true
		go h.manage()
	}
	return func() { h.unsubscribe(t, l) }
}

// count returns how many listen to a channel.
func (h *hub) count(channel string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[channel]; t != nil {
		return len(t.listeners)
	}
	return 0
}

func (h *hub) unsubscribe(t *topic, l *adapter.Listener) {
	l.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	t.listeners = t.listeners.Without(l)
	if len(t.listeners) == 0 && h.topics[t.name] == t {
		h.touch(t)
	}
}

// touch makes the manager look at t. h.mu is held.
func (h *hub) touch(t *topic) {
	h.dirty[t.name] = t
	h.poke()
}

func (h *hub) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// A link is one connection for subscriptions. ps and what follows it belong to
// the manager; the rest is guarded by hub.mu.
type link struct {
	ps      *redis.PubSub
	node    *redis.Client
	ctx     context.Context // ends when the link is dropped
	cancel  context.CancelFunc
	reading bool

	life    life
	topics  map[string]*topic
	joining map[string]int // confirmations that are to come, by channel
	leaving map[string]int
	heard   bool // anything, ever
	dropped bool
}

// read delivers what arrives on a connection until it fails.
func (h *hub) read(l *link) {
	for {
		var v any
		err := contained(func() (err error) {
			v, err = l.ps.Receive(l.ctx)
			return err
		})
		if err != nil {
			h.fail(l, err)
			return
		}
		switch v := v.(type) {
		case *redis.Subscription:
			h.confirm(l, v)
		case *redis.Message:
			for _, x := range h.listeners(l, v.Channel) {
				x.Message(v.Payload)
			}
		default: // a pong
			h.listeners(l, "")
		}
	}
}

// listeners notes that something was heard and returns who listens to channel.
func (h *hub) listeners(l *link, channel string) adapter.Listeners {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.life.heard()
	if t := l.topics[channel]; t != nil {
		return t.listeners
	}
	return nil
}

// confirm handles the server's word that a channel is subscribed or is not.
func (h *hub) confirm(l *link, s *redis.Subscription) {
	h.mu.Lock()
	l.heard = true
	l.life.heard()
	t := l.topics[s.Channel]
	var tell adapter.Listeners
	var back bool
	switch s.Kind {
	case "subscribe", "ssubscribe":
		// Only the last of several counts: the channel was left in between.
		if count(l.joining, s.Channel, -1) == 0 && t != nil {
			t.confirmed = true
			tell = t.listeners
			back, h.broken, h.attempt = h.broken, false, 0
		}
	default:
		if l.leaving[s.Channel] > 0 {
			count(l.leaving, s.Channel, -1)
		} else if t != nil { // the slot has moved to another node
			delete(l.topics, t.name)
			t.link, t.confirmed = nil, false
			h.touch(t)
		}
	}
	h.mu.Unlock()
	if back {
		h.d.breaks.All()
	}
	for _, x := range tell {
		x.Confirmed(true)
	}
}

// fail makes the manager drop the link.
func (h *hub) fail(l *link, err error) {
	h.mu.Lock()
	tell := l.heard && !l.dropped
	if !l.dropped {
		h.broken = h.broken || l.heard
		h.failed = append(h.failed, l)
		h.noteClosed(err)
		h.poke()
	}
	h.mu.Unlock()
	if tell {
		h.d.breaks.All()
	}
}

// count adds n to a counter, which does not exist when it is 0.
func count(m map[string]int, name string, n int) int {
	n += m[name]
	if n <= 0 {
		delete(m, name)
		return 0
	}
	m[name] = n
	return n
}
