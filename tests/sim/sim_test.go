package sim

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// play plays a plan in a bubble of its own, which fails the test if a goroutine is
// left.
func play(t *testing.T, plan Plan) (r *Report) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = Play(plan) })
	return r
}

// seeds is how many of each type are played: with the race detector that takes
// about 40 s of processor of the quarter of an hour of make check. More, and what
// another order of goroutines may show, is for make sim.
const seeds = 4

// seedEnv is the variable with the first seed, and commitEnv the one with the
// commit that gives it otherwise. The Makefile sets that: the go command believes
// an earlier result if all variables that a test reads are the same.
const (
	seedEnv   = "REDLATCH_SIM_SEED"
	commitEnv = "REDLATCH_SIM_COMMIT"
)

// firstSeed returns an even seed that the commit gives, unless seedEnv has one: so
// each commit plays other seeds.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv(seedEnv); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
		return seed
	}
	commit := os.Getenv(commitEnv)
	if commit == "" { // what is tested may be somebody else's work tree, or none
		out, err := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "rev-parse", "--verify", "HEAD").Output()
		if err != nil {
			t.Logf("git names no commit (%v)", err)
		}
		commit = strings.TrimSpace(string(out))
	}
	seed, err := seedOf(commit)
	if err != nil {
		t.Logf("without a commit (%v) the seeds begin with 0: each run plays the same ones", err)
		return 0
	}
	t.Logf("the commit %s gives the seeds from %d on", commit, seed)
	return seed
}

// seedOf returns the even seed that a commit gives.
func seedOf(commit string) (uint64, error) {
	n, err := strconv.ParseUint(commit[:min(len(commit), 8)], 16, 32)
	return n &^ 1, err
}

func TestNoTwoTrustWhateverGoesWrong(t *testing.T) {
	n := uint64(seeds)
	if testing.Short() {
		n = 1
	}
	first := firstSeed(t)
	struck, holds, played, theirs, twice := map[string]int{}, map[string]int{}, 0, 0, 0
	for _, typ := range Types() {
		for seed := first; seed < first+n; seed++ {
			t.Run(fmt.Sprintf("%s/%d", typ, seed), func(t *testing.T) {
				t.Cleanup(func() {
					if t.Failed() {
						t.Log(again(t, seed, typ))
					}
				})
				plan, err := Standard(seed, typ)
				if err != nil {
					t.Fatal(err)
				}
				r := play(t, plan)
				t.Logf("%d holds, %d of Redisson's among them, %d told of a loss, %d that a loss of data may have taken, %d requests and replies lost, %d late, %d executed twice: %v",
					r.Holds, r.Theirs, r.Told, r.Excused, r.Lost, r.Late, r.Twice, r.Struck)
				if err := r.Err(); err != nil {
					t.Error(err)
				}
				if seed%2 == 1 && r.Excused > 0 {
					t.Errorf("a loss of data excuses %d holds, where none was to be", r.Excused)
				}
				if r.Excused == r.Holds {
					t.Errorf("%d holds, and a loss of data may have taken all of them: that shows nothing", r.Holds)
				}
				holds[typ] += r.Holds - r.Theirs
				for what, times := range r.Struck {
					struck[what] += times
				}
				played++
				theirs += r.Theirs
				twice += r.Twice
			})
		}
	}
	if t.Failed() || played < seeds*len(Types()) { // -short, or some are chosen by -run
		return
	}
	if got := slices.Sorted(maps.Keys(struck)); !slices.Equal(got, slices.Sorted(slices.Values(slices.Concat(Keeping(), Losing(), Replicated(), Clustered())))) {
		t.Errorf("only %q have gone wrong", got)
	}
	for typ, n := range holds { // in one play most of the time may pass with a lock that is left to its lease
		if n < 100 {
			t.Errorf("%s: only %d holds of ours in all plays", typ, n)
		}
	}
	if theirs < 30 {
		t.Errorf("Redisson's process had only %d holds", theirs)
	}
	if twice < 100 {
		t.Errorf("only %d requests were executed twice", twice)
	}
}

// again says how a play is played again, also with another commit, and whatever
// else has begun with REDLATCH_RANDOM_SEED.
func again(t *testing.T, seed uint64, typ string) string {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	return fmt.Sprintf("to play this again, though perhaps in another order of goroutines: cd tests && %s=%d go test -count=1 -run '^%s$/^%s$/^%d$' ./sim\n"+
		"to play its faults in one order each time: make sim SEED=%d TYPE=%s", seedEnv, seed, test, typ, seed, seed, typ)
}

// A play that went wrong has to be there still when the commit that gave its seed
// is mended.
func TestAPlayThatWentWrongCanBePlayedAgain(t *testing.T) {
	t.Setenv(commitEnv, "68bda0930000000000000000000000000000000000")
	if got := firstSeed(t); got != 0x68bda092 {
		t.Errorf("the commit gives the seed %d", got)
	}
	t.Setenv(seedEnv, "17")
	if got := firstSeed(t); got != 17 {
		t.Errorf("the variable gives the seed %d", got)
	}
	if text := again(t, 17, "fair"); !strings.Contains(text, "REDLATCH_SIM_SEED=17 go test -count=1 -run '^TestAPlayThatWentWrongCanBePlayedAgain$/^fair$/^17$'") {
		t.Errorf("what is said: %s", text)
	}
}
