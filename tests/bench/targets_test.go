package main

import (
	"math"
	"strings"
	"testing"
)

// sample is a run in which all of redlatch's rates are factor times those of
// everybody else.
func sample(factor float64) results {
	var all results
	for run := range 3 {
		for _, s := range scenarios {
			for _, i := range implementations {
				if !i.takesPart(s) {
					continue
				}
				m := measurement{
					Scenario: s.Name, Implementation: i.name, Run: run, Rate: 100 * float64(run+1), Acquisitions: 100,
					OpP50: 50, PairP50: 100, HandOffP50: 4, HandedOn: 1, Crossed: 0.2, Jain: 1, Allocs: 20, Scripts: 2, Commands: 20, ServerCPU: 30,
				}
				switch i.kind {
				case ours:
					m.Rate *= factor
				case peer:
					m.HandOffP50 *= factor
				case floor, limit:
				}
				if i.name == redlatchShared.name {
					m.Rate *= 2
				}
				if s.Processes > 1 {
					m.ProcessShares = []float64{0.25, 0.25, 0.25, 0.25}
				}
				all = append(all, m)
			}
		}
	}
	return all
}

func verdictsOf(r results) map[string]int {
	count := map[string]int{}
	for _, v := range r.verdicts() {
		count[v.Met]++
	}
	return count
}

func TestTargets(t *testing.T) {
	t.Parallel()
	if got := verdictsOf(sample(20)); len(got) != 1 || got[met] == 0 {
		t.Errorf("20 times as fast: %v", got)
	}
	slow := verdictsOf(sample(0.5))
	// Of each client at the distance of a zone the floor and the best peer; over
	// loopback the floor twice and redislock; three peers, the best peer three times,
	// and Redisson's readers twice, semaphore and latch.
	if slow[missed] != 17 {
		t.Errorf("half as fast: %v", slow)
	}
	if got := verdictsOf(nil); len(got) != 1 || got[notMeasured] == 0 {
		t.Errorf("nothing measured: %v", got)
	}
}

func TestTargetsAreStrictAboutOverlapsSharesAndHangs(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*measurement){
		"overlap": func(m *measurement) { m.Violations = 1 },
		"share":   func(m *measurement) { m.ProcessShares = []float64{0.31, 0.23, 0.23, 0.23} },
		"hang":    func(m *measurement) { m.DidNotFinish = "hangs" },
	} {
		r := sample(20)
		for i := range r {
			if r[i].Scenario == "processes-4x16-1ms" && r[i].Implementation == redlatchRueidis.name && r[i].Run == 2 {
				spoil(&r[i])
			}
		}
		if got := verdictsOf(r); got[missed] != 1 {
			t.Errorf("%s in one run: %v", name, got)
		}
	}
}

func TestTheHandOffIsMeasuredInScripts(t *testing.T) {
	t.Parallel()
	for handOff, want := range map[float64]string{110: met, 112: missed} {
		r := sample(20)
		for i := range r {
			if r[i].Implementation == redlatchRueidis.name {
				r[i].PairP50 = 1 // not this, but the floor's
				if r[i].Scenario == farFair(distances[0]) {
					r[i].HandOffP50 = handOff
				}
			}
		}
		for _, v := range r.verdicts() {
			if strings.HasPrefix(v.Claim, scenarioTitle(farFair(distances[0]))+": hand-off") && v.Met != want {
				t.Errorf("%v µs, with 50 for a script: %+v", handOff, v)
			}
		}
	}
}

func TestTheWorstWidthDecides(t *testing.T) {
	t.Parallel()
	const title = "uncontended, rueidis: "
	for _, c := range []struct {
		spoil         func(*measurement)
		claim, figure string
	}{
		{func(*measurement) {}, "", ""},
		{func(m *measurement) { m.Rate *= 0.8 }, title + "part of the floor's rate at each width", "0.80 (0.80 to 0.80) at 8 goroutines"},
		{func(m *measurement) { m.Allocs += 6.2 }, title + "allocations a pair beyond the floor's at each width", "6.20 (6.20 to 6.20) at 8 goroutines"},
	} {
		r := sample(1)
		for i := range r {
			if r[i].Scenario == uncontended(8) && r[i].Implementation == redlatchRueidis.name {
				c.spoil(&r[i])
			}
		}
		for _, v := range r.verdicts() {
			if !strings.HasPrefix(v.Claim, "uncontended, rueidis: ") {
				continue
			}
			want := verdict{v.Claim, v.Target, v.Figure, met}
			if v.Claim == c.claim {
				want.Figure, want.Met = c.figure, missed
			}
			if v != want {
				t.Errorf("%+v, want %+v", v, want)
			}
		}
	}
}

// A median on the right side of a target says nothing if as many runs are on the
// other.
func TestATargetThatTheRunsSpanIsNotDecided(t *testing.T) {
	t.Parallel()
	least, most := bound{value: 1}, bound{value: 1, most: true, slack: 0.5}
	for _, c := range []struct {
		values []float64
		bound  bound
		want   string
	}{
		{[]float64{1, 1.1, 1.2}, least, met},
		{[]float64{0.9, 1.1, 1.2}, least, undecided},
		{[]float64{0.7, 0.8, 1.2}, least, undecided},
		{[]float64{0.7, 0.8, 0.9}, least, missed},
		{[]float64{0.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1}, least, met}, // one of nine is outside of the interval
		{[]float64{0.1, 0.2, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1}, least, undecided},
		{[]float64{1, 1.2, 1.5}, most, met},
		{[]float64{1, 1.2, 1.6}, most, undecided},
		{[]float64{1.6, 1.7}, most, missed},
		{nil, least, notMeasured},
	} {
		if got := c.bound.judge(c.values); got != c.want {
			t.Errorf("%v, %v: %s, want %s", c.values, c.bound, got, c.want)
		}
	}
	of := func(where string, values ...float64) variant {
		return variant{nil, func(results) []float64 { return values }, where}
	}
	fine, near, far := of("fine", 1.2, 1.3), of("near", 0.1, 1.4), of("far", 0.98, 0.99)
	for _, c := range []struct {
		variants    []variant
		met, figure string
	}{
		{[]variant{fine}, met, "fine"},
		{[]variant{fine, near}, undecided, "near"},
		{[]variant{far, near, fine}, missed, "far"}, // though the median of the other one is worse
		{[]variant{far, of("unknown")}, notMeasured, ""},
	} {
		v := worstOf(c.variants, least, "").judge(nil)
		if v.Met != c.met || !strings.HasSuffix(v.Figure, c.figure) {
			t.Errorf("%+v, want %s of %s", v, c.met, c.figure)
		}
	}
}

func TestTheMeanOfAllWidthsIsGeometric(t *testing.T) {
	t.Parallel()
	if got := geometricMean([]float64{8, 2, 0.5}); math.Abs(got-2) > 1e-9 {
		t.Errorf("of 8, 2 and 1/2: %v", got)
	}
	r := sample(1)
	for i := range r {
		switch m := &r[i]; {
		case m.Implementation != redlatchRueidis.name:
		case m.Scenario == uncontended(1):
			m.Rate *= 512 // 2 to the number of widths
		case m.Scenario == uncontended(4) && m.Run == 1:
			m.DidNotFinish = "hangs"
		}
	}
	got := r.meansOfWidths(redlatchRueidis, floorRueidis)
	if len(allWidths) != 9 || len(got) != 2 || math.Abs(got[0]-2) > 1e-9 || math.Abs(got[1]-2) > 1e-9 {
		t.Errorf("%v, want 2 of the runs that finished", got)
	}
}
