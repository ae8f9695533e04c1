package faultnet_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/faultnet"
)

// listen serves s over TCP, and a proxy to it.
func listen(t *testing.T, s *fake) (*faultnet.Proxy, func() *peer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.openNow++
			s.mu.Unlock()
			go s.serve(&fakeConn{Conn: c, server: s, name: "nobody", db: "0"})
		}
	}()
	p := faultnet.New(func(ctx context.Context) (net.Conn, error) {
		return netDial(ctx, l.Addr().String())
	})
	t.Cleanup(func() {
		p.Close()
		l.Close()
		<-done
	})
	addr, err := p.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return p, func() *peer {
		c, err := netDial(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		return newPeer(t, c)
	}
}

func netDial(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// eventually waits, in real time, for a state that must come.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestTCP(t *testing.T) {
	s := newFake()
	p, dial := listen(t, s)
	var h faultnet.Held
	p.SetRule(func(r faultnet.Request) faultnet.Action {
		switch r.Args[1] {
		case "drop":
			return faultnet.DropReply
		case "hold":
			return faultnet.Hold(&h)
		case "late":
			return faultnet.Delay(50 * time.Millisecond)
		}
		return faultnet.Pass
	})

	c := dial()
	c.send("INCR a", "INCR drop")
	c.want(":1|")
	c.wantClosed()

	c = dial()
	c.send("SELECT 3", "INCR hold")
	c.want("+OK|")
	c.wantClosed()
	if reply, err := h.Deliver(t.Context()); err != nil || reply != ":1\r\n" {
		t.Fatalf("Deliver: %q, %v", reply, err)
	}

	c = dial()
	c.send("INCR late", "INCR behind", "INCR behind")
	c.c.Close()
	eventually(t, "late requests ran", func() bool { return s.count("late") == 1 && s.count("behind") == 2 })

	c = dial()
	c.send("INCR a")
	c.want(":2|")
	p.BreakAll()
	c.wantClosed()
	eventually(t, "server connections closed", func() bool { return s.open() == 0 })
}

func TestTCPServerGone(t *testing.T) {
	s := newFake()
	p := faultnet.New(func(ctx context.Context) (net.Conn, error) {
		s.setRefuse(true)
		return s.dial(ctx)
	})
	defer p.Close()
	addr, err := p.Listen()
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	newPeer(t, c).wantClosed()
}
