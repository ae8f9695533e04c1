// Package heldport holds TCP ports of 127.0.0.1 for tests: for a server that is
// to listen there, now or after a restart, or for nobody, so that a connection
// is refused.
//
// A port that was found free and closed again can be anybody's a moment later.
// A held one cannot: the system gives it to nobody else, neither to one that
// listens on any port nor to one that connects from it, until it is let go.
// Only a program that asks for this very port gets it; that is how the server
// does. (This is so on Linux. Elsewhere a held port is one that was free; who
// starts a server there has to be prepared to find it taken.)
package heldport

import (
	"net"
	"strconv"
	"testing"
)

// Hold returns a port as a number in decimal, held until the test is over.
// Until something listens there, connections to it are refused.
func Hold(tb testing.TB) string {
	tb.Helper()
	port, letGo, err := Take()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(letGo)
	return port
}

// Refusing returns a "127.0.0.1:port" that refuses connections until the test is
// over.
func Refusing(tb testing.TB) string {
	tb.Helper()
	return Addr(Hold(tb))
}

// Addr returns the address of a port of 127.0.0.1.
func Addr(port string) string { return net.JoinHostPort("127.0.0.1", port) }

// busDistance is how far the port of a cluster's bus is from that of its node.
const busDistance = 10000

// HoldNode is Hold for a server that may be a node of a cluster, whose bus is at
// the port 10000 above: that one is held as well. (Servers before Redis 7 can have
// it nowhere else.)
func HoldNode(tb testing.TB) (port string) {
	tb.Helper()
	for range 100 {
		n, letGo, err := take(0)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(letGo)
		if n+busDistance > 65535 {
			continue
		}
		if _, letGo, err := take(n + busDistance); err == nil {
			tb.Cleanup(letGo)
			return strconv.Itoa(n)
		}
	}
	tb.Fatal("heldport: no two free ports at the distance of a node and its bus")
	panic("unreachable")
}

// Take is Hold for programs that are no tests: the port is held until letGo is
// called.
func Take() (port string, letGo func(), err error) {
	n, letGo, err := take(0)
	return strconv.Itoa(n), letGo, err
}
