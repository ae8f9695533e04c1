package main

import (
	"strings"
	"testing"
	"time"
)

// twoTrees is nine runs of a load; what an operation costs in this tree is
// factor times what it costs in the other.
func twoTrees(load string, factor float64) []trial {
	var all []trial
	for run := range 9 {
		drift := 1 + 0.01*float64(run) // of the machine
		of := func(factor float64) cost {
			took := time.Duration(float64(time.Millisecond) * factor * drift)
			return cost{Operations: 100, CPU: 100 * took, Elapsed: 200 * took}
		}
		all = append(all, trial{Load: load, Base: of(1), This: of(factor)})
	}
	return all
}

func TestWhatBecameSlowerIsMarked(t *testing.T) {
	t.Parallel()
	c := comparison{Base: "abc", Runs: 9}
	for _, l := range []struct {
		name   string
		factor float64
	}{{"much", 1.5}, {"a bit", 1.06}, {"hardly", 1.02}, {"no", 1}, {"quicker", 0.5}} {
		c.Trials = append(c.Trials, twoTrees(l.name, l.factor)...)
	}
	page := c.page()
	for _, want := range []string{
		"confidence of 96.1 %",
		"| much | 1,040 | 1,560 | 1.50 (1.50 to 1.50) | **slower** | 481 | 321 | 1.50 (1.50 to 1.50) | **slower** |",
		"| a bit | 1,040 | 1,102 | 1.06 (1.06 to 1.06) | **slower** |",
		"| hardly | 1,040 | 1,061 | 1.02 (1.02 to 1.02) | ~ |",
		"| no | 1,040 | 1,040 | 1.00 (1.00 to 1.00) | ~ |",
		"| quicker | 1,040 | 520 | 0.50 (0.50 to 0.50) |  | 481 | 962 | 0.50 (0.50 to 0.50) |  |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if got := strings.Join(c.loads(), ", "); got != "much, a bit, hardly, no, quicker" {
		t.Error(got)
	}
}
