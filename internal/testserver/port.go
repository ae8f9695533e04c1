package testserver

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

var (
	givenMu sync.Mutex
	given   = map[int]bool{} // ports that this process has used, so that no two servers meet
)

// FreePort returns a TCP port of 127.0.0.1 on which nothing listens, and which
// this process has not got before. It lies below the ports that systems give to
// outgoing connections, so that it is still free after a restart, and low
// enough to add 10000 to it, the usual distance of a cluster's bus.
func FreePort(tb testing.TB) int {
	tb.Helper()
	port, err := freePort()
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

func freePort() (int, error) {
	givenMu.Lock()
	defer givenMu.Unlock()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		if given[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		given[port] = true
		return port, l.Close()
	}
	return 0, errors.New("testserver: no free port between 20000 and 32000")
}
