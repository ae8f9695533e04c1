package overview

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/promtext"
)

const (
	mostGroups = 100 // prefixes that ever have numbers of their own
	mostPrefix = 100 // bytes of one
	// otherNames is the prefix of names that have none of these.
	otherNames = "other"
)

// Metrics make numbers of listings, by prefixes of names, for Prometheus. The zero
// value counts names by what stands before their first colon. One goroutine uses
// it at a time.
type Metrics struct {
	// Prefixes are those that have numbers of their own, instead. Of several that a
	// name has, the longest counts.
	Prefixes []string

	known []string // what has numbers now, at most mostGroups, and for ever
}

// A group is what a listing has under one prefix.
type group struct {
	held, permits, waiters, lost int
	longest, oldest              time.Duration
}

func (g *group) add(l *Lock) {
	switch {
	case l.Kind == redlatch.KindExpirable:
		g.permits += len(l.Holders)
	case IsLock(l.Kind):
		g.held += len(l.Holders)
	}
	n, _ := l.Waiters()
	g.waiters += n
	g.longest, g.oldest = max(g.longest, l.LongestWait()), max(g.oldest, l.LongestHold())
	if len(l.Lost) == 0 {
		return
	}
	lost := map[string]bool{} // holds of one owner that are lost together count as one
	for i := range l.Lost {
		lost[l.Lost[i].lossOf(l.Name)] = true
	}
	g.lost += len(lost)
}

// merge adds what another group has.
func (g *group) merge(o *group) {
	g.held, g.permits, g.waiters, g.lost = g.held+o.held, g.permits+o.permits, g.waiters+o.waiters, g.lost+o.lost
	g.longest, g.oldest = max(g.longest, o.longest), max(g.oldest, o.oldest)
}

// prefixOf is what a name is counted under, as far as there is room.
func (m *Metrics) prefixOf(name string) string {
	if len(m.Prefixes) > 0 {
		prefix, found := "", false
		for _, p := range m.Prefixes {
			if strings.HasPrefix(name, p) && (!found || len(p) > len(prefix)) {
				prefix, found = p, true
			}
		}
		if !found {
			return otherNames
		}
		return promtext.Clean(prefix)
	}
	prefix, _, ok := strings.Cut(name, ":")
	switch {
	case !ok:
		return "" // the whole name may be an id
	case len(prefix) > mostPrefix:
		return otherNames
	}
	return promtext.Clean(prefix) // so that no two are the same when they are shown
}

// groups counts a listing. A prefix that once had numbers keeps them. Prometheus
// keeps what it has ever read: if prefixes came and went, it would have any number
// of them.
func (m *Metrics) groups(listing *Listing) map[string]*group {
	found := map[string]*group{}
	of := func(in map[string]*group, prefix string) *group {
		if in[prefix] == nil {
			in[prefix] = &group{}
		}
		return in[prefix]
	}
	for i := range listing.Locks {
		of(found, m.prefixOf(listing.Locks[i].Name)).add(&listing.Locks[i])
	}
	all := map[string]*group{}
	for _, prefix := range m.shown(found) {
		all[prefix] = &group{}
	}
	for prefix, g := range found {
		if all[prefix] == nil {
			prefix = otherNames
		}
		of(all, prefix).merge(g)
	}
	return all
}

// shown are the prefixes that have numbers, given what was found.
func (m *Metrics) shown(found map[string]*group) []string {
	if len(m.Prefixes) > 0 {
		m.known = nil
		for _, p := range m.Prefixes {
			m.known = append(m.known, promtext.Clean(p))
		}
		return m.known
	}
	for _, prefix := range slices.Sorted(maps.Keys(found)) {
		if prefix != otherNames && len(m.known) < mostGroups && !slices.Contains(m.known, prefix) {
			m.known = append(m.known, prefix)
		}
	}
	return m.known
}

// storedKinds are what a listing may have. Each has a number always: one that
// comes and goes would leave gaps.
var storedKinds = []redlatch.Kind{
	redlatch.KindLock, redlatch.KindFenced, redlatch.KindFair, redlatch.KindReadWrite, redlatch.KindGroup,
	redlatch.KindSemaphore, redlatch.KindExpirable, redlatch.KindLatch, redlatch.KindRateLimiter, redlatch.KindBarrier,
}

// Down are the metrics of a server that has not answered, and of what was counted
// before.
func Down(hs *Histories) []promtext.Family { return []promtext.Family{up(0), lostTotal(hs)} }

func up(value float64) promtext.Family {
	return promtext.Family{
		Name: "redlatch_server_up", Help: "1 if the Redis server answered, 0 if it did not: then all that is known of now is missing.",
		Samples: []promtext.Sample{{Value: value}},
	}
}

func lostTotal(hs *Histories) promtext.Family {
	f := promtext.Family{
		Name:    "redlatch_server_lost_total",
		Help:    "Holds and permits that were lost since this process started, as far as clients were there to say so.",
		Counter: true, Label: "reason",
	}
	for _, reason := range slices.Concat(lossReasons, []redlatch.LossReason{otherReason}) {
		f.Samples = append(f.Samples, promtext.Sample{Label: string(reason), Value: float64(hs.lostBy[reason])})
	}
	return f
}

// Families are the metrics of a listing, which took so long, and of what was
// counted in it and before.
func (m *Metrics) Families(listing *Listing, took time.Duration, hs *Histories) []promtext.Family {
	complete := 0.0
	if listing.Problem == "" {
		complete = 1
	}
	families := []promtext.Family{
		up(1),
		gauge("redlatch_server_look_seconds", "How long it took to look at the server and to ask all clients.", took.Seconds()),
		gauge("redlatch_server_complete", "1 if all clients could be asked, 0 if not: then some of what only they know is missing.", complete),
		clients(listing), objects(listing),
	}
	families = append(families, m.byPrefix(listing)...)
	if listing.Asked {
		families = append(families, gauge("redlatch_server_possible_deadlocks", "Circles of callers that seem to wait for one another.", float64(len(listing.Deadlocks))))
	}
	return append(families, lostTotal(hs))
}

func gauge(name, help string, value float64) promtext.Family {
	return promtext.Family{Name: name, Help: help, Samples: []promtext.Sample{{Value: value}}}
}

func clients(listing *Listing) promtext.Family {
	f := promtext.Family{Name: "redlatch_server_clients", Help: "Clients of redlatch that listen, by whether they answered.", Label: "answered"}
	if listing.Asked {
		f.Samples = append(f.Samples, promtext.Sample{Label: "true", Value: float64(listing.Answered)})
	}
	if listing.Silent >= 0 {
		f.Samples = append(f.Samples, promtext.Sample{Label: "false", Value: float64(listing.Silent)})
	}
	return f
}

func objects(listing *Listing) promtext.Family {
	f := promtext.Family{Name: "redlatch_server_objects", Help: "Locks that are held and synchronizers that can be recognized, by their kind.", Label: "kind"}
	n := map[redlatch.Kind]int{}
	for i := range listing.Locks {
		if listing.Locks[i].Exists {
			n[listing.Locks[i].Kind]++
		}
	}
	for _, kind := range storedKinds {
		f.Samples = append(f.Samples, promtext.Sample{Label: string(kind), Value: float64(n[kind])})
	}
	return f
}

// byPrefix are the numbers of the groups. Those that only clients know are left
// out if they were not asked.
func (m *Metrics) byPrefix(listing *Listing) []promtext.Family {
	groups := m.groups(listing)
	prefixes := slices.SortedFunc(maps.Keys(groups), cmp.Compare[string])
	var families []promtext.Family
	add := func(name, help string, value func(g *group) float64) {
		f := promtext.Family{Name: name, Help: help, Label: "prefix"}
		for _, p := range prefixes {
			f.Samples = append(f.Samples, promtext.Sample{Label: p, Value: value(groups[p])})
		}
		families = append(families, f)
	}
	add("redlatch_server_held", "Holders of locks, as stored in Redis. Each reader and each value of a group is one.",
		func(g *group) float64 { return float64(g.held) })
	add("redlatch_server_permits", "Permits of expirable semaphores that are held.",
		func(g *group) float64 { return float64(g.permits) })
	if !listing.Asked {
		return families
	}
	add("redlatch_server_waiters", "Callers that wait, as far as they are known.",
		func(g *group) float64 { return float64(g.waiters) })
	add("redlatch_server_longest_wait_seconds", "For how long the caller has waited that has waited longest; 0 if none says so.",
		func(g *group) float64 { return g.longest.Seconds() })
	add("redlatch_server_oldest_hold_seconds", "For how long the holder has held that has held longest; 0 if none says so.",
		func(g *group) float64 { return g.oldest.Seconds() })
	add("redlatch_server_lost_within_an_hour", "Holds and permits that clients say they have lost within the last hour. It falls when a client ends.",
		func(g *group) float64 { return float64(g.lost) })
	return families
}
