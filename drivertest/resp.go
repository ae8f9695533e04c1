package drivertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// client is a connection to the server itself, for looking at it.
type client struct {
	tb testing.TB
	c  net.Conn
	r  *bufio.Reader
}

func newClient(tb testing.TB, dial func(context.Context) (net.Conn, error), admin Admin) *client {
	tb.Helper()
	c, err := dial(context.Background())
	if err != nil {
		tb.Fatalf("drivertest: cannot reach the server: %v", err)
	}
	tb.Cleanup(func() { c.Close() })
	cl := &client{tb: tb, c: c, r: bufio.NewReader(c)}
	if admin.User != "" {
		cl.do("AUTH", admin.User, admin.Password)
	}
	return cl
}

// do sends a command and returns the text of its reply, or of the last element
// if the reply is a list.
func (c *client) do(args ...string) string {
	c.tb.Helper()
	_ = c.c.SetDeadline(time.Now().Add(patience))
	if _, err := c.c.Write(encode(args)); err != nil {
		c.tb.Fatalf("%v: %v", args, err)
	}
	raw, err := readRaw(c.r)
	if err != nil {
		c.tb.Fatalf("%v: %v", args, err)
	}
	switch raw[0] {
	case '-':
		c.tb.Fatalf("%v: the server answered %q", args, raw)
	case '$':
		_, text, _ := strings.Cut(raw, "\r\n")
		return strings.TrimSuffix(text, "\r\n")
	}
	lines := strings.Split(strings.TrimSuffix(raw, "\r\n"), "\r\n")
	last := lines[len(lines)-1]
	switch {
	case strings.HasPrefix(last, "$-1"), strings.HasPrefix(last, "*"), strings.HasPrefix(last, "_"):
		return ""
	case strings.HasPrefix(last, ":"), strings.HasPrefix(last, "+"):
		return last[1:]
	}
	return last
}

func encode(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// readRaw reads one message of RESP2 or RESP3 as it is.
func readRaw(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	n := 0
	switch line[0] {
	case '$', '*', '%', '~', '>', '=':
		if n, err = strconv.Atoi(strings.TrimSpace(line[1:])); err != nil {
			return "", fmt.Errorf("drivertest: not a reply: %q", line)
		}
	}
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		b := make([]byte, n+2)
		_, err := io.ReadFull(r, b)
		return line + string(b), err
	case '%':
		n *= 2
	}
	for range n {
		element, err := readRaw(r)
		if err != nil {
			return "", err
		}
		line += element
	}
	return line, nil
}

// readRequest reads one request, an array of strings.
func readRequest(r *bufio.Reader) ([]string, error) {
	raw, err := readRaw(r)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(strings.NewReader(raw))
	head, _ := in.ReadString('\n')
	n, err := strconv.Atoi(strings.TrimSpace(head[1:]))
	if head[0] != '*' || err != nil || n < 1 {
		return nil, fmt.Errorf("drivertest: not a request: %q", raw)
	}
	args := make([]string, n)
	for i := range args {
		element, err := readRaw(in)
		if err != nil {
			return nil, err
		}
		_, text, _ := strings.Cut(element, "\r\n")
		args[i] = strings.TrimSuffix(text, "\r\n")
	}
	return args, nil
}
