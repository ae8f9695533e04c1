package handoff

import (
	"sync"
	"time"
)

// A Stay keeps something for a while after its last user has left, however often
// that is asked for. It has one timer at a time.
type Stay struct {
	mu    sync.Mutex // guards what follows
	on    bool
	until time.Time
}

// Prolong makes it last for d from now. end is called when it is over.
func (s *Stay) Prolong(d time.Duration, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(d)
	if !s.on {
		s.on = true
		s.alarm(d, end)
	}
}

func (s *Stay) alarm(d time.Duration, end func()) {
	time.AfterFunc(d, func() {
		s.mu.Lock()
		left := time.Until(s.until)
		s.on = left > 0
		if s.on {
			s.alarm(left, end)
		}
		s.mu.Unlock()
		if left <= 0 {
			end()
		}
	})
}

// Lasts says whether it is not over.
func (s *Stay) Lasts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on
}
