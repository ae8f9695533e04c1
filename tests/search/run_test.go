package search

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/script"
)

// asItIs loads a script.
func asItIs(name string) *script.Script { return script.Load(scripts, name) }

// explore carries out searches.
func explore(t *testing.T, all []*search) {
	t.Parallel()
	m := newMachine()
	for _, q := range all {
		start := time.Now()
		story, n := q.explore(m, asItIs)
		t.Logf("%s: %d states, %d executions, %v", q.name, n, len(m.results), time.Since(start).Round(time.Millisecond))
		if story != "" {
			t.Error(story)
		}
	}
}
