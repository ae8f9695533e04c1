package heldport_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch/internal/heldport"
)

func dial(addr string) error {
	c, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// What nobody listens on refuses connections, before a server and after it, and a
// server can be started on it more than once.
func TestAHeldPortIsItsServers(t *testing.T) {
	addr := heldport.Refusing(t)
	for range 3 {
		if err := dial(addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("nothing listens, and a connection to %s: %v", addr, err)
		}
		l := listen(t, addr)
		if err := dial(addr); err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}

// The tests of two checkouts that ran at one time were given each other's ports.
func TestAHeldPortIsGivenToNobodyElse(t *testing.T) {
	held := make(map[string]bool)
	for range 200 {
		addr := heldport.Refusing(t)
		if held[addr] {
			t.Fatalf("%s was given twice", addr)
		}
		held[addr] = true
	}
	for range 200 {
		if l := listen(t, "127.0.0.1:0"); held[l.Addr().String()] {
			t.Fatalf("%s is held, and was given to one that listens", l.Addr())
		}
	}
	server := listen(t, "127.0.0.1:0").Addr().String()
	for range 200 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", server)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if held[c.LocalAddr().String()] {
			t.Fatalf("%s is held, and was given to one that connects", c.LocalAddr())
		}
	}
}
