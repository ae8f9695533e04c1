package sim

import "time"

// overlaps returns for each way in which data was lost for how long, at most, one
// claim went on beside another that could not be without that loss.
func (h *history) overlaps() map[string]time.Duration {
	longest := map[string]time.Duration{}
	for _, l := range h.losses {
		longest[l.what] += 0 // it happened
	}
	for s, others := range h.crowded(func(c *claim) []span { return []span{{c, c.from, c.to}} }) {
		for _, o := range others {
			if l := h.lastLoss(o, s); o.nest != s.nest && l != nil {
				longest[l.what] = max(longest[l.what], min(o.to, s.to)-s.from)
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
