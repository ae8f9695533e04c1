//go:build !race

package prom

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/prom"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Metrics cost no allocation beyond the one that any observer costs.
func TestMetricsCostNoMoreThanToBeObserved(t *testing.T) {
	pair := func(events redlatch.Events) float64 {
		end := make(chan struct{})
		c, err := redlatch.New(&locktest.Blockable{End: end}, redlatch.Config{Events: events})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close(); close(end) }()
		l := c.Lock("orders")
		return testing.AllocsPerRun(2000, func() {
			h, err := l.Acquire(bg)
			if err == nil {
				err = h.Release(bg)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	observed := pair(redlatch.Events{
		AcquireEnd: func(context.Context, redlatch.AcquireEndEvent) {},
		HoldEnd:    func(context.Context, redlatch.HoldEndEvent) {},
	})
	counted := pair(prom.New(prom.Options{Name: prom.Only("orders")}).Events(redlatch.Events{}))
	if counted > observed {
		t.Errorf("a pair allocates %v times when it is observed, and %v times with metrics", observed, counted)
	}
	t.Logf("%v allocations when nobody observes, %v observed, %v with metrics", pair(redlatch.Events{}), observed, counted)
}
