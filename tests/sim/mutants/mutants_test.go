package mutants

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/tests/sim/results"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A change of the library that a mutant does not fit any more is to be seen at
// once, and not when the mutants are looked for.
func TestEachMutantFitsTheLibrary(t *testing.T) {
	for _, m := range All {
		if _, err := m.Overlay("../../..", t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

// The page would show faults that nobody looks for any more, or none of a rule
// that has one.
func TestThePageHasEachMutant(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "results", results.MutantsFile))
	if err != nil {
		t.Fatal(err)
	}
	var has results.Mutants
	if err := json.Unmarshal(text, &has); err != nil {
		t.Fatal(err)
	}
	for i := range has.Mutants {
		has.Mutants[i].Seeds = 0
	}
	for _, m := range Listed() {
		if n := len(has.Mutants); len(slices.DeleteFunc(slices.Clone(has.Mutants), func(x results.Mutant) bool { return x == m })) != n-1 {
			t.Errorf("results/%s has to have this once, with 0 seeds until make robustness has looked for it: %+v", results.MutantsFile, m)
		}
	}
	for _, m := range has.Mutants {
		if !slices.Contains(Listed(), m) {
			t.Errorf("results/%s has a mutant that nobody looks for: %+v", results.MutantsFile, m)
		}
	}
}
