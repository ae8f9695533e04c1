package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestHistogramQuantiles(t *testing.T) {
	t.Parallel()
	var h histogram
	for ns := int64(1); ns <= 100_000; ns++ {
		h.add(ns)
	}
	counts := tally{}
	counts.merge(&h)
	for _, q := range []float64{0.01, 0.5, 0.99} {
		got, want := counts.quantile(q), q*100 // microseconds
		if math.Abs(got-want)/want > 1.0/sub {
			t.Errorf("quantile(%v) = %v, want about %v", q, got, want)
		}
	}
	if got := (tally{}).quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing = %v", got)
	}
}

func TestBucketsAreInOrderAndClose(t *testing.T) {
	t.Parallel()
	last := -1
	for ns := range int64(1 << 20) {
		b := bucket(ns)
		if b != last && b != last+1 {
			t.Fatalf("bucket(%d) = %d after %d", ns, b, last)
		}
		if got := middle(b); math.Abs(got-float64(ns)) > float64(ns)/sub+0.5 {
			t.Fatalf("middle(bucket(%d)) = %v", ns, got)
		}
		last = b
	}
	if got := bucket(math.MaxInt64); got != buckets-1 {
		t.Errorf("the longest time is in bucket %d", got)
	}
}

func TestJain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts []int64
		want   float64
	}{{[]int64{5, 5, 5, 5}, 1}, {[]int64{7, 0, 0, 0}, 0.25}, {[]int64{0, 0}, 0}} {
		if got := jain(c.counts); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("jain(%v) = %v, want %v", c.counts, got, c.want)
		}
	}
}

// sample is a run in which all of redlatch's rates are factor times those of
// everybody else.
func sample(factor float64) results {
	var all results
	for run := range 3 {
		for _, s := range scenarios {
			for _, i := range implementations {
				m := measurement{
					Scenario: s.Name, Implementation: i.name, Run: run, Rate: 100 * float64(run+1), Acquisitions: 100,
					OpP50: 50, HandOffP50: 4, Jain: 1, Allocs: 20,
				}
				if i.kind == ours {
					m.Rate *= factor
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
	for _, v := range targets(r) {
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
	if slow[missed] != 10 { // the floor four times, three peers, the best peer three times
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

func TestRatiosArePairedByRun(t *testing.T) {
	t.Parallel()
	a := []measurement{{Run: 0, Rate: 10}, {Run: 1, Rate: 30}, {Run: 2, Rate: 8, DidNotFinish: "hangs"}}
	b := []measurement{{Run: 1, Rate: 10}, {Run: 0, Rate: 5}, {Run: 2, Rate: 1}}
	got := paired(a, b, ratioOf(rate, rate))
	if len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Errorf("ratios %v, want 2 and 3", got)
	}
}

func TestPageNamesWhatDidNotFinish(t *testing.T) {
	t.Parallel()
	r := record{Runs: 3, Results: sample(20), Missing: map[string]string{redissonPeer.name: "no java in PATH"}}
	for i := range r.Results {
		if r.Results[i].Implementation == rueidislockDefault.name && r.Results[i].Scenario == "contended-16" {
			r.Results[i].DidNotFinish = "hangs: killed"
		}
	}
	page := r.page()
	for _, want := range []string{
		"| rueidislock | did not finish |", "did not finish: hangs: killed", "Not measured: no java in PATH", "goRedisson",
		"| uncontended, 64 goroutines: times redsync | at least 2.40 | 20.0 (20.0 to 20.0) | met |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestTheFullRunIsBounded(t *testing.T) {
	t.Parallel()
	var all time.Duration
	for _, s := range scenarios {
		for _, i := range implementations {
			if i.skips == nil || !i.skips(s) {
				all += fullDurations.of(s, i) + fullDurations.warm
			}
		}
	}
	if all *= 7; all > 30*time.Minute { // starting processes comes on top
		t.Errorf("seven runs measure for %v", all)
	}
}

func TestPageSeesOverlapsAndHandOffs(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/page"
	if err := newPage(path); err != nil {
		t.Fatal(err)
	}
	// As in two processes: mapped twice.
	one, err := openPage(path)
	if err != nil {
		t.Fatal(err)
	}
	two, err := openPage(path)
	if err != nil {
		t.Fatal(err)
	}
	if alone, handedAt := one.enter(1); !alone || handedAt != 0 {
		t.Errorf("the first: alone %v, handed on at %d", alone, handedAt)
	}
	if alone, _ := two.enter(2); alone {
		t.Error("an overlap was not seen")
	}
	two.leave(2)
	left := one.leave(1)
	if alone, handedAt := two.enter(2); !alone || handedAt != left {
		t.Errorf("the next: alone %v, handed on at %d, want %d", alone, handedAt, left)
	}
	two.leave(2)
	if _, handedAt := two.enter(2); handedAt != 0 {
		t.Error("a goroutine handed the lock on to itself")
	}
}
