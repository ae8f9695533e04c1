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
	return NewServer(tb).Client(cfg)
}

// Client returns a client of the server with connections of its own. It ends with
// the test.
func (s *Server) Client(cfg redlatch.Config) *redlatch.Client {
	s.tb.Helper()
	c, err := redlatch.New(s.Redis(), cfg)
	if err != nil {
		s.tb.Fatal("redlatchtest: ", err)
	}
	s.tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.tb.Error("redlatchtest: closing the client: ", err)
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
