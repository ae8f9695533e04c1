package main

import (
	"math/bits"
	"strconv"
)

// Buckets are 1/32 of a power of two wide: a quantile is right within 3 %.
const (
	subBits = 5
	sub     = 1 << subBits
	buckets = sub * 32 // up to 2^36 ns, about a minute
)

// A histogram counts durations. Adding to it allocates nothing.
type histogram [buckets]uint32

func (h *histogram) add(ns int64) { h[bucket(ns)]++ }

func bucket(ns int64) int {
	if ns < sub {
		return int(max(ns, 0))
	}
	shift := bits.Len64(uint64(ns)) - subBits - 1
	return min((shift<<subBits)+int(ns>>shift), buckets-1)
}

// middle returns the middle of bucket i, in nanoseconds.
func middle(i int) float64 {
	if i < 2*sub {
		return float64(i)
	}
	shift := i>>subBits - 1
	return (float64(i-shift<<subBits) + 0.5) * float64(uint64(1)<<shift)
}

// A tally is a histogram on its way between processes: bucket to count.
type tally map[string]uint64

func (t tally) merge(h *histogram) {
	for i, n := range h {
		if n > 0 {
			t[strconv.Itoa(i)] += uint64(n)
		}
	}
}

func (t tally) mergeTally(other tally) {
	for k, n := range other {
		t[k] += n
	}
}

func (t tally) total() (n uint64) {
	for _, v := range t {
		n += v
	}
	return n
}

// quantile returns the q-quantile in microseconds, or 0 if nothing was counted.
func (t tally) quantile(q float64) float64 {
	total := t.total()
	if total == 0 {
		return 0
	}
	var counts [buckets]uint64
	for k, n := range t {
		if i, err := strconv.Atoi(k); err == nil && i >= 0 && i < buckets {
			counts[i] = n
		}
	}
	left := uint64(q * float64(total))
	for i, n := range counts {
		if n > left {
			return middle(i) / 1e3
		}
		left -= n
	}
	return middle(buckets-1) / 1e3
}
