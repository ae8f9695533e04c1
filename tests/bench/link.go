package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A link is a way to a server on which each round trip takes longer: what a
// client sends arrives later. It knows no protocol, so that what is sent together
// arrives together.
//
// One thread carries everything, with plain system calls. It shares the
// processors with those whom it serves. A goroutine for each direction, which the
// runtime wakes and puts to sleep, added 10 to 40 µs more to each round trip.
type link struct {
	addr   string
	delay  time.Duration
	server unix.SockaddrInet4
	listen int    // descriptor
	over   [2]int // a pipe: its reader is readable once the link is closed
	ended  chan struct{}

	// Owned by the thread.
	ways []*way
	buf  []byte
}

// A way carries bytes from one descriptor to another; two of them are a
// connection.
type way struct {
	from, to int
	back     *way // the other direction
	delay    time.Duration
	parcels  []parcel
	full     bool // to takes nothing at the moment
	broken   bool
}

// A parcel is what was sent, and when it is to arrive.
type parcel struct {
	due  time.Time
	what []byte
}

func newLink(server string, delay time.Duration) (*link, error) {
	to, err := netip.ParseAddrPort(server)
	if err != nil {
		return nil, err
	}
	l := &link{delay: delay, server: socketAddr(to), ended: make(chan struct{}), buf: make([]byte, 64<<10)}
	if l.listen, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err != nil {
		return nil, err
	}
	if l.addr, err = listenOn(l.listen); err != nil {
		_ = unix.Close(l.listen)
		return nil, err
	}
	if err = unix.Pipe(l.over[:]); err != nil {
		_ = unix.Close(l.listen)
		return nil, err
	}
	unix.CloseOnExec(l.over[0])
	unix.CloseOnExec(l.over[1])
	go l.run()
	return l, nil
}

func socketAddr(a netip.AddrPort) unix.SockaddrInet4 {
	return unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

// listenOn binds the descriptor to a free loopback port.
func listenOn(fd int) (addr string, err error) {
	unix.CloseOnExec(fd)
	at := socketAddr(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0))
	if err = unix.Bind(fd, &at); err != nil {
		return "", err
	}
	if err = unix.Listen(fd, 1024); err != nil {
		return "", err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(name.(*unix.SockaddrInet4).Port)), nil
}

// close ends the link and its connections.
func (l *link) close() {
	_, _ = unix.Write(l.over[1], []byte{0}) // to close it might not be noticed: another program may have it, too
	<-l.ended
	_ = unix.Close(l.over[0])
	_ = unix.Close(l.over[1])
}

// run is the whole life of the thread.
func (l *link) run() {
	runtime.LockOSThread() // for good: the thread goes with its precise timers
	defer close(l.ended)
	defer l.hangUp()
	preciseTimers()
	var waits []unix.PollFd
	for {
		var next time.Time
		waits, next = l.agenda(waits[:0])
		if _, err := pollUntil(waits, next); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if waits[0].Revents != 0 {
			return
		}
		now := time.Now()
		for n, w := range l.ways {
			got := waits[n+2].Revents
			if got&unix.POLLOUT != 0 {
				w.back.full = false
			}
			if got&^unix.POLLOUT != 0 {
				w.read(now, l.buf)
			}
		}
		for _, w := range l.ways {
			w.write(now)
		}
		if waits[1].Revents != 0 {
			l.accept()
		}
		l.ways = slices.DeleteFunc(l.ways, func(w *way) bool {
			gone := w.broken || w.back.broken
			if gone {
				w.broken = true
				_ = unix.Close(w.from)
			}
			return gone
		})
	}
}

// agenda says what to wait for: something to read on the pipe, for the listener
// and of each way, in this order, room to write, and the time at which something
// is due.
func (l *link) agenda(waits []unix.PollFd) (_ []unix.PollFd, next time.Time) {
	wait := func(fd int, events int16) {
		waits = append(waits, unix.PollFd{Fd: int32(fd), Events: events}) //nolint:gosec // descriptors are small
	}
	wait(l.over[0], unix.POLLIN)
	wait(l.listen, unix.POLLIN)
	for _, w := range l.ways {
		events := int16(unix.POLLIN)
		if w.back.full {
			events |= unix.POLLOUT // this end takes what goes back
		}
		wait(w.from, events)
		if len(w.parcels) > 0 && !w.full && (next.IsZero() || w.parcels[0].due.Before(next)) {
			next = w.parcels[0].due
		}
	}
	return waits, next
}

// read takes what the descriptor has, all of which arrives together.
func (w *way) read(now time.Time, buf []byte) {
	n, err := unix.Read(w.from, buf)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
	case err != nil || n == 0:
		w.broken = true // what is under way is lost, as those who could answer are
	default:
		w.parcels = append(w.parcels, parcel{now.Add(w.delay), slices.Clone(buf[:n])})
	}
}

// write brings what is due.
func (w *way) write(now time.Time) {
	for len(w.parcels) > 0 && !w.full && !w.broken && !w.parcels[0].due.After(now) {
		p := &w.parcels[0]
		n, err := unix.Write(w.to, p.what)
		switch {
		case err == unix.EAGAIN:
			w.full = true
		case err == unix.EINTR:
		case err != nil:
			w.broken = true
		case n < len(p.what):
			p.what = p.what[n:]
		default:
			w.parcels = slices.Delete(w.parcels, 0, 1)
		}
	}
}

// accept connects the next client with the server.
func (l *link) accept() {
	client, _, err := unix.Accept(l.listen)
	if err != nil {
		return
	}
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		_ = unix.Close(client)
		return
	}
	for _, fd := range []int{client, server} {
		unix.CloseOnExec(fd)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	err = unix.Connect(server, &l.server)
	for _, fd := range []int{client, server} {
		_ = unix.SetNonblock(fd, true)
	}
	if err != nil {
		_ = unix.Close(client)
		_ = unix.Close(server)
		return
	}
	there, back := &way{from: client, to: server, delay: l.delay}, &way{from: server, to: client}
	there.back, back.back = back, there
	l.ways = append(l.ways, there, back)
}

func (l *link) hangUp() {
	_ = unix.Close(l.listen)
	for _, w := range l.ways {
		_ = unix.Close(w.from)
	}
}
