package search

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/script"
)

// asItIs loads a script.
func asItIs(name string) *script.Script { return script.Load(scripts, name) }

// explore carries out searches, which visit so many states together: fewer prove
// less.
func explore(t *testing.T, states int, all []*search) {
	t.Parallel()
	m, visited := newMachine(), 0
	for _, q := range all {
		start := time.Now()
		story, n := q.explore(m, asItIs, everything)
		t.Logf("%s: %d states, %d executions, %v", q.name, n, len(m.results), time.Since(start).Round(time.Millisecond))
		if story != "" {
			t.Error(story)
		}
		visited += n
	}
	if visited != states && !t.Failed() {
		t.Errorf("%d states were visited, and not %d: is that meant?", visited, states)
	}
}
