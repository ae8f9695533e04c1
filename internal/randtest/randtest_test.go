package randtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/internal/randtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// walks is how many Run does.
const walks = 300

// Every action is taken, in walks that grow; and a walk can be repeated.
func TestWalks(t *testing.T) {
	t.Setenv(randtest.SeedEnv, "1")
	record := func(t *testing.T) (all []string) {
		t.Helper()
		longest := 0
		randtest.Run(t, func(t *testing.T, r *randtest.Rand) {
			var walk string
			steps, checks := 0, 0
			step := func(name string) func() {
				return func() {
					steps++
					walk += fmt.Sprint(name, r.Between(-1, 1), r.Bool(), " ")
				}
			}
			r.Steps(map[string]func(){"a": step("a"), "b": step("b"), "c": step("c")}, func() { checks++ })
			if steps < longest || checks != steps+1 {
				t.Errorf("%d steps and %d checks after a walk of %d", steps, checks, longest)
			}
			longest = steps
			all = append(all, walk)
		})
		return all
	}
	first, second := record(t), record(t)
	if len(first) != walks || !slices.Equal(first, second) {
		t.Errorf("%d walks, the same again: %v", len(first), slices.Equal(first, second))
	}
	for _, name := range []string{"a", "b", "c"} {
		for n := -1; n <= 1; n++ {
			for _, b := range []bool{false, true} {
				if step := fmt.Sprint(name, n, b, " "); !slices.ContainsFunc(first, func(walk string) bool { return strings.Contains(walk, step) }) {
					t.Errorf("no walk has the step %q", step)
				}
			}
		}
	}
}

func TestDuration(t *testing.T) {
	const low, high = 100 * time.Millisecond, time.Hour
	near, far := 0, 0
	randtest.Run(t, func(t *testing.T, r *randtest.Rand) {
		switch d := r.Duration(low, high); {
		case d < low || d > high:
			t.Errorf("%v is not from %v to %v", d, low, high)
		case d < low+time.Millisecond:
			near++
		case d > time.Minute:
			far++
		}
	})
	if near < walks/10 || far < walks/10 {
		t.Errorf("of %d, %d are near to %v, and %d are far from it", walks, near, low, far)
	}
}
