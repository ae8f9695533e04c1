//go:build !race

package clients

import (
	"context"
	"math"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// pairs are acquisitions with their releases, by type.
func pairs(c *redlatch.Client) map[string]func() error {
	s := semaphore.New(c, "jobs", 0)
	lock := func(l *redlatch.Lock) func() error {
		return func() error {
			h, err := l.Acquire(bg)
			if err != nil {
				return err
			}
			return h.Release(bg)
		}
	}
	return map[string]func() error{
		"lock": lock(c.Lock("orders")), "read": lock(c.ReadWriteLock("accounts").Read()),
		"semaphore": func() error { return s.Acquire(bg, 0) }, // needs no request
	}
}

// all are functions that cost nothing by themselves.
var all = observe.Hooks{
	AcquireStart: func(ctx context.Context, _ observe.AcquireStartEvent) context.Context { return ctx },
	AcquireEnd:   func(context.Context, observe.AcquireEndEvent) {},
	HoldEnd:      func(context.Context, observe.HoldEndEvent) {},
}

// Who observes nothing pays nothing, and who does pays for one note.
func TestToBeObservedCostsOneAllocation(t *testing.T) {
	unused, used := pairs(locktest.Pretending(t)), pairs(locktest.Pretending(t, all))
	left := locktest.Pretending(t)
	observe.Add(left, all)()
	observe.Add(left, observe.Hooks{Lost: func(observe.LostEvent) {}})() // call sites
	again := pairs(left)
	count := func(f func() error) float64 { // the least of some: a collection in between has pools filled anew
		least := math.Inf(1)
		for range 5 {
			least = min(least, testing.AllocsPerRun(1000, func() {
				if err := f(); err != nil {
					t.Fatal(err)
				}
			}))
		}
		return least
	}
	for name := range unused {
		without, with := count(unused[name]), count(used[name])
		if with > without+1 {
			t.Errorf("%s: %v allocations without an observer, %v with one", name, without, with)
		}
		if after := count(again[name]); after != without {
			t.Errorf("%s: %v allocations when nobody observes it any more, %v before", name, after, without)
		}
		t.Logf("%s: %v allocations, %v observed", name, without, with)
	}
	if n := count(unused["semaphore"]); n > 0 {
		t.Errorf("a semaphore that nobody observes allocates %v times for no permits, want 0", n)
	}
}

// BenchmarkObserved: what it costs to be observed, with a driver that does
// nothing.
func BenchmarkObserved(b *testing.B) {
	for name, e := range map[string]observe.Hooks{"unused": {}, "used": all} {
		pair := pairs(locktest.Pretending(b, e))["lock"]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := pair(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
