package main

import (
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A link is a way to a server on which each round trip takes longer: what a
// client sends arrives later. It knows no protocol, so that what is sent together
// arrives together.
type link struct {
	addr     string
	delay    time.Duration
	server   string
	listener net.Listener
	over     chan struct{}
	running  sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn // nil once closed
}

func newLink(server string, delay time.Duration) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{
		addr: listener.Addr().String(), delay: delay, server: server,
		listener: listener, over: make(chan struct{}), conns: []net.Conn{},
	}
	l.running.Go(l.accept)
	l.running.Go(l.keepTime)
	return l, nil
}

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() { l.connect(client) })
	}
}

// connect carries what client and server say until one of them has ended.
func (l *link) connect(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer server.Close()
	if !l.remember(client, server) {
		return
	}
	l.running.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	l.carry(client, server)
}

// remember is false once the link is closed.
func (l *link) remember(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		return false
	}
	l.conns = append(l.conns, conns...)
	return true
}

// A parcel is what was sent, and when it is to arrive.
type parcel struct {
	due  time.Time
	what []byte
}

// carry brings what client sends to server, late.
func (l *link) carry(client io.Reader, server io.Writer) {
	way := make(chan parcel, 4096)
	defer close(way)
	l.running.Go(func() {
		for p := range way {
			time.Sleep(time.Until(p.due))
			_, _ = server.Write(p.what) // if it fails, the server's answers end, and then the client's connection
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if n > 0 {
			way <- parcel{time.Now().Add(l.delay), slices.Clone(buf[:n])}
		}
		if err != nil {
			return
		}
	}
}

// keepTime makes timers of half a millisecond last that long: in a process that
// does nothing else they go off up to a millisecond late, which is the unit of
// what Go sleeps in then. It takes a tenth of a processor.
func (l *link) keepTime() {
	for {
		select {
		case <-l.over:
			return
		default:
		}
		pause := unix.Timeval{Usec: 40}
		_, _ = unix.Select(0, nil, nil, nil, &pause)
		runtime.Gosched() // looks at the timers
	}
}

func (l *link) close() {
	close(l.over)
	_ = l.listener.Close()
	l.mu.Lock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
	l.mu.Unlock()
	l.running.Wait()
}
