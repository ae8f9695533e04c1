package main

import (
	"fmt"
	"math"
	"slices"
)

// A verdict is one line of the table of targets.
type verdict struct {
	Claim  string
	Target string
	Figure string
	Met    string // "met", "missed", "not measured"
}

const (
	met         = "met"
	missed      = "**missed**"
	notMeasured = "not measured"
)

// targets compares what a run shows with what redlatch set out to reach on
// rueidis. Each ratio is taken within an alternation; its median counts.
func targets(r results) []verdict {
	us, base := redlatchRueidis.name, floorRueidis.name
	var all []verdict
	for _, n := range []int{1, 64} {
		s := fmt.Sprintf("uncontended-%d", n)
		all = append(all, r.atLeast(s, us, s, base, rate, rate, 0.90, fmt.Sprintf("uncontended, %s: part of the floor", plural(n, "goroutine"))))
	}
	for _, n := range []int{1, 64} {
		s := fmt.Sprintf("uncontended-%d", n)
		all = append(all, r.atLeast(s, redlatchEndless.name, s, floorEndless.name, rate, rate, 0.90,
			fmt.Sprintf("uncontended, %s, contexts that cannot be cancelled: part of the floor", plural(n, "goroutine"))))
	}
	for _, p := range []struct {
		name   string
		factor float64
	}{{redislockDefault.name, 1.6}, {redsyncDefault.name, 2.4}, {rueidislockDefault.name, 2.8}} {
		all = append(all, r.atLeast("uncontended-64", us, "uncontended-64", p.name, rate, rate, p.factor, "uncontended, 64 goroutines: times "+p.name))
	}
	for _, n := range []int{16, 128} {
		s := fmt.Sprintf("contended-%d", n)
		title := fmt.Sprintf("one key, %d goroutines, empty section: ", n)
		all = append(all,
			r.timesBestPeer(s, us, 15, title),
			r.atMost(s, us, "uncontended-1", base, handOffP50, opP50, 0.1, title+"hand-off p50, as a part of the EVALSHA p50 at one goroutine"),
			r.level(s, us, jainIndex, 0.95, title+"Jain's index"),
		)
	}
	all = append(all, r.timesBestPeer("processes-4x16", us, 10, "one key, 4 processes x 16, empty section: "))
	for _, s := range []string{"processes-4x16", "processes-4x16-1ms"} {
		all = append(all, r.fairShares(s, us))
	}
	for _, s := range []string{fairHandOff, fairHandOffDelayed} {
		all = append(all, r.atMost(s, us, s, base, handOffP50, oneScript, 2.2, scenarioTitle(s)+": hand-off p50, as a multiple of the EVALSHA p50 on the same link"))
	}
	for _, s := range []string{"read-mostly-128", "read-only-128"} {
		all = append(all, r.atLeast(s, us, s, redissonPeer.name, rate, rate, 20, scenarioTitle(s)+": times "+redissonPeer.name))
	}
	all = append(all,
		r.atLeast(semaphoreOf8, us, semaphoreOf8, redissonPeer.name, rate, rate, 5, scenarioTitle(semaphoreOf8)+": times "+redissonPeer.name),
		r.atMost(latchFanOut, us, latchFanOut, redissonPeer.name, handOffP50, handOffP50, 0.5, scenarioTitle(latchFanOut)+": fan-out p50, as a part of "+redissonPeer.name+"'s"))
	for _, s := range []string{"uncontended-1", "uncontended-64"} {
		all = append(all,
			r.extraAllocs(s, us, base),
			r.extraAllocs(s, redlatchGoredis.name, floorGoredis.name))
	}
	return append(all, r.noOverlaps())
}

func (r results) atLeast(s, a, t, b string, f, g metric, bound float64, claim string) verdict {
	ratios := paired(r.of(s, a), r.of(t, b), ratioOf(f, g))
	return judge(claim, "at least "+short(bound), ratios, func(m float64) bool { return m >= bound })
}

func (r results) atMost(s, a, t, b string, f, g metric, bound float64, claim string) verdict {
	ratios := paired(r.of(s, a), r.of(t, b), ratioOf(f, g))
	return judge(claim, "at most "+short(bound), ratios, func(m float64) bool { return m <= bound })
}

func (r results) timesBestPeer(s, us string, bound float64, title string) verdict {
	best := r.bestPeer(s)
	if best == "" {
		return verdict{Claim: title + "times the best peer", Target: "at least " + short(bound), Met: notMeasured}
	}
	return r.atLeast(s, us, s, best, rate, rate, bound, title+"times the best peer, "+best)
}

func (r results) level(s, a string, f metric, bound float64, claim string) verdict {
	return judge(claim, "at least "+short(bound), figures(r.of(s, a), f), func(m float64) bool { return m >= bound })
}

func (r results) extraAllocs(s, us, base string) verdict {
	more := paired(r.of(s, us), r.of(s, base), func(a, b measurement) float64 { return a.Allocs - b.Allocs })
	claim := fmt.Sprintf("%s, %s: allocations a pair beyond the client's own", s, us)
	return judge(claim, "at most 6", more, func(m float64) bool { return m <= 6.05 }) // timers and the runtime add hundredths
}

// fairShares is strict: the worst process of the worst run counts.
func (r results) fairShares(s, us string) verdict {
	v := verdict{Claim: scenarioTitle(s) + ": share of each process in each run", Target: "20 to 30 %", Met: notMeasured}
	var shares []float64
	for _, m := range finished(r.of(s, us)) {
		shares = append(shares, m.ProcessShares...)
	}
	if len(shares) == 0 {
		return v
	}
	low, high := slices.Min(shares), slices.Max(shares)
	v.Figure = fmt.Sprintf("%.1f to %.1f %%", 100*low, 100*high)
	v.Met = verdictOf(low >= 0.2 && high <= 0.3)
	return v
}

// noOverlaps is strict, too, and about redlatch in all its runs.
func (r results) noOverlaps() verdict {
	var overlaps, acquisitions int64
	var runs, unfinished int
	for _, m := range r {
		i, _ := implementationNamed(m.Implementation)
		s, _ := scenarioNamed(m.Scenario)
		if i.kind != ours || !s.Contended {
			continue
		}
		runs++
		overlaps += m.Violations
		acquisitions += m.Acquisitions
		if m.DidNotFinish != "" {
			unfinished++
		}
	}
	v := verdict{Claim: "redlatch, all contended runs: more inside at once than may be, or back too early", Target: "0", Met: notMeasured}
	if runs > 0 {
		v.Figure = fmt.Sprintf("%d in %s acquisitions, %d runs, %d unfinished", overlaps, thousands(float64(acquisitions)), runs, unfinished)
		v.Met = verdictOf(overlaps == 0 && unfinished == 0)
	}
	return v
}

func judge(claim, target string, values []float64, ok func(float64) bool) verdict {
	m := median(values)
	if math.IsNaN(m) {
		return verdict{Claim: claim, Target: target, Met: notMeasured}
	}
	return verdict{Claim: claim, Target: target, Met: verdictOf(ok(m)), Figure: spanOf(values)}
}

func verdictOf(ok bool) string {
	if ok {
		return met
	}
	return missed
}

func scenarioTitle(name string) string {
	s, ok := scenarioNamed(name)
	if !ok {
		return name
	}
	return s.Title
}
