package redlatchtest

import (
	"errors"
	"net"
	"sync"
)

var errStopped = errors.New("redlatchtest: the server is stopped")

// Stop stops the server: all connections end, and there are no new ones before
// [Server.Start]. The server keeps its data, and times to live go on. What was
// sent while the server was paused is never read. If the server is stopped
// already, Stop does nothing.
func (s *Server) Stop() {
	s.mu.Lock()
	links := s.links
	s.stopped, s.links = true, nil
	s.goOnLocked()
	s.mu.Unlock()
	for l := range links {
		_ = l.Close()
	}
}

// Pause makes the server stand still, as its machine may: connections can be made,
// but the server neither reads nor answers anything before [Server.Start]. Then it
// reads what was sent meanwhile. Times to live go on. If the server is stopped or
// paused already, Pause does nothing.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped && s.paused == nil {
		s.paused = make(chan struct{})
	}
}

// Start lets the server go on after [Server.Stop] or [Server.Pause]. If the server
// runs, Start does nothing. Start it before you close its clients, or they wait
// for answers until Config.CloseTimeout.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = false
	s.goOnLocked()
}

// goOnLocked ends a pause.
func (s *Server) goOnLocked() {
	if s.paused != nil {
		close(s.paused)
		s.paused = nil
	}
}

// A link is a connection as the server has it, which stands still while that is
// paused.
type link struct {
	net.Conn

	s     *Server
	ended chan struct{}
	once  sync.Once
}

// link registers a connection, unless the server is stopped.
func (s *Server) link(c net.Conn) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		_ = c.Close()
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: errStopped}
	}
	l := &link{Conn: c, s: s, ended: make(chan struct{})}
	if s.links == nil {
		s.links = make(map[*link]bool)
	}
	s.links[l] = true
	return l, nil
}

// Read returns what the server says.
func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if !l.await() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write tells the server something.
func (l *link) Write(b []byte) (int, error) {
	if !l.await() {
		return 0, net.ErrClosed
	}
	return l.Conn.Write(b)
}

// await waits while the server is paused. It returns false if the connection ends
// before.
func (l *link) await() bool {
	for {
		l.s.mu.Lock()
		lives, paused := l.s.links[l], l.s.paused
		l.s.mu.Unlock()
		if !lives {
			return false // Stop may have ended the pause, and is yet to close it
		}
		if paused == nil {
			return true
		}
		select {
		case <-l.ended:
			return false
		case <-paused:
		}
	}
}

// Close ends the connection.
func (l *link) Close() error {
	l.once.Do(func() {
		close(l.ended)
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		delete(l.s.links, l)
	})
	return l.Conn.Close()
}
