package testserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// ReplyError is an error that the server replied with, such as "NOSCRIPT No
// matching script".
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// client is a RESP2 connection for a test's own questions.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

// do sends one command and reads its reply. After an error that is not a
// ReplyError the connection is of no use.
func (to *client) do(limit time.Duration, args ...string) (any, error) {
	if err := to.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(to.conn, b.String()); err != nil {
		return nil, err
	}
	v, err := to.read()
	if err != nil {
		return nil, err
	}
	if e, ok := v.(ReplyError); ok {
		return nil, e
	}
	return v, nil
}

func (to *client) read() (any, error) {
	line, err := to.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, fmt.Errorf("testserver: an empty line for a reply")
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return rest, nil
	case '-':
		return ReplyError(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return nil, fmt.Errorf("testserver: reply %q: %w", line, err)
	}
	switch {
	case n < 0:
		return nil, nil //nolint:nilnil // a null reply is a value like others
	case line[0] == '$':
		b := make([]byte, n+2)
		_, err := io.ReadFull(to.in, b)
		return string(b[:n]), err
	case line[0] == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = to.read(); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("testserver: reply %q is not RESP2", line)
}
