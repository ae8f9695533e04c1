package redlatchtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
)

// NewClient returns a client with a server of its own. Both end with the test.
// In a synctest bubble it must be called inside.
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

// patience is how long a client may take to find out about a lost lock.
const patience = 10 * time.Second

// Lose deletes the lock behind its holder's back, as the death of a server or an
// operator's DEL would, and returns when the hold knows that it is lost: its
// context has ended.
//
// Lose panics if no server of this package has that lock with that owner, and if
// the hold does not notice, which would be a defect of redlatch.
func Lose(hold *redlatch.Hold) {
	s := find(hold.Name(), hold.Owner())
	if s == nil {
		panic(fmt.Sprintf("redlatchtest: no server has the lock %q of owner %s: the hold was released, or lost already", hold.Name(), hold.Owner()))
	}
	s.mini.Del(hold.Name())
	s.mu.Lock()
	drivers := slices.Clone(s.drivers)
	s.mu.Unlock()
	for _, d := range drivers {
		d.pretend()
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-hold.Context().Done():
	case <-limit.C:
		panic(fmt.Sprintf("redlatchtest: the hold of %q has not noticed its loss within %v", hold.Name(), patience))
	}
}

func find(name, owner string) *Server {
	servers.Lock()
	defer servers.Unlock()
	for s := range servers.all {
		if s.holds(name, owner) {
			return s
		}
	}
	return nil
}
