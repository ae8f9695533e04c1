package sim

import (
	"cmp"
	"slices"
	"time"
)

// A span is a time for which a claim counts.
type span struct {
	*claim

	from, to time.Duration
}

// spans returns when a claim counts: always, but for the time after a loss that may have taken it away. There its worker cannot
// know, until it is told or the lease that was confirmed before is over.
func (h *history) spans(c *claim) (all []span) {
	from := c.from
	for _, l := range h.losses { // in the order of their beginnings
		if !l.hits(c, c.to) {
			continue
		}
		if from < l.from {
			all = append(all, span{c, from, l.from})
		}
		from = max(from, l.excuses(c))
	}
	if from < c.to {
		all = append(all, span{c, from, c.to})
	}
	return all
}

// check checks the whole history, when it is over: no claim lasts.
func (h *history) check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	type place struct {
		site     int
		resource string
	}
	by := map[place][]span{}
	for _, c := range h.claims {
		if c.to < 0 {
			h.failLocked(c.from, "process %d has %s as %s, and that never ends", c.process, c.resource, c.id)
			continue
		}
		if c.most > 0 && c.to-c.from > c.most+10*time.Millisecond {
			h.failLocked(c.to, "process %d had %s as %s for %v, longer than MaxHold (%v)", c.process, c.resource, c.id, c.to-c.from, c.most)
		}
		at := place{c.site, c.resource}
		by[at] = append(by[at], h.spans(c)...)
	}
	for _, all := range by {
		h.checkWeights(all)
	}
	h.checkTokens()
	slices.Sort(h.wrong) // by time
}

// checkWeights checks that those who trust at a time have no more than there is.
func (h *history) checkWeights(all []span) {
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var live []span
	for _, s := range all {
		live = slices.DeleteFunc(live, func(o span) bool { return o.to <= s.from })
		live = append(live, s)
		if weigh(live) <= h.capacity {
			continue
		}
		for _, o := range live[:len(live)-1] {
			if o.nest != s.nest {
				h.failLocked(s.from, "process %d trusts %s as %s (weight %d, %s until %s) beside process %d as %s (weight %d,%s until%s, %s)",
					s.process, s.resource, s.id, s.weight, s.how, stamp(s.to), o.process, o.id, o.weight, stamp(o.claim.from), stamp(o.claim.to), o.how)
				break
			}
		}
	}
}

// checkTokens checks that of two claims the later one has the higher token, unless data was lost between.
func (h *history) checkTokens() {
	last := map[string]*claim{}
	sorted := slices.Clone(h.claims)
	slices.SortStableFunc(sorted, func(a, b *claim) int { return cmp.Compare(a.from, b.from) })
	for _, c := range sorted {
		before := last[c.resource]
		if c.token == 0 || c.inner {
			continue
		}
		last[c.resource] = c
		if before != nil && c.token <= before.token && !h.lostBetween(before, c) {
			h.failLocked(c.from, "process %d has %s as %s with the token %d, after the token %d", c.process, c.resource, c.id, c.token, before.token)
		}
	}
}

func (h *history) lostBetween(a, b *claim) bool {
	return slices.ContainsFunc(h.losses, func(l *loss) bool {
		return l.site == b.site && (l.resource == "" || l.resource == a.resource) && l.from <= b.from && l.to >= a.asked
	})
}
