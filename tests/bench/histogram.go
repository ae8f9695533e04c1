package main

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is what a histogram holds at most; whatever took longer counts as this.
const longest = int64(time.Minute)

// A histogram counts nanoseconds, right to two digits. Adding to it allocates
// nothing.
type histogram struct{ counts *hdrhistogram.Histogram }

func newHistogram() histogram { return histogram{hdrhistogram.New(1, longest, 2)} }

func (h histogram) add(ns int64) {
	_ = h.counts.RecordValue(min(max(ns, 0), longest)) // fails only beyond these bounds
}

// merge adds what other has counted; one that never was made has counted nothing.
func (h histogram) merge(other histogram) {
	if other.counts != nil {
		h.counts.Merge(other.counts)
	}
}

func (h histogram) total() int64 { return h.counts.TotalCount() }

// quantile returns the q-quantile in microseconds, or 0 if nothing was counted.
func (h histogram) quantile(q float64) float64 {
	return float64(h.counts.ValueAtPercentile(100*q)) / 1e3
}

// MarshalText and UnmarshalText bring a histogram from process to process, in
// HdrHistogram's own format. One that never was made is no text.
func (h histogram) MarshalText() ([]byte, error) {
	if h.counts == nil {
		return nil, nil
	}
	return h.counts.EncodeV2()
}

func (h *histogram) UnmarshalText(text []byte) (err error) {
	if len(text) > 0 {
		h.counts, err = hdrhistogram.Decode(text)
	}
	return err
}
