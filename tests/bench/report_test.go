package main

import (
	"os"
	"strings"
	"testing"
)

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
		} else if m.Scenario == "contended-128" && m.Implementation == redlatchRueidis.name && m.Run == 2 {
			m.Jain = 0.9
		}
	}
	page := r.page()
	for _, want := range []string{
		"* **A lock that nobody else wants.** A round trip takes 0.3 ms longer", "a release take 0.10 ms.", "\n  redislock, redsync and rueidislock take 0.10 ms.\n",
		"* **One lock that 16 goroutines of a process want.**", "The quickest of the others, redislock, gets it 200 times a second.\n",
		"round trips 2 ms longer.** After a release the next process has the lock in 0.00 ms with FairLock,\n",
		" If a replica has to confirm, FairLock needs 0.00 ms", "On rueidis they get 4,000 locks\n  a second, on go-redis ",
		"longer, 1 goroutine: 20.0 times floor on rueidis; 20.0 times redislock; 20.0 times redsync; 20.0 times rueidislock, 1 key\n",
		"* a key each, mean of 1 to 512 goroutines: 20.0 times floor on rueidis\n",
		"](images/performance-rueidis.svg)\n", "](images/performance-goredis.svg)\n", "](images/performance-handoff.svg)\n",
		"\n| redlatch, Lock, a replica confirms | 0.00 | 0.00 |\n", "\n| floor on go-redis | 200 |", "### What the proxy costs\n",
		"; 0.05 times Redisson; 0.05 times etcd; 0.08 times one round trip, the limit\n",
		"\n**Behind**\n\n* one key, 16 goroutines: 0.20 times semaphore.Weighted(1), no Redis\n",
		"[are met](#what-redlatch-set-out-to-reach), 1 are missed, and 1 are not decided", "\n**Missed**\n\n* One key, 1 process x 16 goroutines, empty section: part of the",
		"\n**Not decided**\n\n* one key, 128 goroutines, empty section: Jain's index: ", " | not decided |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "Where others are better") {
		t.Error("a queue without a lock is no other lock")
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

// Who mends a text on the page alone would lose it with the next run.
func TestTheTextsOfThePageAreThoseOfThisProgram(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		inShortLegend, besideLegend, floorLegend, zoneLegend, uncontendedLegend, contendedLegend, processesLegend, farLegend, crowdLegend, fairLegend,
		readWriteLegend, semaphoreLegend, latchLegend, censusLegend, notes, waits,
		costsLegend, costsOfHoldsLegend, costsOfWaitersLegend, costsOfReadersLegend, costsOfLinksLegend, costsModelLegend, costsClusterLegend,
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/performance.md lacks %q", want)
		}
	}
}

// What did not finish, and what a run has not looked at, is no figure of it.
func TestThePageSaysWhatIsKnownOfCosts(t *testing.T) {
	t.Parallel()
	us, other := keepers[0].name, keepers[1].name
	r := record{Costs: []expense{
		{Story: costOfHolds, Who: us, N: fewCosts, Heap: 2000, Timers: 3, ClientCPU: 77},
		{Story: costOfHolds, Who: us, N: manyCosts, Timed: true, Heap: 2100, Timers: 88, ServerCPU: 0.3, Began: 2, Opened: 500},
		{Story: costOfHolds, Who: us, N: hugeCosts, Timed: true, Heap: 2200},
		{Story: costOfHolds, Who: redissonPeer.name, N: manyCosts, Timed: true, Heap: 900, ClientCPU: 1},
		{Story: costOfHolds, Who: us, N: manyCosts, Run: 1, Timed: true, DidNotFinish: "no answer", Heap: 99_999},
		{Story: costOfHolds, Who: other, N: crowdCosts, Timed: true, DidNotFinish: "no answer"},
		{Story: costOfLinks, Who: serverItself, N: crowdCosts, Timed: true, Publish: 60_000},
	}}
	page := r.scale()
	for _, want := range []string{
		"| redlatch on rueidis | 1,000 | 2,000 | 0.00 | 0.00 | 3.00 | 0.00 | - | - | - | - | 0.00 |",
		"| redlatch on rueidis | 100,000 | 2,100 | 0.00 | 0.00 | - | 0.00 | 2.00 | - | - | 0.30 | 0.00 |",
		"| redlatch on rueidis | 1,000,000 | 2,200 | 0.00 | 0.00 | - | 0.00 | - | - | - | - | 0.00 |",
		"| redsync, extending | 1,000,000 | - | - | - | - | - | - | - | - | - | - |",
		"| Redisson | 100,000 | 900 | - | 0.00 | - | 0.00 | - | - | 1.00 | - | 0.00 |",
		"| rueidislock, 1 key | 10,000 | did not finish |",
		"| redlatch on rueidis | 500 | 0.00 |",
		"| 10,000 | 0.00 | - | 60,000 | 6.00 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, bad := range []string{"### Waiters", "### Readers", "99,999", "88", "77", "NaN"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q:\n%s", bad, page)
		}
	}
}
