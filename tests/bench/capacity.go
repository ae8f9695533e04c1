package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"
)

// unitCosts are what the model of very many clients takes for granted: bytes, and
// microseconds of the server's CPU time.
type unitCosts struct {
	hold, connection, subscription float64 // bytes
	renewal                        float64 // of one hold, in a script for a hundred
	alone                          float64 // of one hold, in a script of its own
	check                          float64 // that a client library makes of an idle connection
	message                        float64 // to each that listens
	answer                         float64 // of one client that is asked what it holds, with all that comes of it
}

// measuredCosts are rounded from docs/performance.md, whose section Scale shows
// them beside those of its own run. The checks are those that production.md tells
// of: 60 µs each second for a client, whose two connections are checked twice.
var measuredCosts = unitCosts{hold: 190, connection: 38_000, subscription: 240, renewal: 2.5, alone: 4.4, check: 15, message: 6, answer: 49}

// A fleet is what the model is asked about. The holds are spread evenly over the
// clients, and over the primaries.
type fleet struct {
	clients, holds int
	checked        time.Duration // how often a client library checks each idle connection
	cluster        bool          // the primaries are of one Cluster, else they are independent servers
}

// What all fleets have in common.
const (
	renewedEach    = 10 * time.Second // a third of the default WatchdogTimeout
	inScript       = renewedTogether  // holds that one script renews
	slots          = 16_384           // of a Cluster: a script renews holds of one slot
	releasedEach   = time.Second      // a lock for which all clients wait
	askedEach      = refresh          // by somebody who wants to know what all clients hold
	answersSpread  = 100 * time.Millisecond
	linksOfClient  = 2
	halfACore      = 0.5 // what a primary may be busy with all this
	simulated      = 30 * time.Second
	checkedUsually = 3 * time.Second / 6 // as rueidis and valkey-go do with the time-outs that their adapters set
	checkedRarely  = 10 * time.Second / 6
	maxclients     = 10_000 // of Redis, unless it is set
)

var fleets = []fleet{
	{1_000, 100_000, checkedUsually, false},
	{1_000, 1_000_000, checkedUsually, false},
	{10_000, 1_000_000, checkedUsually, false},
	{10_000, 1_000_000, checkedRarely, false},
	{10_000, 10_000_000, checkedRarely, false},
	{10_000, 100_000_000, checkedRarely, false},
}

// A load is which part of a core something takes of one primary.
type load struct{ renewals, checks, messages, census float64 }

func (l load) sum() float64 { return l.renewals + l.fixed() }

// fixed is what more primaries do not make less.
func (l load) fixed() float64 { return l.checks + l.messages + l.census }

// largest names what takes most, in the words of the table.
func (l load) largest() string {
	most := max(l.renewals, l.checks, l.messages, l.census)
	switch most {
	case l.renewals:
		return "renewals"
	case l.checks:
		return "checks of idle connections"
	case l.messages:
		return "messages"
	default:
		return "asking all clients"
	}
}

// load is what the busiest of so many primaries has: all clients are connected to
// each, and one has the lock for which all wait, and the questions.
func (p fleet) load(u unitCosts, primaries int) load {
	each := func(micros float64, period time.Duration) float64 { return micros / 1e6 / period.Seconds() }
	clients := float64(p.clients)
	return load{
		renewals: each(p.renewals(u, primaries), renewedEach),
		checks:   each(u.check*linksOfClient*clients, p.checked),
		messages: each(u.message*clients, releasedEach),
		census:   each(u.answer*clients, askedEach),
	}
}

// scripts is how many a client sends to each primary to renew what it holds there.
func (p fleet) scripts(primaries int) float64 {
	each := float64(p.holds) / float64(p.clients)
	if !p.cluster {
		return math.Ceil(each / float64(primaries) / inScript)
	}
	return slots * scriptsOfSlot(each/slots) / float64(primaries)
}

// scriptsOfSlot is how many scripts renew the holds of one slot. There are so many
// on average, and the names fall where they may (after Poisson). So some slots
// need one script more than others.
func scriptsOfSlot(average float64) (all float64) {
	spread := 10 + 9*math.Sqrt(average) // beyond is next to nothing
	for n := max(1, math.Floor(average-spread)); n <= average+spread; n++ {
		ways, _ := math.Lgamma(n + 1)
		all += math.Ceil(n/inScript) * math.Exp(n*math.Log(average)-average-ways)
	}
	return all
}

// renewals is the time that one primary needs to renew all that it has, once: each
// hold takes its time, and so does each script.
func (p fleet) renewals(u unitCosts, primaries int) float64 {
	script := (u.alone - u.renewal) / (1 - 1.0/inScript)
	return (u.alone-script)*float64(p.holds)/float64(primaries) + script*p.scripts(primaries)*float64(p.clients)
}

// primaries is how many it takes until none is busy for more than half of the
// time. More are of no use if clients cost too much by themselves: then there is
// one.
func (p fleet) primaries(u unitCosts) int {
	if p.load(u, math.MaxInt32).sum() >= halfACore {
		return 1
	}
	return 1 + sort.Search(math.MaxInt32, func(n int) bool { return p.load(u, n+1).sum() <= halfACore })
}

// most is how many holds such clients may have until so many primaries are busy
// for half of the time.
func (p fleet) most(u unitCosts, primaries int) int {
	return max(0, sort.Search(math.MaxInt32, func(n int) bool {
		p.holds = n
		return p.load(u, primaries).sum() > halfACore
	})-1)
}

// A demand is a request of the simulation: the server takes one after the other.
type demand struct{ at, takes float64 } // seconds

// longestWait simulates half a minute of the busiest primary, and returns how long
// a request has to wait at most.
func (p fleet) longestWait(u unitCosts, primaries int) time.Duration {
	chance := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	var all []demand
	add := func(at, micros float64) { all = append(all, demand{at, micros / 1e6}) }
	// again adds a request each period, from a chosen moment on.
	again := func(period time.Duration, micros float64, requests int) {
		for at := chance.Float64() * period.Seconds(); at < simulated.Seconds(); at += period.Seconds() {
			for range requests {
				add(at, micros)
			}
		}
	}
	for range p.clients {
		for range linksOfClient {
			again(p.checked, u.check, 1)
		}
		// What a client holds it renews all at once.
		scripts := int(math.Ceil(p.scripts(primaries)))
		again(renewedEach, p.renewals(u, primaries)/float64(p.clients*scripts), scripts)
	}
	again(releasedEach, u.message*float64(p.clients), 1)
	for at := 0.0; at < simulated.Seconds(); at += askedEach.Seconds() {
		for range p.clients {
			add(at+chance.Float64()*answersSpread.Seconds(), u.answer)
		}
	}
	return wait(all)
}

// wait returns how long the one has to wait that waits longest, if each is served
// in its turn.
func wait(all []demand) time.Duration {
	slices.SortFunc(all, func(a, b demand) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		default:
			return 0
		}
	})
	var free, longest float64 // when the server is free
	for _, d := range all {
		longest = max(longest, free-d.at)
		free = max(free, d.at) + d.takes
	}
	return time.Duration(longest * float64(time.Second))
}

// memory is what one primary needs.
func (p fleet) memory(u unitCosts, primaries int) string {
	bytes := u.hold*float64(p.holds)/float64(primaries) + u.connection*float64(p.clients*linksOfClient) + u.subscription*float64(p.clients)
	return fmt.Sprintf("%.1f GB", bytes/1e9)
}

// capacityTable is the first table of docs/production.md.
func capacityTable(u unitCosts) string {
	t := table{head: []string{
		"clients", "holds in all", "idle connections are checked each", "primaries", "connections of each", "memory of each",
		"busy with renewals", "with checks", "with messages", "with questions", "longest wait", "the first limit",
	}}
	for _, p := range fleets {
		n := p.primaries(u)
		l := p.load(u, n)
		links := p.clients * linksOfClient
		waits := "grows without end"
		if l.sum() < 1 {
			waits = fmt.Sprintf("%d ms", p.longestWait(u, n).Milliseconds())
		}
		first := l.largest()
		if links > maxclients {
			first = "connections, then " + first
		}
		t.add(
			thousands(float64(p.clients)), thousands(float64(p.holds)), fmt.Sprintf("%.1f s", p.checked.Seconds()), fmt.Sprint(n), thousands(float64(links)),
			p.memory(u, n), percent(l.renewals), percent(l.checks), percent(l.messages), percent(l.census), waits, first,
		)
	}
	return t.String()
}

// clusterSizes are the primaries of the Clusters that the second table has.
var clusterSizes = []int{1, 3, 10}

// clusterTable is the second table: what Clusters bear. Their primaries share the
// holds, and nothing else.
func clusterTable(u unitCosts) string {
	t := table{head: []string{
		"clients", "primaries", "connections of each primary", "of each client", "busy with checks", "with messages", "with questions", "with renewals",
		"holds in all, at most", "of independent servers", "memory of each", "the first limit",
	}}
	for _, p := range []fleet{{1_000, 0, checkedUsually, true}, {10_000, 0, checkedUsually, true}, {10_000, 0, checkedRarely, true}} {
		for _, n := range clusterSizes {
			p.holds = p.most(u, n)
			apart := p
			apart.cluster = false
			l := p.load(u, n)
			links := p.clients * linksOfClient
			first := l.largest()
			if links > maxclients {
				first = "connections, then " + first
			}
			t.add(
				thousands(float64(p.clients)), fmt.Sprint(n), thousands(float64(links)), fmt.Sprint(n*linksOfClient),
				fmt.Sprintf("%s (one each %.1f s)", percent(l.checks), p.checked.Seconds()), percent(l.messages), percent(l.census), percent(l.renewals),
				millions(p.holds), millions(apart.most(u, n)), p.memory(u, n), first,
			)
		}
	}
	return t.String()
}

// millions rounds what is no more exact.
func millions(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f million", float64(n)/1e6)
}
