package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

const (
	// messages is how many are published: the server's CPU time comes in hundredths of
	// a second.
	messages = 100
	// channelsEach is how many channels one connection listens to, which says what one
	// costs.
	channelsEach = 100_000
)

// links has N plain connections that listen to one channel, to which messages are
// published.
func (c *costMeter) links() error {
	ctx := context.Background()
	if err := c.server.rdb.ConfigSet(ctx, "maxclients", fmt.Sprint(crowdCosts+1000)).Err(); err != nil {
		return err
	}
	was, err := c.possessions()
	if err != nil {
		return err
	}
	conns := make([]net.Conn, c.N)
	if err := eachOf(c.N, func(i int) (err error) { conns[i], err = dialPlain(c.Addr, "PING", "+PONG"); return err }); err != nil {
		return err
	}
	is, err := c.possessions()
	if err != nil {
		return err
	}
	c.got.ServerBytes = (is.server - was.server) / float64(c.N)
	var heard atomic.Int64
	const channel = "redlatch-bench"
	if err := eachOf(c.N, func(i int) error { return listen(conns[i], channel, &heard) }); err != nil {
		return err
	}
	before, err := c.server.counters()
	if err != nil {
		return err
	}
	for n := range messages {
		if err := c.server.rdb.Publish(ctx, channel, "0").Err(); err != nil {
			return err
		}
		for end := time.Now().Add(time.Minute); heard.Load() < int64(c.N*(n+1)); time.Sleep(100 * time.Microsecond) {
			if time.Now().After(end) {
				return fmt.Errorf("%d of %d have heard %d messages", heard.Load(), c.N, n+1)
			}
		}
	}
	after, err := c.server.counters()
	if err != nil {
		return err
	}
	c.got.Publish = 1e6 * after.minus(before).cpu / messages
	if c.N > fewCosts {
		return nil // so much comes and goes with so many that one channel cannot be seen
	}
	return c.subscriptions(ctx)
}

// subscriptions measures what one channel of a connection costs that has very
// many.
func (c *costMeter) subscriptions(ctx context.Context) error {
	was, err := c.possessions()
	if err != nil {
		return err
	}
	listener := c.server.rdb.Subscribe(ctx)
	defer listener.Close()
	for i := 0; i < channelsEach; i += 1000 {
		names := make([]string, 1000)
		for k := range names {
			names[k] = fmt.Sprintf("redisson_lock__channel:{wanted:%d}", i+k)
		}
		if err := listener.Subscribe(ctx, names...); err != nil {
			return err
		}
		for range names {
			if _, err := listener.Receive(ctx); err != nil {
				return err
			}
		}
	}
	is, err := c.possessions()
	if err != nil {
		return err
	}
	c.got.Subscription = (is.server - was.server) / channelsEach
	return nil
}

// dialPlain connects, and says something that has a short answer.
func dialPlain(addr, say, want string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, say+"\r\n"); err != nil {
		return nil, err
	}
	answer := make([]byte, len(want)+2)
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != want+"\r\n" {
		return nil, fmt.Errorf("%q, %w", answer, err)
	}
	return conn, nil
}

// listen subscribes, and counts the messages that come until the process ends.
func listen(conn net.Conn, channel string, heard *atomic.Int64) error {
	if _, err := io.WriteString(conn, "SUBSCRIBE "+channel+"\r\n"); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(conn, 512)
	// An array of three: the kind, the channel, and a number or the message. A length
	// is before each text.
	next := func(n int) (err error) {
		for range n {
			if _, err = lines.ReadSlice('\n'); err != nil {
				return err
			}
		}
		return nil
	}
	if err := next(6); err != nil {
		return err
	}
	go func() {
		for next(7) == nil {
			heard.Add(1)
		}
	}()
	return nil
}
