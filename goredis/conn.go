package goredis

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

// A conn is a connection of go-redis that can be broken off from outside, because of what was sent over it last. go-redis
// notices that as it notices a time-out: it closes the connection, and returns.
type conn struct {
	net.Conn

	of *visits

	mu     sync.Mutex // guards what follows
	last   []byte     // the end of the request that was written last
	wrote  uint64     // the moment of that
	young  bool       // all requests so far were those of a handshake
	writes bool       // go-redis is about to write: counted in of.writing
	broken bool       // the wait for the answer has been broken off
}

// tail is how much of a request a conn remembers: its keys and arguments stand at its end.
const tail = 512

// A sysConn is a conn of a socket, which go-redis looks at before it uses the connection again.
type sysConn struct {
	*conn
	syscall.Conn
}

// hook implements redis.Hook: it makes the connections of a client ours, and learns which visits are in a handshake.
type hook struct{ of *visits }

func (h hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := next(ctx, network, addr)
		if err != nil || nc == nil {
			return nc, err
		}
		c := &conn{Conn: nc, of: h.of, young: true}
		h.of.opened(c)
		if socket, ok := nc.(syscall.Conn); ok {
			return sysConn{c, socket}, nil
		}
		return c, nil
	}
}

// ProcessHook sees our scripts, what the program sends, and what go-redis sends in a handshake, with the context of
// whoever it does that for.
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if _, script := cmd.(once); !script {
			h.of.handshakes(ctx)
		}
		return next(ctx, cmd)
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.of.handshakes(ctx)
		return next(ctx, cmds)
	}
}

// NetConn returns what is below, as that of a tls.Conn does.
func (c *conn) NetConn() net.Conn { return c.Conn }

// SetWriteDeadline comes first of all that go-redis does for a request.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.writes {
		c.writes = true
		c.of.writing.Add(1)
	}
	c.last, c.broken = c.last[:0], false // whoever sent what was last has done with it
	err := c.Conn.SetWriteDeadline(t)
	if err != nil {
		c.writtenLocked()
	}
	return err
}

// Write follows, with the request or, if that is long, with a part of it.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.writtenLocked()
	if len(c.last) == 0 {
		c.young = c.young && handshakes(b)
	}
	if rest := max(tail-len(b), 0); len(c.last) > rest {
		c.last = append(c.last[:0], c.last[len(c.last)-rest:]...)
	}
	c.last = append(c.last, b[max(len(b)-tail, 0):]...)
	c.wrote = c.of.moment.Add(1)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// writtenLocked says that go-redis is no longer about to write.
func (c *conn) writtenLocked() {
	if c.writes {
		c.writes = false
		c.of.writing.Add(-1)
	}
}

// Read fails as at the end of the input if a handshake was broken off: should that not have been the right one, go-redis
// begins it again.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && c.cut() {
		err = errCut
	}
	return n, err
}

func (c *conn) cut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken && c.young
}

var errCut = fmt.Errorf("goredis: the handshake was broken off for a caller that has left: %w", io.EOF)

// SetReadDeadline comes between the request and its answer.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.SetReadDeadline(c.unbrokenLocked(t))
}

// SetDeadline comes when go-redis looks whether there is an answer, and whether the connection is well.
func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.SetDeadline(c.unbrokenLocked(t))
}

// unbrokenLocked returns t, unless the connection has been broken off.
func (c *conn) unbrokenLocked(t time.Time) time.Time {
	if c.broken {
		return past
	}
	return t
}

// past is over.
var past = time.Unix(1, 0)

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.closed(weak.Make(c))
	c.mu.Lock()
	c.writtenLocked()
	c.mu.Unlock()
	return c.Conn.Close()
}

// sentAfter returns the moment at which a request was written that still waits for its answer, if that is after another
// moment: one that ends so or, with none, a step of a handshake. Else it returns 0.
func (c *conn) sentAfter(moment uint64, request []byte) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken || c.wrote < moment || request == nil && !c.young || !bytes.HasSuffix(c.last, request) {
		return 0
	}
	return c.wrote
}

// breakOff ends the wait for the answer to what was written at a moment.
func (c *conn) breakOff(wrote uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrote == wrote && len(c.last) > 0 {
		c.broken = true
		_ = c.Conn.SetDeadline(past) // an error: it is closed
	}
}

// handshakes says whether a request begins as one of those with which go-redis begins.
func handshakes(request []byte) bool {
	_, request, _ = bytes.Cut(request, []byte("\r\n"))
	_, request, _ = bytes.Cut(request, []byte("\r\n"))
	verb, _, _ := bytes.Cut(request, []byte("\r\n"))
	switch string(bytes.ToLower(verb)) {
	case "hello", "auth", "client", "select", "readonly":
		return true
	}
	return false
}

// ending returns the end of the request of a script, as go-redis writes it and a conn remembers it.
func ending(words []any) []byte {
	var b []byte
	for _, w := range words[1:] { // the first one may be written otherwise
		text := fmt.Sprint(w)
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(text)), 10)
		b = append(append(append(b, "\r\n"...), text...), "\r\n"...)
	}
	return b[max(len(b)-tail, 0):]
}
