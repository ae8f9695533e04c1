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
	Met    string // "met", "missed", "not decided", "not measured"
}

const (
	met         = "met"
	missed      = "**missed**"
	undecided   = "not decided"
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
// ratio and each difference is taken within an alternation. The interval of their
// median decides: it is on one side of the target, or nothing is decided.
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
	farFairs := []string{fairHandOff}
	for _, delay := range distances {
		farFairs = append(farFairs, farFair(delay))
	}
	for _, s := range farFairs {
		all = append(all, atMost(row{s, us}, row{s, base}, ratioOf(handOffP50, oneScript), 2.2, scenarioTitle(s)+": hand-off p50, as a multiple of the EVALSHA p50 on the same link"))
	}
	fair := append([]string{"fair-4x16", fairFewWait, fairManyWait}, farFairs...)
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

// widthTargets are about uncontended pairs, from one goroutine to very many: at
// the distance that users have, and over loopback, where processors decide.
func widthTargets() []target {
	var all []target
	for _, c := range []struct {
		client   string
		us, base implementation
		peers    func(implementation) bool // of whom the best is to be reached
	}{
		{"rueidis", redlatchRueidis, floorRueidis, func(implementation) bool { return true }},
		{"go-redis", redlatchGoredis, floorGoredis, func(i implementation) bool { return i.name == redislockDefault.name || i.name == redsyncDefault.name }}, // which run on it, too
	} {
		title := fmt.Sprintf("uncontended, %s, round trips %v longer, up to 64 goroutines: ", c.client, withinZone)
		all = append(all,
			atEachWidth(zone, upTo64, c.us, c.base, ratioOf(rate, rate), bound{value: 0.97}, title+"part of the floor's rate at each width"),
			bestPeerAtEachWidth(zone, upTo64, c.us, c.peers, bound{value: 1}, title+"times the best peer at each width"))
	}
	all = append(all,
		atEachWidth(uncontended, allWidths, redlatchRueidis, floorRueidis, ratioOf(rate, rate), bound{value: 0.85}, "uncontended, rueidis: part of the floor's rate at each width"),
		overAllWidths(redlatchRueidis, floorRueidis, bound{value: 0.92}, "uncontended, rueidis: part of the floor's rate, geometric mean of all widths"),
		atEachWidth(uncontended, allWidths[3:8], redlatchGoredis, redislockDefault, ratioOf(rate, rate), bound{value: 0.92}, "uncontended, go-redis, 8 to 128 goroutines: times redislock at each width"),
		atEachWidth(uncontended, allWidths, redlatchShared, redislockDefault, ratioOf(rate, rate), bound{value: 1}, "uncontended, go-redis with shared pipelines: times redislock at each width"))
	for _, c := range []struct {
		what     string
		widths   []int
		us, base implementation
		most     float64
	}{
		{"rueidis: allocations a pair beyond the floor's at each width", allWidths, redlatchRueidis, floorRueidis, 6},
		{"rueidis, a Lock made for each pair: allocations a pair beyond the floor's", fewWidths, redlatchNamed, floorRueidis, 8},
		{"go-redis: allocations a pair beyond the floor's at each width", allWidths, redlatchGoredis, floorGoredis, 10},
		{"go-redis, contexts that cannot be cancelled: allocations a pair beyond the floor's", fewWidths, redlatchGoredisEndless, floorGoredisEndless, 10},
	} {
		all = append(all, counted(atEachWidth(uncontended, c.widths, c.us, c.base, lessOf(allocs), bound{value: c.most, most: true, slack: hundredths}, "uncontended, "+c.what)))
	}
	return all
}

// counted is a target about what is counted. That is nearly the same in each run,
// so a third of them decides it.
func counted(t target) target {
	t.decidedBy = nil
	return t
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

// judge says whether the interval of values keeps the bound, is beyond it, or
// spans it.
func (b bound) judge(values []float64) string {
	s := summarize(values)
	low, high := b.excess(s.Lo), b.excess(s.Hi)
	switch {
	case math.IsNaN(s.Center):
		return notMeasured
	case max(low, high) <= 0:
		return met
	case min(low, high) > 0:
		return missed
	default:
		return undecided
	}
}

// worse orders what is measured.
var worse = []string{met, undecided, missed}

// worstOf is judged by the worst variant: one that misses the bound, else one that
// does not decide it, and among those the one with the worst median. All have to
// be measured.
func worstOf(variants []variant, b bound, claim string) target {
	var decidedBy []row
	for _, v := range variants {
		decidedBy = append(decidedBy, v.decidedBy...)
	}
	return target{decidedBy, func(r results) verdict {
		worst, all := math.Inf(-1), verdict{Claim: claim, Target: b.String(), Met: notMeasured}
		for _, v := range variants {
			values := v.values(r)
			got := b.judge(values)
			if got == notMeasured {
				return verdict{Claim: claim, Target: b.String(), Met: notMeasured}
			}
			excess := b.excess(median(values))
			if c := slices.Index(worse, got) - slices.Index(worse, all.Met); c > 0 || c == 0 && excess > worst {
				worst, all.Met, all.Figure = excess, got, strings.TrimSpace(spanOf(values)+b.unit+" "+v.where)
			}
		}
		return all
	}}
}

// atEachWidth has us compared with base for each number of goroutines, in the
// scenario of that.
func atEachWidth(scenario func(goroutines int) string, widths []int, us, base implementation, compare comparing, b bound, claim string) target {
	var variants []variant
	for _, n := range widths {
		x, y := row{scenario(n), us.name}, row{scenario(n), base.name}
		variants = append(variants, variant{[]row{x, y}, func(r results) []float64 { return r.paired(x, y, compare) }, "at " + plural(n, "goroutine")})
	}
	return worstOf(variants, b, claim)
}

// bestPeerAtEachWidth compares rates with those of the peer that is the quickest
// there.
func bestPeerAtEachWidth(scenario func(goroutines int) string, widths []int, us implementation, among func(implementation) bool, b bound, claim string) target {
	var variants []variant
	for _, n := range widths {
		x := row{scenario(n), us.name}
		variants = append(variants, variant{append(peersIn(scenario(n)), x), func(r results) []float64 {
			return r.paired(x, row{x.scenario, r.bestOf(x.scenario, among)}, ratioOf(rate, rate))
		}, "at " + plural(n, "goroutine")})
	}
	return worstOf(variants, b, claim)
}

// peersIn are the rows of all peers in a scenario.
func peersIn(scenario string) []row {
	var all []row
	for _, i := range implementations {
		if i.kind == peer {
			all = append(all, row{scenario, i.name})
		}
	}
	return all
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

func atLeast(a, b row, compare comparing, least float64, claim string) target {
	return target{[]row{a, b}, func(r results) verdict {
		return judge(claim, bound{value: least}, r.paired(a, b, compare))
	}}
}

func atMost(a, b row, compare comparing, most float64, claim string) target {
	return target{[]row{a, b}, func(r results) verdict {
		return judge(claim, bound{value: most, most: true}, r.paired(a, b, compare))
	}}
}

func timesBestPeer(s, us string, bound float64, title string) target {
	// The others are far away, so that a third of the runs shows who is the best and
	// how far.
	return target{[]row{{s, us}}, func(r results) verdict {
		best := r.bestPeer(s)
		if best == "" {
			return verdict{Claim: title + "times the best peer", Target: "at least " + short(bound), Met: notMeasured}
		}
		return atLeast(row{s, us}, row{s, best}, ratioOf(rate, rate), bound, title+"times the best peer, "+best).judge(r)
	}}
}

func levelAtLeast(a row, f metric, least float64, claim string) target {
	return target{[]row{a}, func(r results) verdict {
		return judge(claim, bound{value: least}, figures(r.in(a), f))
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
			if i.kind != ours {
				continue
			}
			runs++
			if m.DidNotFinish != "" || m.Errors > 0 {
				unfinished++
			}
			if s, _ := scenarioNamed(m.Scenario); s.Contended {
				overlaps += m.Violations
				acquisitions += m.Acquisitions
			}
		}
		v := verdict{Claim: "redlatch, all runs: more inside at once than may be, back too early, or not finished", Target: "0", Met: notMeasured}
		if runs > 0 {
			v.Figure = fmt.Sprintf("%d in %s contended acquisitions; %d runs, %d unfinished", overlaps, thousands(float64(acquisitions)), runs, unfinished)
			v.Met = verdictOf(overlaps == 0 && unfinished == 0)
		}
		return v
	}}
}

func judge(claim string, b bound, values []float64) verdict {
	v := verdict{Claim: claim, Target: b.String(), Met: b.judge(values)}
	if v.Met != notMeasured {
		v.Figure = spanOf(values)
	}
	return v
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
