package permit

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/queue"
)

// livePermits are a client's live permits, by their ids.
type livePermits struct {
	mu      sync.Mutex
	m       map[string]*Permit
	pending queue.Pending // of m, and those whose release is in flight
}

func (ps *livePermits) add(p *Permit) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.m == nil {
		ps.m = map[string]*Permit{}
	}
	ps.m[p.id] = p
	ps.pending.Add(1)
}

func (ps *livePermits) remove(p *Permit) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.m[p.id] != nil {
		delete(ps.m, p.id)
		ps.pending.Add(-1)
	}
}

// releasing counts so many more releases that are in flight, or fewer.
func (ps *livePermits) releasing(n int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.pending.Add(n)
}

// none returns a channel that is closed as soon as no permit is live, nor being
// released.
func (ps *livePermits) none() <-chan struct{} {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.pending.None()
}

// all returns all that there are for as long as it looks, a few at a time.
func (ps *livePermits) all() []*Permit {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all := make([]*Permit, 0, len(ps.m))
	for _, p := range ps.m {
		if all = append(all, p); len(all)%queue.SomeAtOnce == 0 {
			queue.Breathe(&ps.mu)
		}
	}
	return all
}

// live says whether the permit is live, and changes nothing if it is over.
func (p *Permit) live(now time.Time) bool {
	return p.state.Over() == nil && p.lease.Left(now) > 0 && (p.lease.Until.IsZero() || now.Before(p.lease.Until))
}

// of returns the live permits of a semaphore that have these ids, or all of
// them.
func (ps *livePermits) of(key string, ids ...string) (found []*Permit) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ids) == 0 {
		for _, p := range ps.m {
			if p.sem.Key == key {
				found = append(found, p)
			}
		}
	}
	for _, id := range ids {
		if p := ps.m[id]; p != nil && p.sem.Key == key {
			found = append(found, p)
		}
	}
	return found
}
