package sim

import (
	"cmp"
	"slices"
	"time"
)

// overlaps returns for each way in which data was lost for how long, at most, one claim went on beside another that could not be
// without that loss.
func (h *history) overlaps() map[string]time.Duration {
	longest, by := map[string]time.Duration{}, map[string][]span{}
	for _, l := range h.losses {
		longest[l.what] += 0 // it happened
	}
	for _, c := range h.claims {
		by[c.resource] = append(by[c.resource], span{c, c.from, c.to})
	}
	for _, all := range by {
		slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		var live []span
		for _, s := range all {
			live = slices.DeleteFunc(live, func(o span) bool { return o.to <= s.from })
			live = append(live, s)
			if weigh(live) <= h.capacity {
				continue
			}
			for _, o := range live {
				if l := h.lastLoss(o, s); o.nest != s.nest && l != nil {
					longest[l.what] = max(longest[l.what], min(o.to, s.to)-s.from)
				}
			}
		}
	}
	return longest
}

// lastLoss returns the last loss that may have taken one of these away.
func (h *history) lastLoss(a, b span) (last *loss) {
	for _, l := range h.losses {
		if l.hits(a.claim, a.to) || l.hits(b.claim, b.to) {
			last = l
		}
	}
	return last
}

// weigh returns what these weigh together. Those of one nest count once.
func weigh(all []span) (sum int) {
	nests := map[int]int{}
	for _, o := range all {
		sum += max(nests[o.nest], o.weight) - nests[o.nest]
		nests[o.nest] = max(nests[o.nest], o.weight)
	}
	return sum
}
