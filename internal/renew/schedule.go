package renew

import (
	"container/heap"
	"time"
)

// An entry says when to look at a lease.
type entry struct {
	at    time.Time
	lease *Lease
}

// A schedule is a heap of leases by when to look at them. Each lease knows its
// place in each of the schedules.
type schedule struct {
	entries []entry
	which   int // of Lease.places
}

// set has l looked at then.
func (s *schedule) set(l *Lease, at time.Time) {
	if l.places[s.which] == 0 {
		s.entries = append(s.entries, entry{at, l}) // heap.Push would allocate
		l.places[s.which] = len(s.entries)
	}
	i := l.places[s.which] - 1
	s.entries[i].at = at
	heap.Fix(s, i)
}

// remove forgets l, and says whether it was there.
func (s *schedule) remove(l *Lease) bool {
	i := l.places[s.which]
	if i > 0 {
		heap.Remove(s, i-1)
	}
	return i > 0
}

// allAt has all leases looked at then.
func (s *schedule) allAt(at time.Time) {
	for i := range s.entries {
		s.entries[i].at = at
	}
	heap.Init(s)
}

// clear forgets all leases and returns them.
func (s *schedule) clear() []entry {
	all := s.entries
	for _, e := range all {
		e.lease.places[s.which] = 0
	}
	s.entries = nil
	return all
}

func (s *schedule) Len() int           { return len(s.entries) }
func (s *schedule) Less(i, j int) bool { return s.entries[i].at.Before(s.entries[j].at) }

func (s *schedule) Swap(i, j int) {
	e := s.entries
	e[i], e[j] = e[j], e[i]
	e[i].lease.places[s.which], e[j].lease.places[s.which] = i+1, j+1
}

func (s *schedule) Push(any) { panic("not used") }

func (s *schedule) Pop() any {
	last := len(s.entries) - 1
	s.entries[last].lease.places[s.which] = 0
	s.entries[last] = entry{}
	s.entries = s.entries[:last]
	return nil
}
