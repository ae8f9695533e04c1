package promtext

import (
	"math"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A name or a help cannot end its line, its quotes or its escapes, nor make the
// whole page unreadable.
func TestAHostileTextStaysInItsPlace(t *testing.T) {
	t.Parallel()
	got := Page([]Family{
		{Name: "up", Help: "Of two\nlines, and a \\.", Samples: []Sample{{Value: 1}}},
		{Name: "none", Help: "No sample."},
		{Name: "lost_total", Help: "With labels.", Counter: true, Label: "of", Samples: []Sample{
			{Label: "a\"} 1\nup 0\\"}, {Label: "\xff\x00é\u2028", Value: 0.5}, {Label: "", Value: math.Inf(1)}, {Label: "big", Value: 1e9},
		}},
	}, "a\n# TYPE b\xff")
	const want = "# a\uFFFD# TYPE b\uFFFD\n" + `# HELP up Of two\nlines, and a \\.
# TYPE up gauge
up 1
# HELP lost_total With labels.
# TYPE lost_total counter
lost_total{of="a\"} 1` + "\uFFFD" + `up 0\\"} 0
lost_total{of="` + "\uFFFD\uFFFDé\u2028" + `"} 0.5
lost_total{of=""} +Inf
lost_total{of="big"} 1e+09
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
