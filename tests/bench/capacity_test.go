package main

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the model's table into docs/production.md")

const (
	guide         = "../../docs/production.md"
	capacityBegin = "<!-- capacity: `cd tests && go test ./bench -run TestTheGuideHasTheModelsTable -update` writes this table -->\n"
	capacityEnd   = "<!-- the end of capacity -->\n"
)

func TestTheGuideHasTheModelsTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), capacityBegin)
	shown, after, ok2 := strings.Cut(rest, capacityEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", guide)
	}
	switch want := capacityTable(measuredCosts); {
	case shown == want:
	case *update:
		if err := os.WriteFile(guide, []byte(before+capacityBegin+want+capacityEnd+after), 0o644); err != nil { //nolint:gosec // as it was
			t.Fatal(err)
		}
	default:
		t.Errorf("%s shows another table than this, which -update writes:\n%s", guide, want)
	}
}

func TestRequestsWaitForThoseBeforeThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		all  []demand
		want time.Duration
	}{
		{"nobody", nil, 0},
		{"each alone", []demand{{0, 0.5}, {1, 0.5}, {2, 0.5}}, 0},
		{"in a burst", []demand{{1, 0.5}, {1, 0.5}, {1, 0.5}}, time.Second},
		{"in any order", []demand{{2, 1}, {0, 3}}, time.Second},
		{"more than can be served", []demand{{0, 2}, {1, 2}, {2, 2}, {3, 2}}, 3 * time.Second},
	} {
		if got := wait(c.all); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A primary that is to be busy for half of the time at most is not planned to be busier, and one less would be.
func TestAsManyPrimariesAsItTakes(t *testing.T) {
	t.Parallel()
	for _, p := range fleets {
		n := p.primaries(measuredCosts)
		if alone := p.load(measuredCosts, 1<<40); alone.sum() >= halfACore {
			if n != 1 {
				t.Errorf("%+v: %d primaries, which are of no use", p, n)
			}
			continue
		}
		if got := p.load(measuredCosts, n).sum(); got > halfACore {
			t.Errorf("%+v: each of %d primaries is busy for %v of the time", p, n, got)
		}
		if n > 1 && p.load(measuredCosts, n-1).sum() <= halfACore {
			t.Errorf("%+v: %d primaries, and one less is enough", p, n)
		}
	}
}
