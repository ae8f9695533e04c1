package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
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
	fair := []string{"fair-4x16", fairHandOff, fairHandOffDelayed, fairFewWait, fairManyWait}
	all = append(all,
		inEach(fair, redlatchRueidis, perHandOff(scriptsOf), bound{value: 2.2, most: true}, "one fair lock, processes x goroutines: scripts for each hand-off"),
		inEach(fair, redlatchRueidis, perHandOff(commandsOf), bound{value: 30, most: true}, "one fair lock, processes x goroutines: commands for each hand-off"),
		atMost(row{fairManyWait, us}, row{fairFewWait, us}, ratioOf(perHandOff(serverCPU), perHandOff(serverCPU)), 2,
			"one fair lock, 512 goroutines of 4 processes: server CPU for each hand-off, as a multiple of that with 16"),
		inEach([]string{crowdPasses}, redlatchRueidis, perCrossing(scriptsOf), bound{value: 10, most: true}, "one key, 10,000 callers: scripts for each hand-off to another process"))
	for _, s := range []string{"read-mostly-128", "read-only-128"} {
		all = append(all, atLeast(row{s, us}, row{s, redissonPeer.name}, ratioOf(rate, rate), 20, scenarioTitle(s)+": times "+redissonPeer.name))
	}
	return append(all,
		atLeast(row{semaphoreOf8, us}, row{semaphoreOf8, redissonPeer.name}, ratioOf(rate, rate), 5, scenarioTitle(semaphoreOf8)+": times "+redissonPeer.name),
		atMost(row{latchFanOut, us}, row{latchFanOut, redissonPeer.name}, ratioOf(handOffP50, handOffP50), 0.5, scenarioTitle(latchFanOut)+": fan-out p50, as a part of "+redissonPeer.name+"'s"),
		inEach([]string{censusOf1000}, redlatchRueidis, coreShare, bound{value: 1, most: true, unit: " %"},
			scenarioTitle(censusOf1000)+": part of a core of the server"),
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
			atEachWidth(allWidths, c.us, c.base, ratioOf(rate, rate), bound{value: 0.90}, title+"part of the floor's rate at each width"),
			overAllWidths(c.us, c.base, bound{value: 0.95}, title+"part of the floor's rate, geometric mean of all widths"),
			atEachWidth(allWidths, c.us, c.base, lessOf(clientCPU), bound{value: 3, most: true, unit: " µs"}, title+"client CPU a pair beyond the floor's at each width"))
	}
	for _, c := range []struct {
		us, base implementation
		contexts string
	}{{redlatchGoredis, floorGoredis, ""}, {redlatchGoredisEndless, floorGoredisEndless, ", contexts that cannot be cancelled"}} {
		title := "uncontended, go-redis" + c.contexts + ": "
		all = append(all,
			atEachWidth(allWidths, c.us, c.base, lessOf(clientCPU), bound{value: 8, most: true, unit: " µs"}, title+"client CPU a pair beyond the floor's at each width"),
			atEachWidth(allWidths, c.us, c.base, lessOf(allocs), bound{value: 10, most: true, slack: hundredths}, title+"allocations a pair beyond the floor's at each width"))
	}
	narrow, wide := allWidths[:slices.Index(allWidths, 8)], allWidths[slices.Index(allWidths, 8):]
	all = append(all,
		atEachWidth(narrow, redlatchGoredis, redislockDefault, ratioOf(rate, rate), bound{value: 0.9}, "uncontended, go-redis, 1 to 4 goroutines: times redislock at each width"),
		atEachWidth(wide, redlatchGoredis, redislockDefault, ratioOf(rate, rate), bound{value: 1}, "uncontended, go-redis, 8 goroutines and more: times redislock at each width"))
	many := allWidths[slices.Index(allWidths, 32):]
	return append(all,
		atEachWidth(many, redlatchShared, redlatchGoredis, ratioOf(rate, rate), bound{value: 1.3},
			"uncontended, go-redis with shared pipelines, 32 goroutines and more: times redlatch on go-redis at each width"),
		atEachWidth(allWidths, redlatchRueidis, floorRueidis, lessOf(allocs), bound{value: 6, most: true, slack: hundredths}, "uncontended, rueidis: allocations a pair beyond the floor's at each width"),
		atEachWidth(fewWidths, redlatchNamed, floorRueidis, lessOf(allocs), bound{value: 8, most: true, slack: hundredths}, "uncontended, rueidis, a Lock made for each pair: allocations a pair beyond the floor's"))
}

// hundredths is what timers and the runtime add to counts of allocations.
const hundredths = 0.05

// A variant is one of several that a target is about.
type variant struct {
	decidedBy []row
	values    func(results) []float64
	where     string // "at 8 goroutines"
}

// A bound is the most that may be, or else the least.
type bound struct {
	value float64
	most  bool
	unit  string
	slack float64
}

func (b bound) String() string {
	if b.most {
		return "at most " + short(b.value) + b.unit
	}
	return "at least " + short(b.value) + b.unit
}

// excess is positive for what is beyond the bound.
func (b bound) excess(value float64) float64 {
	if b.most {
		return value - b.value - b.slack
	}
	return b.value - value
}

// worstOf is judged by the variant with the worst median. All have to be measured.
func worstOf(variants []variant, b bound, claim string) target {
	var decidedBy []row
	for _, v := range variants {
		decidedBy = append(decidedBy, v.decidedBy...)
	}
	return target{decidedBy, func(r results) verdict {
		worst, figure := math.Inf(-1), ""
		for _, v := range variants {
			values := v.values(r)
			m := median(values)
			if math.IsNaN(m) {
				return verdict{Claim: claim, Target: b.String(), Met: notMeasured}
			}
			if excess := b.excess(m); excess > worst {
				worst, figure = excess, strings.TrimSpace(spanOf(values)+b.unit+" "+v.where)
			}
		}
		return verdict{Claim: claim, Target: b.String(), Figure: figure, Met: verdictOf(worst <= 0)}
	}}
}

// atEachWidth has us compared with base for each number of goroutines.
func atEachWidth(widths []int, us, base implementation, compare comparing, b bound, claim string) target {
	var variants []variant
	for _, n := range widths {
		x, y := row{uncontended(n), us.name}, row{uncontended(n), base.name}
		variants = append(variants, variant{[]row{x, y}, func(r results) []float64 { return r.paired(x, y, compare) }, "at " + plural(n, "goroutine")})
	}
	return worstOf(variants, b, claim)
}

// inEach has a figure of us in each scenario.
func inEach(scenarios []string, us implementation, f metric, b bound, claim string) target {
	var variants []variant
	for _, name := range scenarios {
		s, _ := scenarioNamed(name)
		where := fmt.Sprintf("with %d x %d", s.Processes, s.Goroutines)
		if s.Delay > 0 {
			where += fmt.Sprintf(" and round trips %v longer", s.Delay)
		}
		x := row{name, us.name}
		variants = append(variants, variant{[]row{x}, func(r results) []float64 { return figures(r.in(x), f) }, where})
	}
	return worstOf(variants, b, claim)
}

// overAllWidths has the geometric mean of the ratios of all widths.
func overAllWidths(us, base implementation, b bound, claim string) target {
	var decidedBy []row
	for _, n := range allWidths {
		decidedBy = append(decidedBy, row{uncontended(n), us.name}, row{uncontended(n), base.name})
	}
	return worstOf([]variant{{decidedBy, func(r results) []float64 { return r.meansOfWidths(us, base) }, ""}}, b, claim)
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
