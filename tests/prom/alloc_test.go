//go:build !race

package prom

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchprom"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Metrics cost no allocation beyond the one that any observer costs.
func TestMetricsAllocateNoMoreThanToBeObserved(t *testing.T) {
	observed := locktest.PairAllocs(t, redlatch.Events{
		AcquireEnd: func(context.Context, redlatch.AcquireEndEvent) {},
		HoldEnd:    func(context.Context, redlatch.HoldEndEvent) {},
	})
	counted := locktest.PairAllocs(t, redlatchprom.New(redlatchprom.Options{Name: redlatchprom.Only("orders")}).Events(redlatch.Events{}))
	if counted > observed {
		t.Errorf("a pair allocates %v times when it is observed, and %v times with metrics", observed, counted)
	}
	t.Logf("%v allocations when nobody observes, %v observed, %v with metrics", locktest.PairAllocs(t, redlatch.Events{}), observed, counted)
}
