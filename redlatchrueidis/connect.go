package redlatchrueidis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/adapter"
)

var errClosed = errors.New("redlatchrueidis: the driver is closed")

// A connector makes a client when it is needed and there is none: rueidis wants
// to reach a server when a client is made.
type connector struct {
	d       *Driver
	opt     rueidis.ClientOption
	foreign bool // the client is not ours to close
	dialled adapter.Dialled

	ready  atomic.Pointer[rueidis.Client]
	mu     sync.Mutex // guards all below
	flight *flight
	closed bool
	client rueidis.Client
}

// connector returns one for a client that is made with opt.
func (d *Driver) connector(opt rueidis.ClientOption) *connector {
	c := &connector{d: d}
	opt.DialCtxFn = c.dialer(opt.DialCtxFn, opt.DialFn)
	c.opt = opt
	return c
}

// A flight is one attempt to make a client.
type flight struct {
	done   chan struct{}
	client rueidis.Client
	err    error
}

// get returns the client, and if there is none takes part in one attempt to make
// it, until ctx ends.
func (c *connector) get(ctx context.Context) (rueidis.Client, error) {
	if p := c.ready.Load(); p != nil {
		return *p, nil
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	if c.client != nil {
		defer c.mu.Unlock()
		c.ready.Store(&c.client)
		return c.client, nil
	}
	f := c.flight
	if f == nil {
		f = &flight{done: make(chan struct{})}
		c.flight = f
		go c.fly(f)
	}
	c.mu.Unlock()

	select {
	case <-f.done:
		return f.client, f.err
	case <-ctx.Done():
		return nil, &notConnectedError{errors.New("the server does not answer")}
	case <-c.d.ctx.Done():
		return nil, errClosed
	}
}

// wait is get for those who have no context of their own.
func (c *connector) wait() (rueidis.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), max(c.opt.Dialer.Timeout, time.Second))
	defer cancel()
	return c.get(ctx)
}

func (c *connector) fly(f *flight) {
	client, err := rueidis.NewClient(c.opt)
	if err != nil && client != nil { // one that would go on trying
		client.Close()
		client = nil
	}
	c.mu.Lock()
	c.flight = nil
	late := c.closed
	if err == nil && !late {
		c.client = client
	}
	c.mu.Unlock()
	if late {
		if err == nil {
			client.Close()
		}
		client, err = nil, errClosed
	}
	f.client, f.err = client, err
	close(f.done)
}

func (c *connector) close() {
	c.mu.Lock()
	was := c.closed
	c.closed = true
	client := c.client
	c.ready.Store(nil)
	c.mu.Unlock()
	if client != nil && !was && !c.foreign {
		client.Close()
	}
}

// A notConnectedError says that there was no connection on which a script could
// have been sent.
type notConnectedError struct{ error }

// Unwrap hides time-outs: rueidis would replace them, and us with them.
func (e *notConnectedError) Unwrap() error {
	if errors.Is(e.error, os.ErrDeadlineExceeded) {
		return nil
	}
	return e.error
}

// dialer returns how our clients dial: as the caller wanted, but so that Close
// ends it, and with a connection that we watch.
func (c *connector) dialer(
	custom func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error),
	old func(string, *net.Dialer, *tls.Config) (net.Conn, error),
) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, addr string, dialer *net.Dialer, conf *tls.Config) (net.Conn, error) {
		limit := dialer.Timeout
		if limit <= 0 {
			limit = rueidis.DefaultDialTimeout
		}
		if end, ok := ctx.Deadline(); ok {
			limit = min(limit, time.Until(end)-time.Millisecond) // before ctx itself ends: see limit.Deadline
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		defer context.AfterFunc(c.d.ctx, cancel)()

		var made net.Conn
		var err error
		switch {
		case custom != nil:
			made, err = custom(ctx, addr, dialer, conf)
		case old != nil:
			made, err = old(addr, dialer, conf)
		case conf != nil:
			made, err = (&tls.Dialer{NetDialer: dialer, Config: conf}).DialContext(ctx, "tcp", addr)
		default:
			made, err = dialer.DialContext(ctx, "tcp", addr)
		}
		if err != nil {
			return nil, &notConnectedError{fmt.Errorf("cannot connect to %s: %w", addr, err)}
		}
		watched := &conn{Conn: made, of: c}
		c.dialled.Add(watched)
		return watched, nil
	}
}

// A conn watches a connection. The first thing that rueidis writes is the
// handshake, as a whole; whatever fails before the second has executed nothing.
type conn struct {
	net.Conn
	of     *connector
	writes atomic.Int32
	told   atomic.Bool
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.ended(err)
}

func (c *conn) Write(p []byte) (int, error) {
	if c.writes.Load() < 2 { // keeps the counter from overflowing
		c.writes.Add(1)
	}
	n, err := c.Conn.Write(p)
	return n, c.ended(err)
}

// Close is also how rueidis ends a connection that does not answer any more, and
// one to a server that lost its role.
func (c *conn) Close() error {
	_ = c.ended(net.ErrClosed)
	c.of.dialled.Remove(c)
	return c.Conn.Close()
}

// ended handles the end of the connection.
func (c *conn) ended(err error) error {
	switch {
	case err == nil:
		return nil
	case c.writes.Load() < 2:
		return &notConnectedError{err}
	case c.told.CompareAndSwap(false, true) && c.of.d.ctx.Err() == nil:
		c.of.d.lost()
	}
	return err
}

// unreachable says whether a client could not be made because of the servers,
// and not because of its options.
func unreachable(err error) bool {
	var nc *notConnectedError
	var ne net.Error
	_, reply := rueidis.IsRedisErr(err)
	return reply || rueidis.IsRedisNil(err) || errors.As(err, &nc) || errors.As(err, &ne) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, rueidis.ErrClosing) ||
		strings.Contains(err.Error(), "role is not master") // Sentinel, in a failover
}
