package redlatchgoredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/adapter"
)

// quiet is how long a connection may be silent before it is asked for a sign of
// life, and then again before it is given up.
const quiet = 3 * time.Second

var (
	errSilent   = errors.New("redlatchgoredis: the server has fallen silent")
	errReplaced = errors.New("redlatchgoredis: go-redis has connected anew by itself")
)

// A link is one connection for subscriptions. One goroutine connects, writes and
// closes, another one reads. The methods of a PubSub wait for whoever writes,
// Receive too, except while it waits for an answer.
//
// Each channel is asked for with a request of its own, and a server answers in
// order. So an error is the answer to the oldest request. With several channels in
// one request, a server that refuses one of them would refuse all.
type link struct {
	h      *hub
	node   *redis.Client
	ps     *redis.PubSub
	ctx    context.Context //nolint:containedctx // bounds connecting, and ends when the link is dropped
	cancel context.CancelFunc
	wake   chan struct{} // one slot; tells the writer that there is work, or an end

	// Guarded by hub.mu.
	topics  map[string]*topic
	asks    []ask          // to be sent
	sent    []ask          // to be answered
	open    map[string]int // how many of both are about a channel
	sign    time.Time      // when the server last said something, or was asked first since then
	heard   bool           // anything, ever
	dropped bool
}

// An ask is what a server is asked for: the subscription of a channel, its end, or
// a sign of life.
type ask struct {
	verb    verb
	channel string
}

type verb int

const (
	subscribe verb = iota
	unsubscribe
	ping
)

// ended is a context that is over. It keeps go-redis from connecting by itself
// when a connection fails, which takes time, subscribes to all channels with one
// request, and would tell nobody. A dialer that minds no context, as that of
// go-redis for TLS, connects all the same: then there are confirmations that the
// link has not asked for.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// connect returns a new link to a node; it is not yet established. h.mu is held.
func (h *hub) connect(node *redis.Client) *link {
	ctx, cancel := h.d.patient(context.Background())
	l := &link{
		h: h, node: node, ps: node.Subscribe(ctx), ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1),
		topics: make(map[string]*topic), open: make(map[string]int),
	}
	h.links[node] = l
	go l.write()
	return l
}

// drop gives up a link. Its channels are to be subscribed anew. h.mu is held.
func (h *hub) drop(l *link) {
	l.dropped = true
	delete(h.links, l.node)
	for _, t := range l.topics {
		t.leave() // the reader may have a confirmation in hand
		h.touch(t)
	}
	l.cancel()
	poke(l.wake)
}

// ask has the writer ask for something. h.mu is held.
func (l *link) ask(v verb, channel string) {
	l.asks = append(l.asks, ask{v, channel})
	l.open[channel]++
	poke(l.wake)
}

// write sends what is asked for until the link is dropped or fails.
func (l *link) write() {
	defer func() { _ = l.ps.Close() }() // the reader ends by it
	ctx := l.ctx
	for {
		a, err := l.next()
		if err == nil {
			err = contained(func() error { return l.send(ctx, a) })
		}
		if err != nil {
			l.fail(err)
			return
		}
		if ctx != ended { // now it is connected
			ctx = ended
			l.h.mu.Lock()
			l.sign = time.Now()
			l.h.mu.Unlock()
			go l.read()
		}
	}
}

// next waits until there is something to be sent. It returns an error if there
// never will be.
func (l *link) next() (ask, error) {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	for !l.dropped {
		silence := time.Since(l.sign)
		switch {
		case len(l.sent) > 0 && silence >= quiet:
			return ask{}, errSilent
		case len(l.asks) > 0:
			a := l.asks[0]
			l.asks = l.asks[1:]
			if len(l.sent) == 0 {
				l.sign = time.Now()
			}
			l.sent = append(l.sent, a)
			return a, nil
		case silence >= quiet:
			l.ask(ping, "")
		default:
			l.h.mu.Unlock()
			timer.Reset(quiet - silence)
			select {
			case <-l.wake:
			case <-timer.C:
			}
			l.h.mu.Lock()
		}
	}
	return ask{}, redis.ErrClosed
}

// send writes a request. It may take as long as a server may be silent: while it
// does, the reader has to wait, and nobody else looks at the link.
func (l *link) send(ctx context.Context, a ask) error {
	ctx, cancel := context.WithTimeout(ctx, quiet) // go-redis minds the deadline also of what has ended
	defer cancel()
	switch {
	case a.verb == ping:
		return l.ps.Ping(ctx)
	case a.verb == subscribe && l.h.sharded:
		return l.ps.SSubscribe(ctx, a.channel)
	case a.verb == subscribe:
		return l.ps.Subscribe(ctx, a.channel)
	case l.h.sharded:
		return l.ps.SUnsubscribe(ctx, a.channel)
	default:
		return l.ps.Unsubscribe(ctx, a.channel)
	}
}

// read delivers what arrives on a connection until it fails.
func (l *link) read() {
	for {
		var v any
		err := contained(func() (err error) {
			v, err = l.ps.Receive(ended)
			return err
		})
		var refusal redis.Error
		if err == nil {
			err = l.deliver(v)
		}
		switch {
		case err == nil:
		case !errors.As(err, &refusal) || errors.Is(err, redis.Nil) || !l.refused():
			l.fail(err)
			return
		}
	}
}

// deliver returns an error if the link has to be given up.
func (l *link) deliver(v any) error {
	switch v := v.(type) {
	case *redis.Subscription:
		return l.confirmed(v)
	case *redis.Message:
		for _, x := range l.listeners(v.Channel) {
			x.Message(v.Payload)
		}
	case *redis.Pong:
		l.h.mu.Lock()
		defer l.h.mu.Unlock()
		if !l.answered(ask{ping, ""}) {
			return errReplaced
		}
	}
	return nil
}

// listeners notes that something was heard and returns who listens to channel.
func (l *link) listeners(channel string) adapter.Listeners {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.sign = time.Now()
	if t := l.topics[channel]; t != nil {
		return t.listeners
	}
	return nil
}

// answered notes an answer. It is false if a was not the oldest request. h.mu is
// held.
func (l *link) answered(a ask) bool {
	l.sign, l.heard = time.Now(), true
	if len(l.sent) == 0 || l.sent[0] != a {
		return false
	}
	l.sent = l.sent[1:]
	if l.open[a.channel]--; l.open[a.channel] == 0 {
		delete(l.open, a.channel)
	}
	return true
}

// confirmed handles the server's word that a channel is subscribed or is not.
func (l *link) confirmed(s *redis.Subscription) error {
	h := l.h
	h.mu.Lock()
	var tell adapter.Listeners
	var back bool
	verb := unsubscribe
	if s.Kind == "subscribe" || s.Kind == "ssubscribe" {
		verb = subscribe
	}
	wanted := l.answered(ask{verb, s.Channel})
	if verb == subscribe && !wanted {
		h.mu.Unlock()
		return errReplaced
	}
	// Only the last of several answers counts: the channel was left in between.
	if t := l.topics[s.Channel]; t != nil && l.open[s.Channel] == 0 {
		switch {
		case verb == subscribe:
			t.confirmed, t.refused, tell = true, rest{}, t.listeners
			back, h.broken = h.broken, false
			delete(h.rests, l.node)
		case !wanted: // the slot has moved to another node
			t.leave()
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
	return nil
}

// refused handles an error that the server answered with. It is false if nothing
// was asked.
func (l *link) refused() bool {
	h := l.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(l.sent) == 0 {
		return false
	}
	a := l.sent[0]
	l.answered(a)
	if t := l.topics[a.channel]; t != nil && l.open[a.channel] == 0 { // else a later answer counts
		t.refused = t.refused.after()
		t.leave()
		h.touch(t)
	}
	return true
}

// fail drops the link.
func (l *link) fail(err error) {
	h := l.h
	h.mu.Lock()
	tell := l.heard && !l.dropped
	if !l.dropped {
		h.broken = h.broken || l.heard
		h.failed(l.node, err)
		h.drop(l)
	}
	h.mu.Unlock()
	if tell {
		h.d.breaks.All()
	}
}
