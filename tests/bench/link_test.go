package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWhatIsSentTogetherIsDelayedTogether(t *testing.T) {
	t.Parallel()
	fds := func() (int, int) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range pair {
			t.Cleanup(func() { _ = unix.Close(fd) })
			if err := unix.SetNonblock(fd, true); err != nil {
				t.Fatal(err)
			}
		}
		return pair[0], pair[1]
	}
	client, from := fds()
	to, server := fds()
	w := way{from: from, to: to, delay: 2 * time.Millisecond}
	began, buf := time.Now(), make([]byte, 100)
	at := func(ms int64) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	for n, text := range []string{"together", "later"} {
		if _, err := unix.Write(client, []byte(text)); err != nil {
			t.Fatal(err)
		}
		w.read(at(int64(n)), buf)
	}
	for _, c := range []struct {
		at   int64
		want string
	}{{1, ""}, {2, "together"}, {2, ""}, {3, "later"}, {9, ""}} {
		w.write(at(c.at))
		n, err := unix.Read(server, buf)
		if errors.Is(err, unix.EAGAIN) {
			n = 0
		} else if err != nil {
			t.Fatal(err)
		}
		if got := string(buf[:n]); got != c.want {
			t.Errorf("after %d ms arrives %q, want %q", c.at, got, c.want)
		}
	}
}

// linkTo returns a link to a server that does this with each connection. Both end
// with the test.
func linkTo(t *testing.T, delay time.Duration, serve func(net.Conn)) *link {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	l, err := newLink(server.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

// A benchmark that loses a byte hangs, or measures something else.
func TestALinkLosesNothing(t *testing.T) {
	t.Parallel()
	l := linkTo(t, time.Millisecond, func(c net.Conn) { _, _ = io.Copy(c, c) })
	sent := bytes.Repeat([]byte("all that was sent "), 1<<18) // more than the buffers of all sockets take
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() {
			c, err := net.Dial("tcp", l.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			go func() { _, _ = c.Write(sent) }()
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("the answer is another one, %v", err)
			}
		})
	}
	clients.Wait()
}

func TestALinkDelaysRequests(t *testing.T) {
	t.Parallel()
	const delay = 500 * time.Microsecond
	l := linkTo(t, delay, func(c net.Conn) {
		buf := make([]byte, 100)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			_, _ = c.Write([]byte("+PONG\r\n"))
		}
	})
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		asked := time.Now()
		if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 7)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(asked); took < delay {
			t.Errorf("a round trip of %v", took)
		}
	}
}
