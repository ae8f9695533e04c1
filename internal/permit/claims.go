package permit

import (
	"time"

	"github.com/redlatch/redlatch/internal/claim"
)

// Claims tells which permits with leases callers of this client hold, and what its
// callers wait for, each as it is when it is looked at. Nobody who acquires or
// releases waits for more than the copying of one queue, and no mutex is locked
// while yield runs.
func (all *Semaphores) Claims(yield claim.Yield) {
	now := time.Now()
	for _, p := range all.live.all() {
		if p.live(now) && !yield(p.claim(), nil) {
			return
		}
	}
	var list claim.List
	for _, q := range all.counted.all.All() {
		q.Claims(&list, func(w *countedWaiter) claim.Claim {
			return claim.Claim{Name: q.sem.Key, Kind: claim.Semaphore, Count: w.Want.n}
		})
		if !list.Tell(yield) {
			return
		}
	}
	for _, q := range all.expirable.all.All() {
		q.Claims(&list, func(w *expirableWaiter) claim.Claim {
			return claim.Claim{Name: q.sem.Key, Kind: claim.Expirable, Count: w.Want.N}
		})
		if !list.Tell(yield) {
			return
		}
	}
}

func (p *Permit) claim() claim.Claim {
	p.state.Mu.Lock()
	note := p.note
	p.state.Mu.Unlock()
	return claim.Claim{
		Name: p.sem.Key, Kind: claim.Expirable, Owner: p.ID(),
		Since: p.since, Until: p.lease.Trusted(), Renewed: p.kept, Count: 1, Site: p.site, Note: note,
	}
}
