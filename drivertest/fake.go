package drivertest

import (
	"bufio"
	"context"
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
			wg.Go(func() { e.answer(ctx, c, own, commands) })
		}
	})
	return l.Addr().String()
}

func (e *env) answer(ctx context.Context, c net.Conn, own string, commands []string) {
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
}
