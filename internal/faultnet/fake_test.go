package faultnet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a tiny RESP server over net.Pipe. It answers each request before it
// reads the next one, so that it blocks on a client that does not read.
type fake struct {
	mu      sync.Mutex
	counts  map[string]int
	ran     []string // commands in the order of their execution
	dials   int
	refuse  bool
	subs    map[*fakeConn]map[string]bool
	openNow int
}

type fakeConn struct {
	net.Conn
	wmu    sync.Mutex
	resp3  bool
	name   string
	db     string
	server *fake
}

func newFake() *fake {
	return &fake{counts: map[string]int{}, subs: map[*fakeConn]map[string]bool{}}
}

func (s *fake) dial(context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	if s.refuse {
		return nil, errors.New("refused")
	}
	near, far := net.Pipe()
	s.openNow++
	go s.serve(&fakeConn{Conn: far, server: s, name: "nobody", db: "0"})
	return near, nil
}

func (s *fake) history() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.ran, ", ")
}

func (s *fake) count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[key]
}

func (s *fake) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openNow
}

func (s *fake) setRefuse(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = on
}

func readArgs(r *bufio.Reader) ([]string, error) {
	l, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	l = strings.TrimSpace(l)
	if !strings.HasPrefix(l, "*") {
		return strings.Fields(l), nil
	}
	n, _ := strconv.Atoi(l[1:])
	var args []string
	for range n {
		l, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _ := strconv.Atoi(strings.TrimSpace(l[1:]))
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args = append(args, string(b[:size]))
	}
	return args, nil
}

func (s *fake) serve(c *fakeConn) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.subs, c)
		s.openNow--
		s.mu.Unlock()
	}()
	r := bufio.NewReader(c)
	for {
		args, err := readArgs(r)
		if err != nil {
			return
		}
		reply := s.do(c, args)
		c.write(reply) // a failure does not stop a server from running what it has read
		if args[0] == "QUIT" {
			return
		}
	}
}

func (c *fakeConn) write(s string) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	_, _ = io.WriteString(c.Conn, s)
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func (s *fake) do(c *fakeConn, args []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, strings.Join(args, " "))
	mark := "*"
	if c.resp3 {
		mark = ">"
	}
	switch strings.ToUpper(args[0]) {
	case "HELLO":
		if args[1] == "3" {
			c.resp3 = true
			return "%2\r\n+server\r\n+fake\r\n+modules\r\n*1\r\n%1\r\n+a\r\n_\r\n"
		}
		return "*2\r\n+server\r\n+fake\r\n"
	case "AUTH":
		c.name = args[1]
		return "+OK\r\n"
	case "SELECT":
		c.db = args[1]
		return "+OK\r\n"
	case "WHO":
		return bulk(c.name + "@" + c.db)
	case "INCR", "EVAL", "EVALSHA":
		s.counts[args[1]]++
		return fmt.Sprintf(":%d\r\n", s.counts[args[1]])
	case "RAW": // replies with its argument
		return args[1]
	case "BAD":
		return "-ERR bad\r\n"
	case "SUBSCRIBE":
		out := ""
		if s.subs[c] == nil {
			s.subs[c] = map[string]bool{}
		}
		for _, ch := range args[1:] {
			if ch == "forbidden" {
				return out + "-NOPERM no\r\n"
			}
			s.subs[c][ch] = true
			out += mark + "3\r\n" + bulk("subscribe") + bulk(ch) + fmt.Sprintf(":%d\r\n", len(s.subs[c]))
		}
		return out
	case "UNSUBSCRIBE":
		out := ""
		chans := args[1:]
		if len(chans) == 0 {
			for ch := range s.subs[c] {
				chans = append(chans, ch)
			}
		}
		for _, ch := range chans {
			delete(s.subs[c], ch)
			out += mark + "3\r\n" + bulk("unsubscribe") + bulk(ch) + fmt.Sprintf(":%d\r\n", len(s.subs[c]))
		}
		if out == "" {
			out = mark + "3\r\n" + bulk("unsubscribe") + "$-1\r\n:0\r\n"
		}
		return out
	case "QUIT":
		return "+OK\r\n"
	case "PING":
		return "+PONG\r\n"
	}
	return "-ERR unknown\r\n"
}

// publish sends a message to every subscriber of ch.
func (s *fake) publish(ch, payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, chans := range s.subs {
		if chans[ch] {
			mark := "*"
			if c.resp3 {
				mark = ">"
			}
			go c.write(mark + "3\r\n" + bulk("message") + bulk(ch) + bulk(payload))
		}
	}
}

// peer is a client that a test plays.
type peer struct {
	tb testing.TB
	c  net.Conn
	r  *bufio.Reader
}

func newPeer(tb testing.TB, c net.Conn) *peer {
	tb.Helper()
	tb.Cleanup(func() { c.Close() })
	return &peer{tb: tb, c: c, r: bufio.NewReader(c)}
}

func encode(line string) string {
	args := strings.Fields(line)
	out := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		out += bulk(strings.NewReplacer(`\r`, "\r", `\n`, "\n", "~", " ").Replace(a))
	}
	return out
}

// send writes the requests in one piece; words are separated by spaces.
func (p *peer) send(lines ...string) {
	p.tb.Helper()
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(encode(l))
	}
	if _, err := io.WriteString(p.c, b.String()); err != nil {
		p.tb.Fatalf("send %q: %v", lines, err)
	}
}

// want reads exactly the bytes of text ("|" stands for a line end).
func (p *peer) want(text string) {
	p.tb.Helper()
	text = strings.ReplaceAll(text, "|", "\r\n")
	got := make([]byte, len(text))
	_ = p.c.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := io.ReadFull(p.r, got)
	if err != nil || string(got) != text {
		p.tb.Fatalf("read %q (%v), want %q", got[:n], err, text)
	}
}

// wantClosed expects the end of the connection, with nothing in front of it.
func (p *peer) wantClosed() {
	p.tb.Helper()
	_ = p.c.SetReadDeadline(time.Now().Add(time.Minute))
	b, err := io.ReadAll(p.r)
	var timeout net.Error
	if len(b) > 0 || errors.As(err, &timeout) && timeout.Timeout() {
		p.tb.Fatalf("read %q (%v), want the end of the connection", b, err)
	}
}

// wantSilence expects nothing for an hour (use inside a bubble).
func (p *peer) wantSilence() {
	p.tb.Helper()
	_ = p.c.SetReadDeadline(time.Now().Add(time.Hour))
	b, err := p.r.ReadByte()
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		p.tb.Fatalf("read %q (%v), want silence", b, err)
	}
}
