package main

import (
	"math"
	"strings"
	"testing"
)

func TestMediansHaveAConfidence(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]float64{
		"-":                   nil,
		"7.00 (7.00 to 7.00)": {7},
		"2.50 (1.00 to 4.00)": {4, 2, 3, 1},
		"5.00 (2.00 to 8.00)": {9, 8, 7, 6, 5, 4, 3, 2, 1}, // 2 to 8 is enough
	} {
		if got := spanOf(values); got != want {
			t.Errorf("%v: %s, want %s", values, got, want)
		}
	}
	if !math.IsNaN(median(nil)) {
		t.Error("nothing has a median")
	}
	for runs, want := range map[int]string{3: "no confidence", 7: "98.4 %", 9: "96.1 %"} {
		if got := spanTitle(runs); !strings.Contains(got, want) {
			t.Errorf("%d runs: %s, want %s", runs, got, want)
		}
	}
}

func TestWhatIsAlike(t *testing.T) {
	t.Parallel()
	low, high := []float64{1, 2, 3, 4, 5, 6, 7}, []float64{8, 9, 10, 11, 12, 13, 14}
	mixed := []float64{1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5}
	for _, c := range []struct {
		a, b []float64
		want string
	}{{low, high, ""}, {high, low, ""}, {low, mixed, " ~"}, {low[:3], mixed[:3], ""}, {nil, low, ""}} {
		if got := alike(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func TestJain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts []int64
		want   float64
	}{{[]int64{5, 5, 5, 5}, 1}, {[]int64{7, 0, 0, 0}, 0.25}, {[]int64{0, 0}, 0}} {
		if got := jain(c.counts); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("jain(%v) = %v, want %v", c.counts, got, c.want)
		}
	}
}

func TestRatiosArePairedByRun(t *testing.T) {
	t.Parallel()
	a := []measurement{{Run: 0, Rate: 10}, {Run: 1, Rate: 30}, {Run: 2, Rate: 8, DidNotFinish: "hangs"}}
	b := []measurement{{Run: 1, Rate: 10}, {Run: 0, Rate: 5}, {Run: 2, Rate: 1}}
	got := paired(a, b, ratioOf(rate, rate))
	if len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Errorf("ratios %v, want 2 and 3", got)
	}
}
