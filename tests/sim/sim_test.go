package sim

import (
	"fmt"
	"maps"
	"slices"
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

func TestNoTwoTrustWhateverGoesWrong(t *testing.T) {
	n := uint64(seeds)
	if testing.Short() {
		n = 1
	}
	struck := map[string]int{}
	for _, typ := range Types() {
		for seed := range n {
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
