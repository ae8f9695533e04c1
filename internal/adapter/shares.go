package adapter

import (
	"errors"
	"sync"
	"time"
)

// Shares bound how many callers have a connection to themselves, of each node, so
// that there are others for who shares one, or needs one for a moment. The zero value
// is ready for use.
type Shares struct {
	mu    sync.Mutex // guards taken
	taken map[string]chan struct{}
}

var errNoShare = errors.New("too many wait for replicas")

// Take waits until fewer than limit, which is always the same for a node, have a
// connection to it, but no longer than patience, and returns what is to be called in
// the end.
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
