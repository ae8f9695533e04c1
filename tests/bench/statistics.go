package main

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// level is the least confidence of an interval. It takes six runs to reach it.
const level = 0.95

// Nothing is assumed about how figures are distributed: medians, and the
// Mann-Whitney U test.
var assume = benchmath.AssumeNothing

func sampleOf(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds) // it sorts them
}

// summarize returns the median of values and its confidence interval; of too few
// values the least and the most, without a confidence; of none NaN.
func summarize(values []float64) benchmath.Summary {
	if len(values) == 0 {
		return benchmath.Summary{Center: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	}
	s := assume.Summary(sampleOf(values), level)
	if len(s.Warnings) > 0 {
		s.Lo, s.Hi, s.Confidence = slices.Min(values), slices.Max(values), 0
	}
	return s
}

// median returns NaN for nothing.
func median(values []float64) float64 { return summarize(values).Center }

// geometricMean is what ratios have in the middle: that of 2 and 1/2 is 1.
func geometricMean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

// spanOf prints "median (low to high)", as summarize has them.
func spanOf(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	s := summarize(values)
	return fmt.Sprintf("%s (%s to %s)", short(s.Center), short(s.Lo), short(s.Hi))
}

// spanTitle says what the parentheses of spanOf hold after so many runs.
func spanTitle(runs int) string {
	s := summarize(make([]float64, runs))
	if s.Confidence == 0 {
		return "median (least to most; so few runs give no confidence)"
	}
	return fmt.Sprintf("median (its interval with a confidence of %.1f %%; least to most where fewer than six runs finished)", 100*s.Confidence)
}

// alike marks two samples that the test does not tell apart. It says nothing
// about so few values that it never could.
func alike(a, b []float64) string {
	if c := assume.Compare(sampleOf(a), sampleOf(b)); len(c.Warnings) == 0 && c.P > c.Alpha {
		return " ~"
	}
	return ""
}
