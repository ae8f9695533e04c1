//go:build !race

package otel

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/redlatch/redlatch"
	redlatchotel "github.com/redlatch/redlatch/otel"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// pretending returns a client whose driver does nothing.
func pretending(t *testing.T, events redlatch.Events) *redlatch.Client {
	t.Helper()
	end := make(chan struct{})
	c, err := redlatch.New(&locktest.Blockable{End: end}, redlatch.Config{Events: events})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); close(end) })
	return c
}

// A library that has telemetry built in may be used by programs that have none. To be
// observed costs one allocation, by whomever.
func TestNoProvidersCostNoAllocation(t *testing.T) {
	telemetry, err := redlatchotel.New(redlatchotel.Options{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: noop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	count := func(events redlatch.Events) float64 {
		l := pretending(t, events).Lock("orders")
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
	nobody := count(redlatch.Events{})
	observed := count(redlatch.Events{HoldEnd: func(context.Context, redlatch.HoldEndEvent) {}})
	if with := count(telemetry.Events(redlatch.Events{})); with > nobody+1 || with > observed {
		t.Errorf("%v allocations without telemetry, %v when observed, %v with", nobody, observed, with)
	}
}
