package main

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

func TestHistogramQuantiles(t *testing.T) {
	t.Parallel()
	h := newHistogram()
	for ns := int64(1); ns <= 100_000; ns++ {
		h.add(ns)
	}
	for _, q := range []float64{0.01, 0.5, 0.99} {
		got, want := h.quantile(q), q*100 // microseconds
		if math.Abs(got-want)/want > 0.01 {
			t.Errorf("quantile(%v) = %v, want about %v", q, got, want)
		}
	}
	if got := newHistogram().quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing = %v", got)
	}
}

func TestAHistogramDropsNothing(t *testing.T) {
	t.Parallel()
	h := newHistogram()
	for _, ns := range []int64{-1, 0, longest, math.MaxInt64} {
		h.add(ns)
	}
	if least, most := h.quantile(0.5), h.quantile(1); h.total() != 4 || least != 0 || most < 60e6 || most > 61e6 {
		t.Errorf("%d times, half of them at most %v µs, all %v", h.total(), least, most)
	}
}

// Allocations are among what is measured.
func TestAddingToAHistogramAllocatesNothing(t *testing.T) {
	h := newHistogram()
	if n := testing.AllocsPerRun(100, func() { h.add(12345) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHistogramsOfAllProcessesAreAdded(t *testing.T) {
	t.Parallel()
	one := procResult{Op: newHistogram(), Pair: newHistogram()} // and no hand-off
	for range 3 {
		one.Op.add(100_000)
	}
	one.Pair.add(700_000)
	text, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	var two procResult
	if err := json.Unmarshal(text, &two); err != nil {
		t.Fatal(err)
	}
	sum := newHistogram()
	for _, h := range []histogram{one.Op, two.Op, one.Pair, two.Pair, one.HandOff, two.HandOff} {
		sum.merge(h)
	}
	if p50, p99 := sum.quantile(0.5), sum.quantile(0.99); sum.total() != 8 || math.Abs(p50-100) > 1 || math.Abs(p99-700) > 7 {
		t.Errorf("%d times, p50 %v µs, p99 %v", sum.total(), p50, p99)
	}
}

func TestMediansHaveAConfidence(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]float64{
		"-":                   nil,
		"7.00 (7.00 to 7.00)": {7},
		"2.50 (1.00 to 4.00)": {4, 2, 3, 1},
		"5.00 (2.00 to 8.00)": {9, 8, 7, 6, 5, 4, 3, 2, 1}, // 2 to 8 is enough
	} {
		if got := spanOf(values); got != want {
			t.Errorf("%v: %s, want %s", values, got, want)
		}
	}
	if !math.IsNaN(median(nil)) {
		t.Error("nothing has a median")
	}
	for runs, want := range map[int]string{3: "no confidence", 7: "98.4 %", 9: "96.1 %"} {
		if got := spanTitle(runs); !strings.Contains(got, want) {
			t.Errorf("%d runs: %s, want %s", runs, got, want)
		}
	}
}

func TestWhatIsAlike(t *testing.T) {
	t.Parallel()
	low, high := []float64{1, 2, 3, 4, 5, 6, 7}, []float64{8, 9, 10, 11, 12, 13, 14}
	mixed := []float64{1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5}
	for _, c := range []struct {
		a, b []float64
		want string
	}{{low, high, ""}, {high, low, ""}, {low, mixed, " ~"}, {low[:3], mixed[:3], ""}, {nil, low, ""}} {
		if got := alike(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %q, want %q", c.a, c.b, got, c.want)
		}
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
	// The floor four times, redislock at all widths twice, three peers, the best peer three times, and Redisson's
	// readers twice, semaphore and latch.
	if slow[missed] != 16 {
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
				if r[i].Scenario == fairHandOffDelayed {
					r[i].HandOffP50 = handOff
				}
			}
		}
		for _, v := range r.verdicts() {
			if strings.HasPrefix(v.Claim, scenarioTitle(fairHandOffDelayed)+": hand-off") && v.Met != want {
				t.Errorf("%v µs, with 50 for a script: %+v", handOff, v)
			}
		}
	}
}

func TestWhoTakesPart(t *testing.T) {
	t.Parallel()
	everyWidth := []string{
		"redlatch on rueidis, floor on rueidis, redlatch on rueidis, no cancel, floor on rueidis, no cancel, ",
		"redlatch on go-redis, floor on go-redis, redlatch on go-redis, no cancel, floor on go-redis, no cancel, " +
			"redlatch on go-redis, callers stay, redlatch on go-redis, shared pipelines, redislock",
	}
	for _, c := range []struct{ scenario, want string }{
		{"uncontended-1", everyWidth[0] + "redlatch on rueidis, named anew, " + everyWidth[1] + ", redlatch on valkey-go, floor on valkey-go, redsync, rueidislock, rueidislock, 1 key, Redisson"},
		{"uncontended-2", everyWidth[0] + everyWidth[1]},
		{"contended-2", "redlatch on rueidis, redlatch on go-redis, redislock, redislock, 2 ms, redsync, rueidislock, rueidislock, 1 key, Redisson"},
		{"fair-4x16", "redlatch on rueidis, redlatch on go-redis, rueidislock, rueidislock, 1 key, Redisson, etcd"},
		{fairHandOff, "redlatch on rueidis, floor on rueidis, redlatch on go-redis, rueidislock, rueidislock, 1 key, Redisson, etcd"},
		{fairHandOffDelayed, "redlatch on rueidis, floor on rueidis, redlatch on go-redis, rueidislock, rueidislock, 1 key, Redisson, etcd"},
		{fairManyWait, "redlatch on rueidis"},
		{crowdWaits, "redlatch on rueidis"},
		{far(addedLatency), "redlatch on rueidis, floor on rueidis, redislock, redislock, 2 ms, Redisson, etcd"},
		{"contended-16", "redlatch on rueidis, redlatch on go-redis, redislock, redislock, 2 ms, redsync, rueidislock, rueidislock, 1 key, Redisson, semaphore.Weighted(1), no Redis"},
		{"read-mostly-128", "redlatch on rueidis, redlatch on go-redis, Redisson"},
		{"read-only-128", "redlatch on rueidis, redlatch on go-redis, Redisson"},
		{semaphoreOf8, "redlatch on rueidis, redlatch on go-redis, Redisson"},
		{latchFanOut, "redlatch on rueidis, redlatch on go-redis, Redisson"},
	} {
		s, ok := scenarioNamed(c.scenario)
		var names []string
		for _, i := range implementations {
			if i.takesPart(s) {
				names = append(names, i.name)
			}
		}
		if got := strings.Join(names, ", "); !ok || got != c.want {
			t.Errorf("%s: %s", c.scenario, got)
		}
	}
}

func TestWritersAreAmongReaders(t *testing.T) {
	t.Parallel()
	for every, want := range map[int]int{0: 0, 100: 3} {
		w := worker{sharing: &redlatchLocker{}, writeEvery: every, n: 7}
		writes := 0
		for range 300 {
			if !w.shares() {
				writes++
			}
		}
		if writes != want {
			t.Errorf("one in %d: %d of 300", every, writes)
		}
	}
	if (&worker{writeEvery: 100}).shares() {
		t.Error("a plain lock is shared")
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
	r := record{Runs: 3, Results: sample(20), Missing: map[string]string{redissonPeer.name: "no java in PATH", etcdMutex.name: "no etcd"}}
	for i := range r.Results {
		if r.Results[i].Implementation == rueidislockDefault.name && r.Results[i].Scenario == "contended-16" {
			r.Results[i].DidNotFinish = "hangs: killed"
		}
	}
	page := r.page()
	for _, want := range []string{
		"| rueidislock | did not finish |", "did not finish: hangs: killed", "Not measured: no java in PATH", "Not measured: no etcd", "goRedisson",
		"One EVALSHA: p50 50.0 (50.0 to 50.0) µs.", "## Read-write locks", "## Semaphores\n", "## Latches\n",
		"\n| Redisson | 80.0 (80.0 to 80.0) | 0.05 |", // its fan-out
		"| uncontended, 64 goroutines: times redsync | at least 2.40 | 20.0 (20.0 to 20.0) | met |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
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
		{func(m *measurement) { m.ClientCPU += 3.2 }, title + "client CPU a pair beyond the floor's at each width", "3.20 (3.20 to 3.20) µs at 8 goroutines"},
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

func TestWhatDecidesIsMeasuredEachTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scenario string
		who      implementation
		want     []int
	}{
		{uncontended(2), redlatchRueidis, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{uncontended(2), floorGoredisEndless, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{uncontended(8), redlatchValkeygo, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{uncontended(1), redsyncDefault, []int{0, 3, 6}},
		{"contended-128-1ms", redlatchRueidis, []int{0, 3, 6}},
		{crowdPasses, redlatchRueidis, []int{0, 3, 6}},
		{uncontended(1), redissonPeer, []int{0, 3, 6}},
		{"read-only-128", redissonPeer, []int{0, 2, 3, 5, 6, 8}},
	} {
		s, _ := scenarioNamed(c.scenario)
		var got []int
		for run := range 9 {
			if takesTurn(run, 9, c.who.runs(s, 9)) {
				got = append(got, run)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: %v, want %v", c.scenario, c.who.name, got, c.want)
		}
	}
}

func TestNeitherOfTwoIsAlwaysTheOneAfterTheOther(t *testing.T) {
	t.Parallel()
	one, two := inTurn(0), inTurn(1)
	if len(one) != len(implementations) || len(two) != len(one) {
		t.Fatalf("%d and %d of %d", len(one), len(two), len(implementations))
	}
	for n, i := range one {
		if i.name != implementations[n].name || two[len(two)-1-n].name != i.name {
			t.Errorf("%s is not in its place", i.name)
		}
	}
}

func TestTheWordFollowsFromTheFigures(t *testing.T) {
	t.Parallel()
	far, near, wide := []float64{1.2, 1.3, 1.25, 1.22, 1.4, 1.3}, []float64{1.02, 1.03, 1.04, 1.02, 1.03, 1.04}, []float64{0.9, 1.2, 1.3, 0.8, 1.4, 1.3}
	inverse := func(values []float64) []float64 {
		var all []float64
		for _, v := range values {
			all = append(all, 1/v)
		}
		return all
	}
	for _, c := range []struct {
		ratios     []float64
		rate, time string
	}{
		{far, ahead, behind},
		{inverse(far), behind, ahead},
		{near, even, even},
		{inverse(near), even, even},
		{wide, even, even},
		{[]float64{2}, ahead, behind},
		{nil, "", ""},
	} {
		if rate, time := standing(c.ratios, false), standing(c.ratios, true); rate != c.rate || time != c.time {
			t.Errorf("%v: as rates %q, as times %q", c.ratios, rate, time)
		}
	}
}

func TestThePageBeginsInWords(t *testing.T) {
	t.Parallel()
	r := record{Runs: 3, Results: sample(20)}
	for i := range r.Results {
		if m := &r.Results[i]; m.Scenario == "contended-16" && m.Implementation == weighted.name {
			m.Rate *= 100
		}
	}
	page := r.page()
	for _, want := range []string{
		"\n**Ahead**\n\n* a key each, mean of 1 to 512 goroutines: 20.0 times floor on rueidis\n",
		"; 0.05 times Redisson; 0.05 times etcd; 0.08 times one round trip, the limit\n",
		"\n**Behind**\n\n* one key, 16 goroutines: 0.20 times semaphore.Weighted(1), no Redis\n",
		"[are met](#what-redlatch-set-out-to-reach); missed:\n\n* One key, 1 process x 16 goroutines, empty section: part of the",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "**"+even+"**") {
		t.Error("the page tells what it has not seen")
	}
	if first, machine := strings.Index(page, "## In short"), strings.Index(page, "| machine |"); first < 0 || machine < first {
		t.Error("the page does not begin in words")
	}
	if page := (record{Runs: 3}).page(); strings.Contains(page, "## In short") {
		t.Error("words about nothing")
	}
}

func TestTheFullRunIsBounded(t *testing.T) {
	t.Parallel()
	var all time.Duration
	for _, s := range scenarios {
		for _, i := range implementations {
			if !i.takesPart(s) {
				continue
			}
			once := fullDurations.of(s, i) + fullDurations.warmUp(s) + time.Duration(s.Processes)*60*time.Millisecond // to start and end
			if i.open == nil {
				once += jvmWarm(s, fullDurations.warm) + time.Duration(s.Processes)*2*time.Second
			}
			all += time.Duration(i.runs(s, fullRuns)) * once
		}
	}
	if all > 28*time.Minute {
		t.Errorf("a run takes about %v", all)
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
	two.leave(2)

	if !one.enterShared(solitary-1) || !two.enterShared(solitary-1) {
		t.Error("two who share are an overlap")
	}
	if alone, _ := one.enter(1); alone {
		t.Error("an overlap with those who share was not seen")
	}
	if two.enterShared(solitary - 1) {
		t.Error("an overlap of one who shares was not seen")
	}
	one.leave(1)
	for range 3 {
		two.leaveShared()
	}
	if alone, _ := one.enter(1); !alone {
		t.Error("somebody is still inside")
	}
	one.leave(1)
	for n := int32(1); n <= 9; n++ {
		if one.enterShared(8) != (n <= 8) {
			t.Errorf("of 8 permits, %d are out: not seen as it is", n)
		}
	}
	one.end()
	if alone, _ := two.enter(2); !alone {
		t.Error("an overlap was seen after the end")
	}
}

// Page.java has these numbers.
func TestThePageIsAsJavaKnowsIt(t *testing.T) {
	t.Parallel()
	var p page
	got := []uintptr{unsafe.Offsetof(p.inside), unsafe.Offsetof(p.releasedBy), unsafe.Offsetof(p.releasedAt), unsafe.Sizeof(p), solitary}
	if want := []uintptr{0, 64, 72, 80, 1 << 16}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestWhatJavaAnswers(t *testing.T) {
	t.Parallel()
	r := redisson{job: job{Scenario: scenario{Contended: true, Lock: fairLock}}, self: self{cmd: &exec.Cmd{Process: &os.Process{}}}}
	err := json.Unmarshal([]byte(`{"id":3,"ok":true,"counts":[4,5],"elapsedMs":1500,"overlaps":2,"handOffs":[1000000,3000000,2000000]}`), &r.answer)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.result(0)
	if err != nil || got.total() != 9 || got.Elapsed != 1500*time.Millisecond || got.Violations != 2 || got.HandOff.total() != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if p50 := got.HandOff.quantile(0.5); p50 < 1900 || p50 > 2100 {
		t.Errorf("hand-off %v µs", p50)
	}
}

func TestVersionsOfServers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64\n": "Redis 7.0.15",
		"etcd Version: 3.4.23\nGit SHA: unknown\nGo Version: go1.19.8\n":       "etcd 3.4.23",
	} {
		if got := shortVersion(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWhatIsSentTogetherIsDelayedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := link{delay: 2 * time.Millisecond}
		client, from := net.Pipe()
		to, server := net.Pipe()
		go func() {
			l.carry(from, to)
			l.running.Wait()
			_ = to.Close()
		}()
		began := time.Now()
		go func() {
			defer client.Close()
			for range 3 {
				_, _ = client.Write([]byte("x"))
				time.Sleep(time.Millisecond)
			}
		}()
		for n := range 3 {
			if _, err := io.ReadFull(server, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if after, want := time.Since(began), time.Duration(2+n)*time.Millisecond; after != want {
				t.Errorf("request %d arrives after %v, want %v", n, after, want)
			}
		}
		if n, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%d more, %v", n, err)
		}
	})
}

func TestAHandOffToAnotherProcessIsSeen(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/page"
	if err := newPage(path); err != nil {
		t.Fatal(err)
	}
	shared, err := openPage(path)
	if err != nil {
		t.Fatal(err)
	}
	w := worker{page: shared, who: 9, together: 4} // the first of the third process
	if w.crossed() {
		t.Error("nobody had it before")
	}
	for by, want := range map[int64]bool{1: true, 8: true, 9: false, 12: false, 13: true} {
		shared.enter(by)
		shared.leave(by)
		if got := w.crossed(); got != want {
			t.Errorf("after %d: %v", by, got)
		}
	}
}

func TestWhoeverWaitsIsCountedByTheSecond(t *testing.T) {
	t.Parallel()
	results := []procResult{{Elapsed: 2 * time.Second, Acquisitions: []int64{0, 1}, CPU: time.Second, Op: newHistogram(), Pair: newHistogram(), HandOff: newHistogram()}}
	var m measurement
	m.sum(results, counters{commands: 100, scripts: 10}, true)
	if m.Scripts != 5 || m.Commands != 50 || m.ClientCPU != 500_000 || m.Violations != 1 || m.DidNotFinish != "" {
		t.Errorf("%+v", m)
	}
	m = measurement{}
	m.sum(results, counters{commands: 100, scripts: 10}, false)
	if m.Scripts != 10 || m.Commands != 100 || m.Violations != 0 {
		t.Errorf("%+v", m)
	}
}

func TestALinkDelaysRequests(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 100)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			_, _ = c.Write([]byte("+PONG\r\n"))
		}
	}()
	l, err := newLink(server.Addr().String(), addedLatency)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		asked := time.Now()
		if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 7)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(asked); took < addedLatency {
			t.Errorf("a round trip of %v", took)
		}
	}
}

// A host that takes the processors away must not decide a comparison.
func TestWhatWasStolenIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		stolen []float64 // of each try
		wrong  int       // the try that does not finish; 0: none
		spare  time.Duration
		want   float64
		tries  int
	}{
		{"nothing stolen", []float64{0.01}, 0, time.Hour, 0.01, 1},
		{"once", []float64{0.3, 0.02}, 0, time.Hour, 0.02, 2},
		{"each time", []float64{0.3, 0.1, 0.2}, 0, time.Hour, 0.1, 3},
		{"no time to spare", []float64{0.3}, 0, 0, 0.3, 1},
		{"a hang stays a hang", []float64{0.3}, 1, time.Hour, 0.3, 1},
		{"also at the second try", []float64{0.3, 0.4}, 2, time.Hour, 0.4, 2},
	} {
		b, try := &bench{spare: c.spare}, 0
		m, err := b.steady(func() (measurement, error) {
			m := measurement{Stolen: c.stolen[try]}
			if try++; try == c.wrong {
				m.DidNotFinish = "hangs"
			}
			return m, nil
		})
		if err != nil || m.Stolen != c.want || m.Tries != c.tries || try != c.tries || (m.DidNotFinish != "") != (c.wrong > 0) {
			t.Errorf("%s: %+v after %d tries, %v", c.name, m, try, err)
		}
	}
}

func TestCPUTimeIsRead(t *testing.T) {
	t.Parallel()
	was := readMachineTime("cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3\n")
	if was != (machineTime{1000, 35}) {
		t.Errorf("read as %+v", was)
	}
	if got := readMachineTime("cpu  150 0 50 800 10 0 5 85 7 0\n").stolenSince(was); got != 0.5 {
		t.Errorf("%v was stolen", got)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu a b c d e f g h i"} {
		if got := readMachineTime(bad); got != (machineTime{}) || got.stolenSince(got) != 0 {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}
