package adapter

import (
	"errors"
	"sync"
	"time"
)

// Shares bound how many callers have a connection to themselves, for each node. So
// connections are left for callers that share one, or need one for a moment. The
// zero value is ready for use.
type Shares struct {
	mu    sync.Mutex // guards taken
	taken map[string]chan struct{}
}

var errNoShare = errors.New("too many wait for replicas")

// Take waits until fewer than limit callers have a connection to the node, but no
// longer than patience. It returns what the caller is to call in the end. The
// limit of a node is always the same.
func (s *Shares) Take(node string, limit int, patience time.Duration) (giveBack func(), err error) {
	s.mu.Lock()
	taken := s.taken[node]
	if taken == nil {
		if s.taken == nil {
			s.taken = make(map[string]chan struct{})
		}
		taken = make(chan struct{}, limit)
		s.taken[node] = taken
	}
	s.mu.Unlock()
	giveBack = func() { <-taken }
	select {
	case taken <- struct{}{}:
		return giveBack, nil
	default:
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case taken <- struct{}{}:
		return giveBack, nil
	case <-late.C:
		return nil, errNoShare
	}
}
