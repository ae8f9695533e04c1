//go:build !race

package prom

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redlatchprom"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Metrics cost no allocation beyond the one that any observer costs.
func TestMetricsAllocateNoMoreThanToBeObserved(t *testing.T) {
	observed := locktest.PairAllocs(t, locktest.Pretending(t, observe.Hooks{
		AcquireEnd: func(context.Context, observe.AcquireEndEvent) {},
		HoldEnd:    func(context.Context, observe.HoldEndEvent) {},
	}))
	c := locktest.Pretending(t)
	redlatchprom.New(redlatchprom.Options{Name: redlatchprom.Only("orders")}, c)
	counted := locktest.PairAllocs(t, c)
	if counted > observed {
		t.Errorf("a pair allocates %v times when it is observed, and %v times with metrics", observed, counted)
	}
	t.Logf("%v allocations when nobody observes, %v observed, %v with metrics", locktest.PairAllocs(t, locktest.Pretending(t)), observed, counted)
}
