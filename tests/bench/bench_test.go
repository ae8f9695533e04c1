package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWhoTakesPart(t *testing.T) {
	t.Parallel()
	everyWidth := []string{
		"redlatch on rueidis, floor on rueidis, ",
		"redlatch on go-redis, floor on go-redis, ",
		"redlatch on go-redis, shared pipelines, redislock",
	}
	for _, c := range []struct{ scenario, want string }{
		{"uncontended-1", everyWidth[0] + "redlatch on rueidis, no cancel, floor on rueidis, no cancel, redlatch on rueidis, named anew, " + everyWidth[1] +
			"redlatch on go-redis, no cancel, floor on go-redis, no cancel, " + everyWidth[2] + ", redlatch on valkey-go, floor on valkey-go, redsync, rueidislock, rueidislock, 1 key"},
		{"uncontended-2", everyWidth[0] + everyWidth[1] + everyWidth[2]},
		{"contended-128", "redlatch on rueidis, redlatch on go-redis, redislock, redislock, 2 ms, redsync, rueidislock, rueidislock, 1 key, Redisson"},
		{"fair-4x16", "redlatch on rueidis, redlatch on go-redis, rueidislock, rueidislock, 1 key, Redisson, etcd"},
		{fairHandOff, "redlatch on rueidis, floor on rueidis, redlatch on go-redis, rueidislock, rueidislock, 1 key, Redisson, etcd"},
		{farFair(distances[0]), "redlatch on rueidis, floor on rueidis, redlatch on go-redis, redislock, redislock, 2 ms, rueidislock, 1 key, Redisson, etcd"},
		{fairManyWait, "redlatch on rueidis"},
		{crowdWaits, "redlatch on rueidis"},
		{far(distances[0]), "redlatch on rueidis, floor on rueidis, redlatch on go-redis, redislock, redislock, 2 ms, rueidislock, 1 key, Redisson, etcd"},
		{confirmed(farFair(distances[1])), "redlatch on rueidis"},
		{zone(2), "redlatch on rueidis, floor on rueidis, redlatch on go-redis, floor on go-redis, redlatch on go-redis, shared pipelines, redislock, redsync, rueidislock, 1 key"},
		{proxied(64), "floor on rueidis, floor on go-redis"},
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

func TestWhatDecidesIsMeasuredEachTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scenario string
		who      implementation
		want     []int
	}{
		{uncontended(2), redlatchRueidis, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{zone(8), redsyncDefault, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{zone(128), redsyncDefault, []int{0, 3, 6}},
		{uncontended(1), floorGoredisEndless, []int{0, 3, 6}},
		{uncontended(1), redlatchValkeygo, []int{0, 3, 6}},
		{uncontended(1), redsyncDefault, []int{0, 3, 6}},
		{semaphoreOf8 + "-1ms", redlatchRueidis, []int{0, 3, 6}},
		{crowdPasses, redlatchRueidis, []int{0, 3, 6}},
		{uncontended(64), redissonPeer, []int{0, 3, 6}},
		{"contended-128", redislockDefault, []int{0, 3, 6}},
		{"read-only-128", redissonPeer, []int{0, 3, 6}},
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

func TestTheFullRunIsBounded(t *testing.T) {
	t.Parallel()
	p := planOf(fullDurations, fullRuns, func(scenario, implementation) bool { return true })
	t.Log(p)
	if p.takes+shareTime+costsTake() > mostTime { // of what is spare nothing is used on a quiet machine
		t.Errorf("a run takes more than %v: %v", mostTime, p)
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
