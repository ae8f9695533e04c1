package otel

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/redlatchotel"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// bg is the context of those that need not leave.
var bg = context.Background()

func TestMain(m *testing.M) { leaktest.Main(m) }

// A backend gets what one Telemetry makes.
type backend struct {
	*redlatchotel.Telemetry

	w      *locktest.World
	tracer trace.Tracer // the program's own
	spans  *tracetest.SpanRecorder
	reader *metric.ManualReader
	stops  bool // watching a client, while that holds something: the spans do not end
}

// newBackend returns a backend. When the test is over and its clients are closed,
// each span has to have ended.
func newBackend(w *locktest.World, opts redlatchotel.Options, clients ...*redlatch.Client) *backend {
	w.Helper()
	b := &backend{w: w, spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans))
	b.tracer = tracers.Tracer("program")
	opts.TracerProvider, opts.MeterProvider = tracers, metric.NewMeterProvider(metric.WithReader(b.reader))
	var err error
	if b.Telemetry, err = redlatchotel.New(opts, clients...); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		w.Settle()
		if begun, ended := len(b.spans.Started()), len(b.spans.Ended()); begun != ended && !b.stops {
			w.Errorf("%d spans began and %d ended: %v", begun, ended, names(b.spans.Started()))
		}
	})
	return b
}

// watched returns c, which is watched.
func (b *backend) watched(c *redlatch.Client) *redlatch.Client {
	b.Watch(c)
	return c
}

// ended returns the spans of a name that have ended, in that order.
func (b *backend) ended(name string) (all []sdktrace.ReadOnlySpan) {
	b.w.Settle()
	for _, span := range b.spans.Ended() {
		if span.Name() == name {
			all = append(all, span)
		}
	}
	return all
}

// one returns the only span of a name. It has ended.
func (b *backend) one(name string) sdktrace.ReadOnlySpan {
	b.w.Helper()
	all := b.ended(name)
	if len(all) != 1 {
		b.w.Fatalf("%d spans %q have ended, want 1; there are %v", len(all), name, names(b.spans.Ended()))
	}
	return all[0]
}

// keep acquires a lock until the test is over: a hold that nobody has any more is
// released.
func keep(w *locktest.World, l *redlatch.Lock, opts ...redlatch.PlainOption) {
	w.Helper()
	h := w.Acquire(bg, locktest.With(l, opts...))
	w.Cleanup(func() { _ = h.Release(bg) })
}

func names[S sdktrace.ReadOnlySpan](spans []S) (all []string) {
	for _, span := range spans {
		all = append(all, span.Name())
	}
	return all
}

// say returns what a span says, but for an owner, which nobody knows before.
func say(span sdktrace.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range span.Attributes() {
		if a.Key != "redlatch.owner" {
			all[string(a.Key)] = a.Value.String()
		}
	}
	return all
}

// metrics returns what is collected, by the names of the instruments.
func (b *backend) metrics() map[string]metricdata.Metrics {
	b.w.Helper()
	b.w.Settle()
	var got metricdata.ResourceMetrics
	b.w.OK(b.reader.Collect(bg, &got))
	all := map[string]metricdata.Metrics{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// durations returns the counts and sums of a histogram, by the attributes' values
// in the order of their keys.
func (b *backend) durations(name string) map[string]metricdata.HistogramDataPoint[float64] {
	b.w.Helper()
	all := map[string]metricdata.HistogramDataPoint[float64]{}
	if h, ok := b.metrics()[name].Data.(metricdata.Histogram[float64]); ok {
		for _, p := range h.DataPoints {
			all[p.Attributes.Encoded(attribute.DefaultEncoder())] = p
		}
	}
	return all
}

// number returns the value of an instrument without attributes, or of all of them
// together.
func (b *backend) number(name string) (n float64) {
	b.w.Helper()
	switch data := b.metrics()[name].Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			n += float64(p.Value)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			n += p.Value
		}
	default:
		b.w.Fatalf("there is no %s", name)
	}
	return n
}
