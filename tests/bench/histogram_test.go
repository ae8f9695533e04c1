package main

import (
	"encoding/json"
	"math"
	"testing"
)

func TestHistogramQuantiles(t *testing.T) {
	t.Parallel()
	h := newHistogram()
	for ns := int64(1); ns <= 100_000; ns++ {
		h.add(ns)
	}
	for _, q := range []float64{0.01, 0.5, 0.99} {
		got, want := h.quantile(q), q*100 // microseconds
		if math.Abs(got-want)/want > 0.01 {
			t.Errorf("quantile(%v) = %v, want about %v", q, got, want)
		}
	}
	if got := newHistogram().quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing = %v", got)
	}
}

func TestAHistogramDropsNothing(t *testing.T) {
	t.Parallel()
	h := newHistogram()
	for _, ns := range []int64{-1, 0, longest, math.MaxInt64} {
		h.add(ns)
	}
	if least, most := h.quantile(0.5), h.quantile(1); h.total() != 4 || least != 0 || most < 60e6 || most > 61e6 {
		t.Errorf("%d times, half of them at most %v µs, all %v", h.total(), least, most)
	}
}

// Allocations are among what is measured.
func TestAddingToAHistogramAllocatesNothing(t *testing.T) {
	h := newHistogram()
	if n := testing.AllocsPerRun(100, func() { h.add(12345) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHistogramsOfAllProcessesAreAdded(t *testing.T) {
	t.Parallel()
	one := procResult{Op: newHistogram(), Pair: newHistogram()} // and no hand-off
	for range 3 {
		one.Op.add(100_000)
	}
	one.Pair.add(700_000)
	text, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	var two procResult
	if err := json.Unmarshal(text, &two); err != nil {
		t.Fatal(err)
	}
	sum := newHistogram()
	for _, h := range []histogram{one.Op, two.Op, one.Pair, two.Pair, one.HandOff, two.HandOff} {
		sum.merge(h)
	}
	if p50, p99 := sum.quantile(0.5), sum.quantile(0.99); sum.total() != 8 || math.Abs(p50-100) > 1 || math.Abs(p99-700) > 7 {
		t.Errorf("%d times, p50 %v µs, p99 %v", sum.total(), p50, p99)
	}
}
