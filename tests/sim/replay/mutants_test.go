package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/tests/sim"
	"github.com/redlatch/redlatch/tests/sim/mutants"
	"github.com/redlatch/redlatch/tests/sim/results"
)

// overlay returns a file that tells the go command what is different in a mutant.
func overlay(t *testing.T, m mutants.Mutant) string {
	t.Helper()
	file, err := m.Overlay("../../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// find returns the plan in which a mutant is found.
func find(t *testing.T, m mutants.Mutant, p *player) sim.Plan {
	t.Helper()
	for seed := range m.Seeds {
		plan, err := sim.Standard(seed, m.Type)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.play(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range r.Wrong {
			if strings.Contains(wrong, m.Says) {
				t.Logf("found with seed %d: %s", seed, wrong)
				return plan
			}
		}
	}
	t.Fatalf("%s: not found in %d seeds", m.Name, m.Seeds)
	return sim.Plan{}
}

// mutantsEnv is the variable with the file into which it is written how many seeds
// it took to find the mutants, for docs/robustness.md.
const mutantsEnv = "REDLATCH_SIM_MUTANTS"

// A checker that finds nothing may be one that cannot. And one that finds the same
// without the mutant finds something else. What -run leaves out nobody has looked
// for.
func TestEachMutantIsFound(t *testing.T) {
	whole := playerOf(t)
	found := mutants.Listed()
	t.Cleanup(func() { // when all have ended, which run beside one another
		file := os.Getenv(mutantsEnv)
		if file == "" || t.Failed() {
			return
		}
		if err := results.Write(file, results.Mutants{Source: results.SourceNow(context.Background()), Mutants: found}); err != nil {
			t.Error(err)
		}
	})
	for i, m := range mutants.All {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			plan := find(t, m, playerOf(t, "-overlay", overlay(t, m)))
			r, err := whole.play(t.Context(), plan)
			if err == nil {
				err = r.Err()
			}
			if err != nil {
				t.Errorf("with seed %d the library itself, without the mutant: %v", plan.Seed, err)
			}
			found[i].Seeds = plan.Seed + 1
		})
	}
}
