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

// Options are for New. The zero value is ready for use. The struct may get more fields.
type Options struct {
	// TracerProvider makes the tracer. Nil stands for the global one. With the one of
	// package trace/noop, no span is made and no context is changed, which costs
	// nothing.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the meter. Nil stands for the global one.
	MeterProvider metric.MeterProvider

	// Name returns what spans show for the name of a lock or synchronizer. Empty means
	// that they show no name. If Name is nil, spans have the names as they are: spans are
	// looked at one by one, so many different names do no harm. Set it if names contain
	// what traces must not contain, such as customers. Then the texts of errors, which
	// quote names, are left out.
	Name func(name string) string
	// MetricName returns what metrics show for the name. Empty means that they show no
	// name. If MetricName is nil, metrics have no names. Each different name is a time
	// series of its own for ever, so let it return only a few, such as "orders" for
	// "orders:42".
	MetricName func(name string) string
}

// A Telemetry makes traces and metrics from the events of clients. One Telemetry is
// enough for all clients of a program. It is safe for concurrent use.
type Telemetry struct {
	opts   Options
	tracer trace.Tracer // nil if spans would go nowhere

	acquire, hold durations
	losses        metric.Int64Counter
	watched       clients
}

// New makes the instruments. Its error is an error of the providers, for example of one
// that refuses an instrument. Nothing is recorded before [Telemetry.Events] and
// [Telemetry.Watch] are used.
func New(opts Options) (*Telemetry, error) {
	if opts.TracerProvider == nil {
		opts.TracerProvider = otel.GetTracerProvider()
	}
	if opts.MeterProvider == nil {
		opts.MeterProvider = otel.GetMeterProvider()
	}
	t := &Telemetry{opts: opts}
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
	return t, nil
}

// Events returns the events for redlatch.Config.Events. They are those of the program,
// which may be the zero value, together with those that record. The program's functions
// are called as without a Telemetry, but with a context that has the span. AcquireStart
// is called when the span has begun, AcquireEnd and HoldEnd before it ends, so they may
// add attributes to it.
func (t *Telemetry) Events(of redlatch.Events) redlatch.Events {
	with := of
	if t.tracer != nil {
		with.AcquireStart = func(ctx context.Context, e redlatch.AcquireStartEvent) context.Context {
			ctx = t.begin(ctx, e)
			if of.AcquireStart != nil {
				if its := of.AcquireStart(ctx, e); its != nil {
					return its
				}
			}
			return ctx
		}
	}
	with.AcquireEnd = func(ctx context.Context, e redlatch.AcquireEndEvent) {
		now := time.Now()
		if of.AcquireEnd != nil {
			of.AcquireEnd(ctx, e)
		}
		t.acquire.record(ctx, e.Waited, string(e.Kind), string(e.Outcome), t.metricName(e.Name))
		if p := t.passage(ctx); p != nil {
			p.acquired(e, now)
		}
	}
	with.HoldEnd = func(ctx context.Context, e redlatch.HoldEndEvent) {
		if of.HoldEnd != nil {
			of.HoldEnd(ctx, e)
		}
		name := t.metricName(e.Name)
		t.hold.record(ctx, e.Held, string(e.Kind), string(e.Reason), name)
		if e.Reason == redlatch.EndLost {
			t.losses.Add(ctx, 1, metric.WithAttributeSet(set(string(e.Kind), lossKey.String(loss(e.Err)), name)))
		}
		if p := t.passage(ctx); p != nil {
			p.ended(e)
		}
	}
	return with
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

// text is s as exporters take it: one attribute that is not UTF-8 costs them a whole batch.
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
