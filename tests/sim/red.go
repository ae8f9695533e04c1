package sim

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
)

// sitesOf returns how many servers a plan has that do not replicate each other.
func sitesOf(plan Plan) int {
	more := int(plan.Seed / 2 % 2) // with and without losses of data
	switch plan.Type {
	case "red":
		return 3 + 2*more
	case "cluster", "endpoint":
		return 2 + more
	}
	return 1
}

// red is a lock on a majority of the sites.
func red() kind {
	return kind{
		capacity: 1,
		together: func(cs []*redlatch.Client, name string, lease time.Duration) choice {
			locks := make([]*redlatch.Lock, len(cs))
			for i, c := range cs {
				locks[i] = c.Lock(name, held(lease)...)
			}
			return choice{lock: redlatch.RedLock(locks...), lease: lease, nests: true}
		},
	}
}

// choose returns what a worker wants next.
func (w *world) choose(p *process, name string, lease time.Duration, own *chance) choice {
	if w.kind.together != nil {
		return w.kind.together(p.clients, name, lease)
	}
	return w.kind.choose(p.client, name, lease, own)
}

// whole returns all of a resource.
func (w *world) whole(p *process, name string) choice {
	if w.kind.together != nil {
		return w.kind.together(p.clients, name, 0)
	}
	return w.kind.whole(p.client, name)
}

// A whole is what a worker believes of a RedLock: it has the lock, whatever
// becomes of a vote. Each vote is a claim of its own, at its site. The claim of
// the whole is in no list of claims, because no site has it.
type whole struct {
	*claim

	hold  *redlatch.Hold
	votes []*vote // guarded by history.mu, and over
	over  bool    // its worker releases it: what joins it now is trusted by nobody
}

// A vote is a member of a RedLock that somebody has.
type vote struct {
	*claim

	hold *redlatch.Hold
}

// joins is for how long members of a RedLock may join it after it was acquired: a
// twentieth of the lease at most.
const joins = maxLease / 20

// hasMost notes what a RedLock makes its worker believe, as has does.
func (w *world) hasMost(p *process, h *redlatch.Hold, like *claim) []*claim {
	c, alike := *like, *like
	like = &alike // the worker goes on with its own
	c.resource, c.site, c.process, c.footing = object(0), -1, p.number, &footing{}
	x := &whole{claim: &c, hold: h}
	if !strings.HasPrefix(h.Name(), c.resource) {
		c.resource = object(1)
	}
	w.history.mu.Lock()
	c.from, c.to = w.now(), -1
	w.wholes = append(w.wholes, x)
	w.history.mu.Unlock()
	w.collect(p, x, like)
	all := []*claim{x.claim}
	for _, v := range x.votes {
		all = append(all, v.claim)
	}
	if p.life.Err() != nil {
		w.end(all, "killed")
	}
	w.hear(p, h, func() {
		w.collect(p, x, like)
		w.endsMost(p, h)
	})
	context.AfterFunc(p.life, func() {
		w.collect(p, x, like)
		w.end(all, "killed")
	})
	go func() {
		for end := w.now() + joins; w.now() < end && h.Err() == nil && p.life.Err() == nil; time.Sleep(joins / 10) {
			w.collect(p, x, like)
		}
	}()
	return all
}

// collect notes the votes of a RedLock that are not noted yet. Each ends by
// itself, with the whole or before.
func (w *world) collect(p *process, x *whole, like *claim) {
	for _, m := range x.hold.Members() {
		site := slices.IndexFunc(p.clients, func(c *redlatch.Client) bool { return strings.HasPrefix(m.ID(), c.ID()+":") })
		c := *like
		c.resource, c.id, c.site, c.process = m.Name(), m.ID(), site, p.number
		v := &vote{&c, m}
		w.history.mu.Lock()
		c.lease = max(c.lease, x.longest)
		known := x.over || slices.ContainsFunc(x.votes, func(o *vote) bool { return o.id == c.id && o.site == site })
		if !known {
			x.votes = append(x.votes, v)
			w.beginLocked([]*claim{&c})
		}
		w.history.mu.Unlock()
		if known {
			continue
		}
		w.hear(p, m, func() {
			w.collect(p, x, like) // another one may have come in its place
			w.endsVote(p, v)
		})
		context.AfterFunc(p.life, func() { w.end([]*claim{&c}, "killed") })
		if x.hold.Err() != nil {
			w.endsVote(p, v)
			w.end([]*claim{&c}, "it came when all was over")
		}
	}
}

// endsVote notes the end of a vote, if it has ended.
func (w *world) endsVote(p *process, v *vote) {
	err := w.ended(p, v.hold)
	if err == nil {
		return
	}
	one := []*claim{v.claim}
	var lost *redlatch.LostError
	if errors.As(err, &lost) && p.life.Err() == nil {
		w.told(one, lost, w.stored)
	}
	w.end(one, err.Error())
}

// allClaims returns the claims of a hold that is released now: these and, of a
// RedLock, those of the votes that have joined since.
func (w *world) allClaims(h *redlatch.Hold, all []*claim) []*claim {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	for _, x := range w.wholes {
		if x.hold == h {
			x.over = true
			for _, v := range x.votes {
				all = append(all, v.claim)
			}
		}
	}
	return all
}

// endsMost notes the end of a RedLock, if it has ended. Nobody trusts its votes
// any more.
func (w *world) endsMost(p *process, h *redlatch.Hold) {
	err := w.ended(p, h)
	if err == nil {
		return
	}
	w.history.mu.Lock()
	x := w.wholes[slices.IndexFunc(w.wholes, func(x *whole) bool { return x.hold == h })]
	votes := slices.Clone(x.votes)
	w.history.mu.Unlock()
	all := []*claim{x.claim}
	for _, v := range votes {
		w.endsVote(p, v)
		all = append(all, v.claim)
	}
	w.end(all, err.Error())
}

// checkMost checks that whoever trusts that it has a RedLock trusts a majority of
// the votes, whatever was lost: a loss that it knows nothing of leaves it a vote,
// and one that it was told of excuses nothing. And that no two trust that they
// have one. A majority of each has a vote in common with that of the other, and
// only a loss of such a vote explains both. That nobody else had that vote
// otherwise, check has checked.
func (h *history) checkMost(wholes []*whole, sites int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sorted := slices.SortedStableFunc(slices.Values(wholes), func(a, b *whole) int { return cmp.Compare(a.from, b.from) })
	var live []*whole
	for _, x := range sorted {
		if x.to < 0 {
			h.failLocked(x.from, "process %d has the RedLock %s, and that never ends", x.process, x.resource)
			continue
		}
		if x.most > 0 && x.to-x.from > x.most+10*time.Millisecond {
			h.failLocked(x.to, "process %d had the RedLock %s for %v, longer than MaxHold (%v)", x.process, x.resource, x.to-x.from, x.most)
		}
		for _, at := range x.turns() {
			if n := x.trusted(at); 2*n <= sites {
				h.failLocked(at, "process %d trusts the RedLock %s (%s until%s) with %d of %d votes", x.process, x.resource, x.how, stamp(x.to), n, sites)
				break
			}
		}
		live = slices.DeleteFunc(live, func(o *whole) bool { return o.to <= x.from })
		for _, o := range live {
			if o.resource != x.resource || o.nest == x.nest {
				continue
			}
			if left := h.unexplained(o, x); len(left) > 0 {
				h.failLocked(left[0].from, "process %d trusts the RedLock %s (%s until%s) beside process %d (%s until%s), and no loss of a vote explains that",
					x.process, x.resource, x.how, stamp(x.to), o.process, o.how, stamp(o.to))
			}
		}
		live = append(live, x)
	}
	slices.Sort(h.wrong)
}

func (w *world) checkWholes() { w.checkMost(w.wholes, len(w.sites)) }

// turns returns the moments at which x may have fewer votes than before, while it
// is trusted. Not all ends are heard in the same moment: hear looks each
// millisecond.
func (x *whole) turns() []time.Duration {
	all := []time.Duration{x.from}
	for _, v := range x.votes {
		all = append(all, v.to)
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(at time.Duration) bool { return at < x.from || at >= x.to-2*time.Millisecond })
}

// trusted returns how many servers' votes are trusted at a moment.
func (x *whole) trusted(at time.Duration) int {
	sites := map[int]bool{}
	for _, v := range x.votes {
		if v.from <= at && at < v.to {
			sites[v.site] = true
		}
	}
	return len(sites)
}

// unexplained returns when two trust that they have a RedLock, and have both of
// all that they have in common.
func (h *history) unexplained(a, b *whole) []span {
	left := []span{{nil, max(a.from, b.from), min(a.to, b.to)}}
	for _, v := range a.votes {
		for _, o := range b.votes {
			if v.site != o.site {
				continue
			}
			for _, c := range []*claim{v.claim, o.claim} {
				var less []span
				for _, s := range left {
					then := *c
					then.from, then.to = s.from, s.to
					less = append(less, h.spans(&then)...)
				}
				left = less
			}
		}
	}
	return left
}
