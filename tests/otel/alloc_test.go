//go:build !race

package otel

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redlatchotel"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A library that has telemetry built in may be used by programs that have none. To
// be observed costs one allocation, by whomever.
func TestNoProvidersCostNoAllocation(t *testing.T) {
	telemetry, err := redlatchotel.New(redlatchotel.Options{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: noop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	nobody := locktest.PairAllocs(t, locktest.Pretending(t))
	observed := locktest.PairAllocs(t, locktest.Pretending(t, observe.Hooks{HoldEnd: func(context.Context, observe.HoldEndEvent) {}}))
	c := locktest.Pretending(t)
	telemetry.Watch(c)
	if with := locktest.PairAllocs(t, c); with > nobody+1 || with > observed {
		t.Errorf("%v allocations without telemetry, %v when observed, %v with", nobody, observed, with)
	}
}
