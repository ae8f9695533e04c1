package sim

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// play plays a plan in a bubble of its own, which fails the test if a goroutine is left.
func play(t *testing.T, plan Plan) (r *Report) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = Play(plan) })
	return r
}

// seeds is how many of each type are played. What another order of goroutines may show is for make sim.
const seeds = 3

// firstSeed returns an even seed that the commit gives: each commit plays other seeds, and one that failed plays the same ones again.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	commit := strings.TrimSpace(string(out))
	n, bad := strconv.ParseUint(commit[:min(len(commit), 8)], 16, 32)
	if err != nil || bad != nil { // what is tested may be no work tree
		t.Logf("there is no commit (%v), so that the seeds begin with 0", errors.Join(err, bad))
		return 0
	}
	t.Logf("the commit %s gives the seeds from %d on", commit, n&^1)
	return n &^ 1
}

func TestNoTwoTrustWhateverGoesWrong(t *testing.T) {
	n := uint64(seeds)
	if testing.Short() {
		n = 1
	}
	first := firstSeed(t)
	struck := map[string]int{}
	for _, typ := range Types() {
		for seed := first; seed < first+n; seed++ {
			t.Run(fmt.Sprintf("%s/%d", typ, seed), func(t *testing.T) {
				plan, err := Standard(seed, typ)
				if err != nil {
					t.Fatal(err)
				}
				r := play(t, plan)
				t.Logf("%d holds, %d told of a loss, %d that a loss of data may have taken, %d requests and replies lost, %d late: %v",
					r.Holds, r.Told, r.Excused, r.Lost, r.Late, r.Struck)
				if err := r.Err(); err != nil {
					t.Errorf("%v\nto replay its faults, though perhaps in another order of goroutines: make sim SEED=%d TYPE=%s", err, seed, typ)
				}
				if seed%2 == 1 && r.Excused > 0 {
					t.Errorf("a loss of data excuses %d holds, where none was to be", r.Excused)
				}
				if r.Holds < 30 || r.Excused == r.Holds {
					t.Errorf("only %d holds, and a loss of data may have taken %d of them: that shows nothing", r.Holds, r.Excused)
				}
				for what, times := range r.Struck {
					struck[what] += times
				}
			})
		}
	}
	if t.Failed() || testing.Short() {
		return
	}
	if got := slices.Sorted(maps.Keys(struck)); !slices.Equal(got, slices.Sorted(slices.Values(append(Keeping(), Losing()...)))) {
		t.Errorf("only %q have gone wrong", got)
	}
}
