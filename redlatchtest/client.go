package redlatchtest

import (
	"sync"
	"testing"

	"github.com/redlatch/redlatch"
)

// NewClient returns a client with a server of its own. Both end with the test.
// In a synctest bubble, call it inside the bubble.
func NewClient(tb testing.TB, cfg redlatch.Config) *redlatch.Client {
	tb.Helper()
	c, err := redlatch.New(NewServer(tb).Redis(), cfg)
	if err != nil {
		tb.Fatal("redlatchtest: ", err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error("redlatchtest: closing the client: ", err)
		}
	})
	return c
}

// servers are those that are running.
var servers struct {
	sync.Mutex
	all map[*Server]bool
}

func register(tb testing.TB, s *Server) {
	tb.Helper()
	servers.Lock()
	defer servers.Unlock()
	if servers.all == nil {
		servers.all = make(map[*Server]bool)
	}
	servers.all[s] = true
	tb.Cleanup(func() {
		servers.Lock()
		defer servers.Unlock()
		delete(servers.all, s)
	})
}
