//go:build !race

package redlatchprom_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/redlatchprom"
)

// What is counted millions of times makes no work for the garbage collector.
func TestToCountAllocatesNothing(t *testing.T) {
	e := redlatchprom.New(redlatchprom.Options{Name: redlatchprom.Only("orders")}).Hooks()
	if n := testing.AllocsPerRun(1000, func() {
		e.AcquireEnd(bg, acquired("orders", time.Millisecond))
		e.HoldEnd(bg, released("orders", time.Millisecond))
	}); n > 0 {
		t.Errorf("an acquisition and its release allocate %v times", n)
	}
}

// BenchmarkHooks is what an acquisition and its release cost more.
func BenchmarkHooks(b *testing.B) {
	e := redlatchprom.New(redlatchprom.Options{}).Hooks()
	for b.Loop() {
		e.AcquireEnd(bg, acquired("orders", time.Millisecond))
		e.HoldEnd(bg, released("orders", time.Millisecond))
	}
}
