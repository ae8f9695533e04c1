package faultnet

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Held keeps one request that was caught by [Hold], to be delivered whenever
// the test wants: after its client gave up, after its lock changed hands. The
// zero Held is ready to use. Safe for concurrent use. It must not be copied.
type Held struct {
	mu        sync.Mutex
	caught    chan struct{} // closed when a request is kept
	full      bool
	p         *Proxy
	request   Request
	raw       []byte
	handshake [][]byte
}

func (h *Held) signal() chan struct{} {
	if h.caught == nil {
		h.caught = make(chan struct{})
	}
	return h.caught
}

// keep stores the request; false means that h has one already.
func (h *Held) keep(p *Proxy, r Request, raw []byte, handshake [][]byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full {
		return false
	}
	h.full, h.p, h.request, h.raw, h.handshake = true, p, r, raw, handshake
	close(h.signal())
	return true
}

// Wait returns nil when a request has been caught, and the error of ctx when
// that ends first.
func (h *Held) Wait(ctx context.Context) error {
	h.mu.Lock()
	caught := h.signal()
	h.mu.Unlock()
	select {
	case <-caught:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("faultnet: no request was caught: %w", context.Cause(ctx))
	}
}

// Request returns the caught request; ok is false as long as there is none.
func (h *Held) Request() (r Request, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.request, h.full
}

// Deliver waits until a request has been caught, sends its bytes on a fresh
// connection to the server, and returns the raw reply, such as ":1\r\n" or
// "-NOSCRIPT ...\r\n" (an error reply is not an error of Deliver). AUTH, HELLO,
// SELECT and READONLY that came before it on its connection are sent first.
// Every further call delivers the request once more. Rules and black holes of
// the proxy do not apply. On error it is unknown whether the server ran it.
func (h *Held) Deliver(ctx context.Context) (reply string, err error) {
	if err := h.Wait(ctx); err != nil {
		return "", err
	}
	if h.p.ctx.Err() != nil {
		return "", net.ErrClosed
	}
	up, err := h.p.dial(ctx)
	if err != nil {
		return "", err
	}
	defer up.Close()
	stop := context.AfterFunc(ctx, func() { up.Close() })
	defer stop()

	in := newScanner(up)
	ask := func(raw []byte) (frame, error) {
		if _, err := up.Write(raw); err != nil {
			return frame{}, err
		}
		for {
			f, err := in.frame()
			if err != nil || f.kind != '>' {
				return f, err
			}
		}
	}
	for _, raw := range h.handshake {
		// A refused HELLO or AUTH is no reason to stop: the client went on too.
		if _, err := ask(raw); err != nil {
			return "", orCause(ctx, err)
		}
	}
	f, err := ask(h.raw)
	if err != nil {
		return "", orCause(ctx, err)
	}
	return string(f.raw), nil
}

// orCause prefers the end of ctx, which closed the connection, to the error
// that the closed connection then gave.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
