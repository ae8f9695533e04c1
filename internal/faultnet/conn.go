package faultnet

import (
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// grace is how long the server's end of a connection stays open for replies
// after its client has gone, on transports that cannot be closed by half.
const grace = time.Second

// order is one request on its way to the server.
type order struct {
	request Request
	action  Action
	raw     []byte
	due     time.Time // not before; zero: at once
}

// conn is one client connection and its connection to the server. Four
// goroutines move its bytes: readClient -> requests -> writeServer, and
// readServer -> replies -> writeClient.
type conn struct {
	p        *Proxy
	id       int
	client   net.Conn
	requests *queue[order]
	replies  *queue[[]byte]

	mu         sync.Mutex // never held across I/O
	up         net.Conn   // nil until dialed
	match      matcher
	silent     bool // nothing is delivered to the client any more
	deaf       bool // nothing is forwarded to the server any more
	clientGone bool
	serverGone bool
	drained    bool // client gone and all of its requests written
	aborted    bool
	running    int // goroutines
}

func newConn(p *Proxy, id int, client net.Conn) *conn {
	return &conn{p: p, id: id, client: client, requests: newQueue[order](), replies: newQueue[[]byte]()}
}

// start runs the connection; up may be nil. The caller holds p.mu, and p is not
// closed.
func (c *conn) start(up net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up = up
	c.run(c.readClient)
	c.run(c.writeServer)
	c.run(c.writeClient)
	if up != nil {
		c.run(func() { c.readServer(up) })
	}
}

// run starts one of the connection's goroutines; the proxy forgets the
// connection when the last one has ended. The caller holds c.mu.
func (c *conn) run(f func()) {
	c.running++
	c.p.wg.Go(func() {
		f()
		c.mu.Lock()
		c.running--
		last := c.running == 0
		c.mu.Unlock()
		if last {
			c.p.forget(c)
		}
	})
}

// abort closes everything at once.
func (c *conn) abort() {
	c.mu.Lock()
	c.aborted = true
	up := c.up
	c.mu.Unlock()
	c.requests.kill()
	c.replies.kill()
	c.client.Close()
	if up != nil {
		up.Close()
	}
}

func (c *conn) readClient() {
	defer func() {
		c.mu.Lock()
		c.clientGone = true
		c.mu.Unlock()
		c.requests.close()
		c.settle()
	}()
	in := newScanner(c.client)
	var handshake [][]byte
	for {
		args, raw, err := in.request()
		if err != nil {
			// Malformed requests end the connection too, as on a server.
			c.client.Close()
			return
		}
		if len(args) == 0 {
			continue // no reply is due; not worth a rule
		}
		o := order{raw: raw}
		o.request, o.action = c.p.judge(c.id, args)
		switch o.action.verb {
		case delay:
			o.due = time.Now().Add(o.action.wait)
		case hold:
			if c.isDeaf() {
				o.action = Pass // vanishes
			} else if !o.action.held.keep(c.p, o.request, raw, slices.Clone(handshake)) {
				o.action = Pass
			}
		case pass, dropReply, stallReply, duplicate: // forward sees to these
		}
		c.requests.push(o)
		if o.action.verb == hold {
			// What comes behind a held request is lost with its connection. It
			// is still read, because closing a TCP connection with unread bytes
			// would also destroy replies that are on their way to the client.
			_, _ = io.Copy(io.Discard, in.r)
			return
		}
		switch args[0] {
		case "AUTH", "HELLO", "SELECT", "READONLY":
			handshake = append(handshake, raw)
		}
	}
}

// isDeaf reports whether requests vanish, and remembers it if so.
func (c *conn) isDeaf() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = c.deaf || c.p.hole.Load()
	return c.deaf
}

func (c *conn) writeServer() {
	for c.forwardBatch() {
	}

	c.mu.Lock()
	up := c.up
	c.drained = true
	idle := c.match.idle()
	if up == nil {
		c.serverGone = true
	}
	c.mu.Unlock()
	switch half, canHalf := up.(interface{ CloseWrite() error }); {
	case up == nil:
		c.settle()
	case canHalf:
		// The server reads everything before it sees the end. A full close
		// could reset the connection and destroy requests it has not read.
		_ = half.CloseWrite()
	case idle:
		up.Close()
	default:
		time.AfterFunc(grace, func() { up.Close() })
	}
}

// forwardBatch forwards what is queued, with one write for all that may go now:
// a write for each request of a pipeline is slow. It returns false when the
// client is gone and everything is forwarded, or the proxy is closed.
func (c *conn) forwardBatch() bool {
	batch, ok := c.requests.pop()
	if !ok {
		return false
	}
	var out []byte
	for _, o := range batch {
		if time.Until(o.due) > 0 { // never for the zero due
			c.send(out)
			out = nil
			if !c.sleepUntil(o.due) {
				return false
			}
		}
		out = append(out, c.prepare(o)...)
	}
	c.send(out)
	return true
}

func (c *conn) send(out []byte) {
	if len(out) > 0 {
		_, _ = c.up.Write(out) // on failure readServer sees the end of the connection too
	}
}

func (c *conn) sleepUntil(due time.Time) bool {
	t := time.NewTimer(time.Until(due))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.p.ctx.Done():
		return false
	}
}

// prepare returns the bytes that go to the server for one request, none if it is
// held or vanishes, and notes the replies that are due for them.
func (c *conn) prepare(o order) []byte {
	if o.action.verb == hold {
		c.mu.Lock()
		cut := c.match.expectCut() && !c.silent
		c.mu.Unlock()
		if cut {
			c.replies.close()
		}
		return nil
	}
	if c.isDeaf() || !c.dialed() {
		return nil
	}
	c.mu.Lock()
	c.match.expect(o.request.Args, o.action.verb, false)
	if o.action.verb == duplicate {
		c.match.expect(o.request.Args, pass, true)
	}
	c.mu.Unlock()
	if o.action.verb == duplicate {
		o.raw = slices.Concat(o.raw, o.raw)
	}
	return o.raw
}

// dialed makes sure that there is a connection to the server: one that was
// accepted in a black hole has none yet. On false there is none to be had, and
// the client is disconnected. Only writeServer changes c.up after the start.
func (c *conn) dialed() bool {
	if c.up != nil {
		return true
	}
	up, err := c.p.dial(c.p.ctx)
	if err != nil {
		c.client.Close()
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted {
		up.Close()
		return false
	}
	c.up = up
	c.run(func() { c.readServer(up) })
	return true
}

func (c *conn) readServer(up net.Conn) {
	in := newScanner(up)
	for {
		f, err := in.frame()
		if err != nil {
			break
		}
		c.mu.Lock()
		v := c.match.take(f)
		c.silent = c.silent || v.stall || c.p.hole.Load() || c.p.oneWay.Load()
		silent := c.silent
		last := c.drained && c.match.idle()
		c.mu.Unlock()
		if !silent {
			if v.deliver {
				c.replies.push(f.raw)
			}
			if v.cut {
				c.replies.close()
			}
		}
		if last {
			break
		}
	}
	up.Close()
	c.mu.Lock()
	c.serverGone = true
	// The end of the server's connection vanishes in a black hole like
	// everything else.
	c.silent = c.silent || c.p.hole.Load() || c.p.oneWay.Load()
	c.mu.Unlock()
	c.settle()
}

// settle lets writeClient finish when nothing more can come for it: the server
// is gone, and the client either is too or may see that.
func (c *conn) settle() {
	c.mu.Lock()
	over := c.serverGone && (c.clientGone || !c.silent)
	c.mu.Unlock()
	if over {
		c.replies.close()
	}
}

func (c *conn) writeClient() {
	for {
		batch, ok := c.replies.pop()
		if !ok {
			break
		}
		if _, err := c.client.Write(slices.Concat(batch...)); err != nil {
			break
		}
	}
	c.replies.kill()
	c.client.Close()
}
