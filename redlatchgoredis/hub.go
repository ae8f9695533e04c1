package redlatchgoredis

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

// A hub holds the subscriptions of one kind. The manager, a goroutine, decides at
// which node each channel is subscribed; a [link], a connection with two
// goroutines, does it. There are goroutines only as long as there is a
// subscription.
//
// A connection that fails is dropped, and its channels are subscribed anew, at the
// node that has them then. A channel that the server refuses is asked for again,
// alone, and costs no other channel anything.
type hub struct {
	d       *Driver
	sharded bool
	route   route
	wake    chan struct{} // one slot; tells the manager that there is work

	mu       sync.Mutex // guards all below, the topics and the links
	topics   map[string]*topic
	dirty    map[string]*topic // what the manager has to look at
	links    map[*redis.Client]*link
	rests    map[*redis.Client]rest // nodes that failed since they last confirmed something; nil: the cluster
	broken   bool                   // a connection was lost since the last confirmation
	managing bool
	closed   bool // the client was closed: the end
}

// A topic is a channel that somebody listens to, or did until just now.
type topic struct {
	name      string
	listeners adapter.Listeners
	link      *link // where it is, or is about to be, subscribed
	confirmed bool
	since     time.Time // when somebody began to wait for the confirmation that is missing
	refused   rest
	resting   bool // until a timer touches it
}

// A rest is a pause after failures in a row.
type rest struct {
	failures int
	until    time.Time
}

// after returns the rest that another failure is followed by.
func (r rest) after() rest {
	return rest{r.failures + 1, time.Now().Add(adapter.Pause(r.failures))}
}

func newHub(d *Driver, sharded bool, r route) *hub {
	return &hub{
		d: d, sharded: sharded, route: r, wake: make(chan struct{}, 1),
		topics: make(map[string]*topic), dirty: make(map[string]*topic),
		links: make(map[*redis.Client]*link), rests: make(map[*redis.Client]rest),
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
	if len(t.listeners) == 0 {
		t.since = time.Now()
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

// unconfirmed returns how many channels somebody listens to that have not been
// confirmed for so long.
func (h *hub) unconfirmed(after time.Duration) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.topics {
		if len(t.listeners) > 0 && !t.confirmed && time.Since(t.since) >= after {
			n++
		}
	}
	return n
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
	poke(h.wake)
}

// leave takes t, which is not subscribed any more, from its link. h.mu is held.
func (t *topic) leave() {
	delete(t.link.topics, t.name)
	if t.confirmed {
		t.since = time.Now()
	}
	t.link, t.confirmed = nil, false
}

// poke wakes whoever waits for a channel with one slot.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
