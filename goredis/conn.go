package goredis

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// A conn is a connection of go-redis that can be broken off from outside, because of what was sent over it last. go-redis
// notices that as it notices a time-out: it closes the connection, and returns.
type conn struct {
	net.Conn

	of *visits

	mu     sync.Mutex // guards what follows
	last   []byte     // the end of what was written last
	wrote  uint64     // the tick of that
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

// hook implements redis.Hook: it makes the connections of a client ours.
type hook struct{ of *visits }

func (h hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := next(ctx, network, addr)
		if err != nil || nc == nil {
			return nc, err
		}
		c := &conn{Conn: nc, of: h.of}
		h.of.opened(c)
		if socket, ok := nc.(syscall.Conn); ok {
			return sysConn{c, socket}, nil
		}
		return c, nil
	}
}

func (hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
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
	return c.Conn.SetWriteDeadline(t)
}

// Write follows, with the request.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.writtenLocked()
	c.last = append(c.last[:0], b[max(len(b)-tail, 0):]...)
	c.wrote = c.of.ticks.Load()
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
	c.of.closed(c)
	c.mu.Lock()
	c.writtenLocked()
	c.mu.Unlock()
	return c.Conn.Close()
}

// breakOff ends the wait for an answer, if request was sent last, at some tick or later. It returns whether it was.
func (c *conn) breakOff(request []byte, since uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken || c.wrote < since || !bytes.HasSuffix(c.last, request) {
		return false
	}
	c.breakOffLocked()
	return true
}

// breakHandshake ends a handshake that has been without an answer since some tick.
func (c *conn) breakHandshake(since uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrote <= since && handshakes(c.last) {
		c.breakOffLocked()
	}
}

func (c *conn) breakOffLocked() {
	c.broken = true
	_ = c.Conn.SetDeadline(past) // an error: it is closed
}

// handshakes says whether a request is one of those with which go-redis begins.
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

// ending returns the end of a request, as go-redis writes it and a conn remembers it.
func ending(script string, keys, args []string) []byte {
	var b []byte
	word := func(w string) {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(w)), 10)
		b = append(append(append(b, "\r\n"...), w...), "\r\n"...)
	}
	word(script)
	word(strconv.Itoa(len(keys)))
	for _, w := range slices.Concat(keys, args) {
		word(w)
	}
	return b[max(len(b)-tail, 0):]
}
