package redlatchotel

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
)

const scope = "github.com/redlatch/redlatch/redlatchotel"

// The attributes.
const (
	kindKey    = attribute.Key("redlatch.kind")
	nameKey    = attribute.Key("redlatch.name")
	modeKey    = attribute.Key("redlatch.mode")
	permitsKey = attribute.Key("redlatch.permits")
	ownerKey   = attribute.Key("redlatch.owner")
	outcomeKey = attribute.Key("redlatch.outcome")
	reasonKey  = attribute.Key("redlatch.reason")
	lossKey    = attribute.Key("redlatch.loss")
)

// Options are for New. The zero value is ready for use. The struct may get more
// fields.
type Options struct {
	// TracerProvider makes the tracer. Nil stands for the global one. With the one of
	// package trace/noop, no span is made and no context is changed, which costs
	// nothing.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the meter. Nil stands for the global one.
	MeterProvider metric.MeterProvider

	// Name returns what spans show for the name of a lock or synchronizer. Empty means
	// that they show no name. If Name is nil, spans have the names as they are: spans
	// are looked at one by one, so many different names do no harm. Set it if names
	// contain what traces must not contain, such as customers. Then the texts of
	// errors, which quote names, are left out.
	Name func(name string) string
	// MetricName returns what metrics show for the name. Empty means that they show no
	// name. If MetricName is nil, metrics have no names, but for redlatch.leader: it
	// has what Name returns for the names of elections, or these themselves if Name is
	// nil, too. A process stands in few. Each different name is a time series of its
	// own for ever, so let it return only a few, such as "orders" for "orders:42".
	MetricName func(name string) string
}

// A Telemetry makes traces and metrics from the events of clients. One Telemetry
// is enough for all clients of a program. It is safe for concurrent use.
type Telemetry struct {
	opts   Options
	tracer trace.Tracer // nil if spans would go nowhere

	acquire, hold durations
	losses        metric.Int64Counter
	watched       clients
}

// New makes the instruments, and records what happens to the clients from now on.
// [Telemetry.Watch] adds clients that are made later. The error of New is an error
// of the providers, for example of one that refuses an instrument. Then nothing is
// recorded.
//
// Functions that the program adds to a client with observe.Add after New, or after
// Watch, have the span in their contexts, and may add attributes to it.
func New(opts Options, clients ...*redlatch.Client) (*Telemetry, error) {
	if opts.TracerProvider == nil {
		opts.TracerProvider = otel.GetTracerProvider()
	}
	if opts.MeterProvider == nil {
		opts.MeterProvider = otel.GetMeterProvider()
	}
	t := &Telemetry{opts: opts}
	t.watched.electionName = t.spanName
	if opts.MetricName != nil {
		t.watched.electionName = t.metricName
	}
	if _, none := opts.TracerProvider.(noop.TracerProvider); !none {
		t.tracer = opts.TracerProvider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
	}
	meter := opts.MeterProvider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	var refused [4]error
	t.losses, refused[0] = meter.Int64Counter("redlatch.losses", metric.WithUnit("{loss}"),
		metric.WithDescription("Holds that were lost before they were released."))
	refused[1] = t.acquire.make(meter, outcomeKey, "redlatch.acquire.duration", "How long acquisitions took, whether they succeeded or not.",
		.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300)
	refused[2] = t.hold.make(meter, reasonKey, "redlatch.hold.duration", "How long holds lasted.",
		.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600)
	refused[3] = t.watched.make(meter)
	if err := errors.Join(refused[:]...); err != nil {
		return nil, err
	}
	for _, client := range clients {
		t.Watch(client)
	}
	return t, nil
}

// hooks are what records. A function that is added later is called with a context
// that has the span: when that has begun, and before it ends.
func (t *Telemetry) hooks() observe.Hooks {
	h := observe.Hooks{AcquireEnd: t.acquireEnd, HoldEnd: t.holdEnd}
	if t.tracer != nil {
		h.AcquireStart = t.begin
	}
	return h
}

func (t *Telemetry) acquireEnd(ctx context.Context, e observe.AcquireEndEvent) {
	now := time.Now()
	t.acquire.record(ctx, e.Waited, string(e.Kind), string(e.Outcome), t.metricName(e.Name))
	if p := t.passage(ctx); p != nil {
		p.acquired(e, now)
	}
}

func (t *Telemetry) holdEnd(ctx context.Context, e observe.HoldEndEvent) {
	name := t.metricName(e.Name)
	t.hold.record(ctx, e.Held, string(e.Kind), string(e.Reason), name)
	if e.Reason == observe.EndLost {
		t.losses.Add(ctx, 1, metric.WithAttributeSet(set(string(e.Kind), lossKey.String(loss(e.Err)), name)))
	}
	if p := t.passage(ctx); p != nil {
		p.ended(e)
	}
}

// metricName and spanName return what is said for a name.
func (t *Telemetry) metricName(name string) string {
	if t.opts.MetricName == nil {
		return ""
	}
	return text(t.opts.MetricName(name))
}

func (t *Telemetry) spanName(name string) string {
	if t.opts.Name != nil {
		name = t.opts.Name(name)
	}
	return text(name)
}

// text is s as exporters take it: one attribute that is not UTF-8 costs them a
// whole batch.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// loss says why a hold was lost: of several that were lost together, the first.
func loss(err error) string {
	var lost *redlatch.LostError
	if errors.As(err, &lost) {
		return string(lost.Reason)
	}
	return "unknown"
}

// set is the attributes of a measurement.
func set(kind string, word attribute.KeyValue, name string) attribute.Set {
	if name == "" {
		return attribute.NewSet(kindKey.String(kind), word)
	}
	return attribute.NewSet(kindKey.String(kind), word, nameKey.String(name))
}
