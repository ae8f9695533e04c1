// Package pipe is for tests in memory: what a network connection can do and a
// net.Pipe cannot.
package pipe

import (
	"io"
	"net"
	"sync"
)

// Buffered returns a connection to far whose other end never waits until what it
// sends is read. A net.Pipe has no buffer, as a socket has: a client that sends a
// request while the server sends it a message would wait for ever if it does not
// read meanwhile.
func Buffered(far net.Conn) net.Conn {
	near, inner := net.Pipe()
	q := &queue{more: make(chan struct{}, 1)}
	go func() { // requests
		_, _ = io.Copy(far, inner)
		_ = far.Close()
	}()
	go func() { // what the server sends
		buf := make([]byte, 4<<10)
		for {
			n, err := far.Read(buf)
			q.put(buf[:n], err)
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer func() { _ = inner.Close() }()
		for {
			data, err := q.take()
			if len(data) > 0 {
				if _, failed := inner.Write(data); failed != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return near
}

// A queue holds what has been sent and not been read.
type queue struct {
	more chan struct{} // delivers when there may be something; one slot

	mu   sync.Mutex // guards what follows
	data []byte
	err  error // after data
}

func (q *queue) put(data []byte, err error) {
	q.mu.Lock()
	q.data, q.err = append(q.data, data...), err
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// take waits for something and returns all there is.
func (q *queue) take() ([]byte, error) {
	for {
		q.mu.Lock()
		data, err := q.data, q.err
		q.data = nil
		q.mu.Unlock()
		if len(data) > 0 || err != nil {
			return data, err
		}
		<-q.more
	}
}
