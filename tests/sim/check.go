package sim

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// A span is a time for which a claim counts.
type span struct {
	*claim

	from, to time.Duration
}

// spans returns when a claim counts: always, but for the time after a loss that
// may have taken it away. There its worker cannot know, until it is told or the
// lease that was confirmed before is over.
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
	for _, c := range h.claims {
		if c.to < 0 {
			h.failLocked(c.from, "process %d has %s as %s, and that never ends", c.process, c.resource, c.id)
			continue
		}
		if c.most > 0 && c.to-c.from > c.most+10*time.Millisecond {
			h.failLocked(c.to, "process %d had %s as %s for %v, longer than MaxHold (%v)", c.process, c.resource, c.id, c.to-c.from, c.most)
		}
	}
	h.checkWeights()
	h.checkTokens()
	h.checkRevoked()
	slices.Sort(h.wrong) // by time
}

// crowded goes through the spans of all claims in the order of their beginnings.
// It yields each beside those that last then, if all of them together weigh more
// than their server has of the resource.
func (h *history) crowded(of func(c *claim) []span) iter.Seq2[span, []span] {
	type place struct {
		site     int
		resource string
	}
	return func(yield func(span, []span) bool) {
		var all []span
		for _, c := range h.claims {
			all = append(all, of(c)...)
		}
		slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		live := map[place][]span{}
		for _, s := range all {
			at := place{s.site, s.resource}
			others := slices.DeleteFunc(live[at], func(o span) bool { return o.to <= s.from })
			live[at] = append(others, s)
			if weigh(live[at]) > h.capacity && !yield(s, others) {
				return
			}
		}
	}
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

// checkWeights checks that those who trust at a time have no more than there is.
func (h *history) checkWeights() {
	for s, others := range h.crowded(h.spans) {
		for _, o := range others {
			if o.nest != s.nest {
				h.failLocked(s.from, "process %d trusts %s as %s (weight %d, %s until %s) beside process %d as %s (weight %d,%s until%s, %s)",
					s.process, s.resource, s.id, s.weight, s.how, stamp(s.to), o.process, o.id, o.weight, stamp(o.claim.from), stamp(o.claim.to), o.how)
				break
			}
		}
	}
}

// checkTokens checks that of two claims the later one has the higher token, unless
// a loss explains that.
func (h *history) checkTokens() {
	before := map[string][]*claim{}
	sorted := slices.Clone(h.claims)
	slices.SortStableFunc(sorted, func(a, b *claim) int { return cmp.Compare(a.from, b.from) })
	for _, c := range sorted {
		if c.token == 0 || c.inner {
			continue
		}
		for _, b := range slices.Backward(before[c.resource]) {
			if c.token <= b.token && !h.lowered(b, c) {
				h.failLocked(c.from, "process %d has %s as %s with the token %d, after the token %d", c.process, c.resource, c.id, c.token, b.token)
				break
			}
		}
		before[c.resource] = append(before[c.resource], c)
	}
}

// lowered says whether a loss explains that b has no higher token than a, whose
// worker was told before. What numbers the tokens has no TTL, and is a key of its
// own: only a server that goes on without it, or with an older one, gives a token
// again.
func (h *history) lowered(a, b *claim) bool {
	return slices.ContainsFunc(h.losses, func(l *loss) bool {
		switch {
		case l.site != b.site:
			return false
		case b.token < a.token && l.hits(b, b.from): // a's token is the later one: b's was on its way when b was lost
			return true
		case slices.Contains(sparing(), l.what) || l.to < a.asked || b.from < l.from:
			return false
		case slices.Contains(restoring(), l.what):
			return l.from <= a.from // what was told before is stored then
		case l.what == wiped && h.dated: // the number of the next term is the server's clock
			back := h.setBack(l.site, b.from)
			return back > 0 && a.token-b.token <= back.Microseconds()+int64(len(h.claims))
		}
		return true
	})
}

// setBack returns by how much a server's clock was set back until then.
func (h *history) setBack(site int, until time.Duration) (sum time.Duration) {
	for _, s := range h.steps {
		if s.site == site && s.at <= until {
			sum += s.by
		}
	}
	return sum
}
