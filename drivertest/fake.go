package drivertest

import (
	"bufio"
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
)

// answering serves connections like the server, but answers every script with an
// error, without running it. It returns its address.
func (e *env) answering(text string) (addr string) {
	e.Helper()
	return e.answeringTo("-"+text+"\r\n", "EVALSHA", "EVAL")
}

// answeringTo serves connections like the server, but answers some commands with
// something of its own.
func (e *env) answeringTo(own string, commands ...string) (addr string) {
	e.Helper()
	return e.serving(func(c, up net.Conn) {
		in, out := bufio.NewReader(c), bufio.NewReader(up)
		for {
			args, err := readRequest(in)
			if err != nil {
				return
			}
			reply := own
			if !slices.Contains(commands, strings.ToUpper(args[0])) {
				if _, err := up.Write(encode(args)); err != nil {
					return
				}
				if reply, err = readRaw(out); err != nil {
					return
				}
			}
			if _, err := c.Write([]byte(reply)); err != nil {
				return
			}
		}
	})
}

// refusing serves connections like the server, but refuses to subscribe to a
// channel, and to all that are asked for with the same request.
func (e *env) refusing(channel string) (addr string) {
	e.Helper()
	return e.serving(func(c, up net.Conn) {
		relay(c, up, func(args []string) []string {
			if slices.Contains(args, channel) && strings.EqualFold(args[0], "SUBSCRIBE") {
				return args[:1] // which is an error, in its place among the answers
			}
			return args
		})
	})
}

// relay passes answers on as they come, and requests as edit has them, until
// either connection ends.
func relay(c, up net.Conn, edit func(args []string) []string) {
	go func() {
		_, _ = io.Copy(c, up)
		c.Close()
	}()
	for in := bufio.NewReader(c); ; {
		args, err := readRequest(in)
		if err != nil {
			return
		}
		if _, err := up.Write(encode(edit(args))); err != nil {
			return
		}
	}
}

// serving has a function serve each connection, with one of its own to the server.
// Both are closed at the end of the function, and when the test is over. It
// returns the address.
func (e *env) serving(serve func(c, up net.Conn)) (addr string) {
	e.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	e.Cleanup(func() {
		cancel()
		l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				up, err := e.at.Dial(ctx)
				if err != nil {
					return
				}
				defer up.Close()
				defer context.AfterFunc(ctx, func() {
					c.Close()
					up.Close()
				})()
				serve(c, up)
			})
		}
	})
	return l.Addr().String()
}
