// Package faultnet is the project's fault proxy: it stands between a client and
// a Redis or Valkey server, understands requests and replies (RESP2 and RESP3),
// and loses, delays, holds or duplicates exactly the ones that a rule picks.
//
// It runs over net.Pipe inside a [testing/synctest] bubble, where the Proxy must
// be made inside the bubble, as well as over TCP with real servers.
//
// What a client has sent is forwarded even when its connection is closed before
// the request's turn, as a server runs what a closed socket had sent. Only
// [Hold], a black hole and [Proxy.Close] keep a request from the server.
//
// Replies are matched to requests by their order. CLIENT REPLY OFF and SKIP,
// MONITOR and SYNC, which break that order, are not supported.
package faultnet

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// Proxy forwards any number of client connections to one server. Safe for
// concurrent use.
type Proxy struct {
	dial   func(ctx context.Context) (net.Conn, error)
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	hole   atomic.Bool
	oneWay atomic.Bool

	mu        sync.Mutex // never held across I/O or a rule
	rule      func(Request) Action
	closed    bool
	listeners []net.Listener
	conns     map[*conn]struct{}
	lastConn  int
	lastN     int64
	record    bool
	log       []Request
}

// New returns a proxy to the server that dial reaches. dial is called for every
// client connection, possibly by several goroutines at once, and must return
// when its ctx ends. Nothing is dialed yet.
func New(dial func(ctx context.Context) (net.Conn, error)) *Proxy {
	p := &Proxy{dial: dial, conns: make(map[*conn]struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Dial returns the client's end of a new connection through the proxy, a
// net.Pipe. It fails when the server cannot be reached, except in a black hole
// (see [Proxy.Blackhole]), and with [net.ErrClosed] after Close.
func (p *Proxy) Dial(ctx context.Context) (net.Conn, error) {
	var up net.Conn
	if !p.hole.Load() {
		var err error
		if up, err = p.dial(ctx); err != nil {
			return nil, err
		}
	}
	near, far := net.Pipe()
	if !p.serve(far, up) {
		return nil, net.ErrClosed
	}
	return near, nil
}

// Listen also serves clients on a free TCP port of 127.0.0.1, until Close, and
// returns its "host:port". A client is disconnected when the server cannot be
// reached.
func (p *Proxy) Listen() (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		l.Close()
		return "", net.ErrClosed
	}
	p.listeners = append(p.listeners, l)
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.accept(c) })
		}
	})
	return l.Addr().String(), nil
}

func (p *Proxy) accept(client net.Conn) {
	var up net.Conn
	if !p.hole.Load() {
		var err error
		if up, err = p.dial(p.ctx); err != nil {
			client.Close()
			return
		}
	}
	p.serve(client, up)
}

// serve starts a connection; up is nil in a black hole. On false, after Close,
// both ends are closed.
func (p *Proxy) serve(client, up net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		client.Close()
		if up != nil {
			up.Close()
		}
		return false
	}
	p.lastConn++
	c := newConn(p, p.lastConn, client)
	p.conns[c] = struct{}{}
	c.start(up)
	return true
}

func (p *Proxy) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// SetRule makes f decide about every complete client request from now on; nil
// passes all. f is called in the order of the requests of a connection, and by
// several goroutines at once for several connections. A connection's requests wait
// while f runs, and Close waits for f to return, so f must not call Close. In a
// black hole f is called as well, but its action has no effect.
func (p *Proxy) SetRule(f func(Request) Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = f
}

// judge numbers the request, logs it, and asks the rule.
func (p *Proxy) judge(conn int, args []string) (Request, Action) {
	p.mu.Lock()
	p.lastN++
	r := Request{Conn: conn, N: p.lastN, Args: args}
	if p.record {
		p.log = append(p.log, r)
	}
	rule := p.rule
	p.mu.Unlock()
	if rule == nil {
		return r, Pass
	}
	return r, rule(r)
}

// Record starts (true) or stops (false) the log that [Proxy.Requests] returns.
// What is logged already stays.
func (p *Proxy) Record(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record = on
}

// Requests returns the logged requests in the order of their N, those that
// vanished or were held included.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

// Blackhole(true) silences both directions: requests and replies vanish, and no
// connection is closed; new connections are accepted and silent. After
// Blackhole(false) a connection that lost nothing works again; one that lost a
// request or a reply stays silent in that direction until it is closed, since
// a stream cannot skip bytes.
func (p *Proxy) Blackhole(on bool) { p.hole.Store(on) }

// OneWay is [Proxy.Blackhole] for one direction: requests reach the server, and
// replies and pushes vanish.
func (p *Proxy) OneWay(on bool) { p.oneWay.Store(on) }

// BreakAll closes every client connection. What the clients had sent is still
// forwarded, delayed requests too; replies that were not delivered are lost.
// New connections are not affected.
func (p *Proxy) BreakAll() {
	for _, c := range p.all() {
		c.client.Close()
	}
}

func (p *Proxy) all() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		all = append(all, c)
	}
	return all
}

// Close ends the proxy: listeners and connections of both sides are closed,
// delayed requests are not forwarded any more, and all goroutines have ended
// when it returns. Further calls do nothing.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	listeners := p.listeners
	p.listeners = nil
	p.mu.Unlock()

	p.cancel()
	for _, l := range listeners {
		l.Close()
	}
	for _, c := range p.all() {
		c.abort()
	}
	p.wg.Wait()
}
