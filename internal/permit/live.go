package permit

import "sync"

// livePermits are a client's live permits, by their ids.
type livePermits struct {
	mu sync.Mutex
	m  map[string]*Permit
}

func (ps *livePermits) add(p *Permit) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.m == nil {
		ps.m = map[string]*Permit{}
	}
	ps.m[p.id] = p
}

func (ps *livePermits) remove(p *Permit) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.m, p.id)
}

// of returns the live permits of a semaphore that have these ids, or all of
// them.
func (ps *livePermits) of(name string, ids ...string) (found []*Permit) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ids) == 0 {
		for _, p := range ps.m {
			if p.sem.Name == name {
				found = append(found, p)
			}
		}
	}
	for _, id := range ids {
		if p := ps.m[id]; p != nil && p.sem.Name == name {
			found = append(found, p)
		}
	}
	return found
}
