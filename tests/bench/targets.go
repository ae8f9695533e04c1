package main

import (
	"fmt"
	"maps"
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

// A target is what redlatch set out to reach. It knows which rows decide it, and
// those are measured in every run.
type target struct {
	decidedBy []row
	judge     func(results) verdict
}

// A row is what one implementation shows in one scenario.
type row struct{ scenario, implementation string }

func (r results) in(x row) []measurement { return r.of(x.scenario, x.implementation) }

var targets = makeTargets()

// verdicts compares what a run shows with the targets.
func (r results) verdicts() []verdict {
	var all []verdict
	for _, t := range targets {
		all = append(all, t.judge(r))
	}
	return all
}

// decisive says whether a target depends on what i shows in s.
func decisive(s scenario, i implementation) bool {
	return slices.ContainsFunc(targets, func(t target) bool { return slices.Contains(t.decidedBy, row{s.Name, i.name}) })
}

// makeTargets returns the targets of all implementations that there are. Each
// ratio and each difference is taken within an alternation; its median counts.
func makeTargets() []target {
	us, base := redlatchRueidis.name, floorRueidis.name
	all := widthTargets()
	for _, p := range []struct {
		name   string
		factor float64
	}{{redislockDefault.name, 1.6}, {redsyncDefault.name, 2.4}, {rueidislockDefault.name, 2.8}} {
		s := uncontended(64)
		all = append(all, atLeast(row{s, us}, row{s, p.name}, ratioOf(rate, rate), p.factor, "uncontended, 64 goroutines: times "+p.name))
	}
	for _, n := range []int{16, 128} {
		s := fmt.Sprintf("contended-%d", n)
		title := fmt.Sprintf("one key, %d goroutines, empty section: ", n)
		all = append(all,
			timesBestPeer(s, us, 15, title),
			atMost(row{s, us}, row{uncontended(1), base}, ratioOf(handOffP50, opP50), 0.1, title+"hand-off p50, as a part of the EVALSHA p50 at one goroutine"),
			levelAtLeast(row{s, us}, jainIndex, 0.95, title+"Jain's index"),
		)
	}
	for _, s := range []string{"contended-16", "contended-16-1ms"} {
		all = append(all, atLeast(row{s, us}, row{s, weighted.name}, ratioOf(rate, rate), 1.0/3, scenarioTitle(s)+": part of the acquisitions of "+weighted.name))
	}
	all = append(all, timesBestPeer("processes-4x16", us, 10, "one key, 4 processes x 16, empty section: "))
	for _, s := range []string{"processes-4x16", "processes-4x16-1ms"} {
		all = append(all, fairShares(row{s, us}))
	}
	for _, s := range []string{fairHandOff, fairHandOffDelayed} {
		all = append(all, atMost(row{s, us}, row{s, base}, ratioOf(handOffP50, oneScript), 2.2, scenarioTitle(s)+": hand-off p50, as a multiple of the EVALSHA p50 on the same link"))
	}
	for _, s := range []string{"fair-4x16", fairHandOff, fairHandOffDelayed, fairFewWait, fairManyWait} {
		all = append(all,
			atMostEach(row{s, us}, perHandOff(scriptsOf), 2.2, scenarioTitle(s)+": scripts for each hand-off"),
			atMostEach(row{s, us}, perHandOff(commandsOf), 30, scenarioTitle(s)+": commands for each hand-off"))
	}
	all = append(all,
		atMost(row{fairManyWait, us}, row{fairFewWait, us}, ratioOf(perHandOff(serverCPU), perHandOff(serverCPU)), 2,
			"one fair lock, 512 goroutines of 4 processes: server CPU for each hand-off, as a multiple of that with 16"),
		atMostEach(row{crowdPasses, us}, perCrossing(scriptsOf), 10, scenarioTitle(crowdPasses)+": scripts for each hand-off to another process"))
	for _, s := range []string{"read-mostly-128", "read-only-128"} {
		all = append(all, atLeast(row{s, us}, row{s, redissonPeer.name}, ratioOf(rate, rate), 20, scenarioTitle(s)+": times "+redissonPeer.name))
	}
	return append(all,
		atLeast(row{semaphoreOf8, us}, row{semaphoreOf8, redissonPeer.name}, ratioOf(rate, rate), 5, scenarioTitle(semaphoreOf8)+": times "+redissonPeer.name),
		atMost(row{latchFanOut, us}, row{latchFanOut, redissonPeer.name}, ratioOf(handOffP50, handOffP50), 0.5, scenarioTitle(latchFanOut)+": fan-out p50, as a part of "+redissonPeer.name+"'s"),
		noOverlaps())
}

// widthTargets are about uncontended pairs, from one goroutine to very many.
func widthTargets() []target {
	var all []target
	for _, c := range []struct {
		us, base implementation
		contexts string
	}{{redlatchRueidis, floorRueidis, ""}, {redlatchEndless, floorEndless, ", contexts that cannot be cancelled"}} {
		title := "uncontended, rueidis" + c.contexts + ": "
		all = append(all,
			atEachWidth(allWidths, c.us, c.base, ratioOf(rate, rate), "", 0.90, false, title+"part of the floor's rate at each width"),
			overAllWidths(c.us, c.base, 0.95, title+"part of the floor's rate, geometric mean of all widths"),
			atEachWidth(allWidths, c.us, c.base, lessOf(clientCPU), " µs", 3, true, title+"client CPU a pair beyond the floor's at each width"))
	}
	for _, c := range []struct {
		us, base implementation
		contexts string
	}{{redlatchGoredis, floorGoredis, ""}, {redlatchGoredisEndless, floorGoredisEndless, ", contexts that cannot be cancelled"}} {
		title := "uncontended, go-redis" + c.contexts + ": "
		all = append(all,
			atEachWidth(allWidths, c.us, c.base, lessOf(clientCPU), " µs", 8, true, title+"client CPU a pair beyond the floor's at each width"),
			atEachWidth(allWidths, c.us, c.base, lessOf(allocs), "", 10, true, title+"allocations a pair beyond the floor's at each width"))
	}
	narrow, wide := allWidths[:slices.Index(allWidths, 8)], allWidths[slices.Index(allWidths, 8):]
	all = append(all,
		atEachWidth(narrow, redlatchGoredis, redislockDefault, ratioOf(rate, rate), "", 0.9, false, "uncontended, go-redis, 1 to 4 goroutines: times redislock at each width"),
		atEachWidth(wide, redlatchGoredis, redislockDefault, ratioOf(rate, rate), "", 1, false, "uncontended, go-redis, 8 goroutines and more: times redislock at each width"))
	if shared, ok := implementationNamed(sharedPipelines); ok {
		many := allWidths[slices.Index(allWidths, 32):]
		all = append(all, atEachWidth(many, shared, redlatchGoredis, ratioOf(rate, rate), "", 1.3, false,
			"uncontended, go-redis with shared pipelines, 32 goroutines and more: times redlatch on go-redis at each width"))
	}
	return append(all,
		atEachWidth(allWidths, redlatchRueidis, floorRueidis, lessOf(allocs), "", 6, true, "uncontended, rueidis: allocations a pair beyond the floor's at each width"),
		atEachWidth(fewWidths, redlatchNamed, floorRueidis, lessOf(allocs), "", 8, true, "uncontended, rueidis, a Lock made for each pair: allocations a pair beyond the floor's"))
}

// hundredths is what timers and the runtime add to counts of allocations.
const hundredths = 0.05

// atEachWidth has us compared with base for each number of goroutines; the worst
// median decides. The bound is the most that may be, or else the least.
func atEachWidth(widths []int, us, base implementation, compare comparing, unit string, bound float64, most bool, claim string) target {
	var decidedBy []row
	for _, n := range widths {
		decidedBy = append(decidedBy, row{uncontended(n), us.name}, row{uncontended(n), base.name})
	}
	sign, text := -1.0, "at least "
	if most {
		sign, text = 1, "at most "
	}
	return target{decidedBy, func(r results) verdict {
		v := verdict{Claim: claim, Target: text + short(bound) + unit, Met: notMeasured}
		worst := math.Inf(-1)
		for _, n := range widths {
			values := r.paired(row{uncontended(n), us.name}, row{uncontended(n), base.name}, compare)
			m := median(values)
			if math.IsNaN(m) {
				return verdict{Claim: claim, Target: v.Target, Met: notMeasured}
			}
			if sign*m > worst {
				worst = sign * m
				v.Figure = spanOf(values) + unit + " at " + plural(n, "goroutine")
			}
		}
		slack := 0.0
		if most {
			slack = hundredths
		}
		v.Met = verdictOf(worst <= sign*bound+slack)
		return v
	}}
}

// overAllWidths has the geometric mean of the ratios of all widths, run by run.
func overAllWidths(us, base implementation, bound float64, claim string) target {
	var decidedBy []row
	for _, n := range allWidths {
		decidedBy = append(decidedBy, row{uncontended(n), us.name}, row{uncontended(n), base.name})
	}
	return target{decidedBy, func(r results) verdict {
		return judge(claim, "at least "+short(bound), r.meansOfWidths(us, base), func(m float64) bool { return m >= bound })
	}}
}

// meansOfWidths are the geometric means of the ratios of two rates over all
// widths, of each run in which both finished everywhere.
func (r results) meansOfWidths(us, base implementation) []float64 {
	byRun := map[int][]float64{}
	for _, n := range allWidths {
		r.paired(row{uncontended(n), us.name}, row{uncontended(n), base.name}, func(a, b measurement) float64 {
			byRun[a.Run] = append(byRun[a.Run], rate(a)/rate(b))
			return 0
		})
	}
	var means []float64
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		if len(byRun[run]) == len(allWidths) {
			means = append(means, geometricMean(byRun[run]))
		}
	}
	return means
}

func atLeast(a, b row, compare comparing, bound float64, claim string) target {
	return target{[]row{a, b}, func(r results) verdict {
		return judge(claim, "at least "+short(bound), r.paired(a, b, compare), func(m float64) bool { return m >= bound })
	}}
}

func atMost(a, b row, compare comparing, bound float64, claim string) target {
	return target{[]row{a, b}, func(r results) verdict {
		return judge(claim, "at most "+short(bound), r.paired(a, b, compare), func(m float64) bool { return m <= bound })
	}}
}

func timesBestPeer(s, us string, bound float64, title string) target {
	decidedBy := []row{{s, us}}
	for _, i := range implementations {
		if i.kind == peer {
			decidedBy = append(decidedBy, row{s, i.name})
		}
	}
	return target{decidedBy, func(r results) verdict {
		best := r.bestPeer(s)
		if best == "" {
			return verdict{Claim: title + "times the best peer", Target: "at least " + short(bound), Met: notMeasured}
		}
		return atLeast(row{s, us}, row{s, best}, ratioOf(rate, rate), bound, title+"times the best peer, "+best).judge(r)
	}}
}

func atMostEach(a row, f metric, bound float64, claim string) target {
	return target{[]row{a}, func(r results) verdict {
		return judge(claim, "at most "+short(bound), figures(r.in(a), f), func(m float64) bool { return m <= bound })
	}}
}

func levelAtLeast(a row, f metric, bound float64, claim string) target {
	return target{[]row{a}, func(r results) verdict {
		return judge(claim, "at least "+short(bound), figures(r.in(a), f), func(m float64) bool { return m >= bound })
	}}
}

// fairShares is strict: the worst process of the worst run counts.
func fairShares(a row) target {
	return target{[]row{a}, func(r results) verdict {
		v := verdict{Claim: scenarioTitle(a.scenario) + ": share of each process in each run", Target: "20 to 30 %", Met: notMeasured}
		var shares []float64
		for _, m := range finished(r.in(a)) {
			shares = append(shares, m.ProcessShares...)
		}
		if len(shares) == 0 {
			return v
		}
		low, high := slices.Min(shares), slices.Max(shares)
		v.Figure = fmt.Sprintf("%.1f to %.1f %%", 100*low, 100*high)
		v.Met = verdictOf(low >= 0.2 && high <= 0.3)
		return v
	}}
}

// noOverlaps is strict, too, and about redlatch in all its runs.
func noOverlaps() target {
	return target{nil, func(r results) verdict {
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
	}}
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
