package wire

import (
	"math"
	"testing"
	"time"
)

// Whatever a server answers, a time keeps its sign, and can be added to another.
func TestATimeOfAServerDoesNotOverflow(t *testing.T) {
	const most = 146 * 365 * 24 * time.Hour
	for _, ms := range []int64{math.MinInt64, math.MinInt64 + 1, -9223372036855, -2, -1, 0, 1, 9223372036855, math.MaxInt64} {
		d := FromMillis(ms)
		if (d < 0) != (ms < 0) || (d == 0) != (ms == 0) || d+time.Hour < d || d-time.Hour > d {
			t.Errorf("%d ms are %v", ms, d)
		}
		if ms > -1000 && ms < 1000 && d != time.Duration(ms)*time.Millisecond || (ms > 9e12 && d < most) {
			t.Errorf("%d ms are %v", ms, d)
		}
	}
	for text, want := range map[string]int64{"inf": 922337203685477, "1e999": 922337203685477, "-Inf": -922337203685477, "1500.5": 1500, "-1": -1} {
		if ms, ok := StoredMillis(text); !ok || ms != want {
			t.Errorf("%s: %d, %v", text, ms, ok)
		}
	}
	for _, text := range []string{"", "nan", "soon", "1 2"} {
		if ms, ok := StoredMillis(text); ok {
			t.Errorf("%s: %d", text, ms)
		}
	}
}
