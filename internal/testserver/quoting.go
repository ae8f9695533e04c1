package testserver

import (
	"context"
	"net"
	"strings"
	"testing"
)

// Quoting returns the address of what is no server: it refuses whatever it is
// sent, and quotes it.
func Quoting(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		_ = l.Close()
		cancel()
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { _ = conn.Close() }) // go-redis 9.19 does not close what was refused
			go quote(conn)
		}
	}()
	return l.Addr().String()
}

func quote(conn net.Conn) {
	defer conn.Close()
	line := make([]byte, 4096)
	for {
		n, err := conn.Read(line)
		if err != nil {
			return
		}
		said := strings.Join(strings.Fields(string(line[:n])), " ")
		// As many refusals as there are commands.
		refusal := "-ERR what is that: " + said + "\r\n"
		if _, err := conn.Write([]byte(strings.Repeat(refusal, strings.Count(said, "*")))); err != nil {
			return
		}
	}
}
