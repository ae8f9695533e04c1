package redlatchotel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
)

// A passage is the context that an acquisition goes on with, and that the program
// has under the hold. Its current span changes on the way: it is that of the wait,
// then that of the hold.
type passage struct {
	context.Context //nolint:containedctx // it is one

	t    *Telemetry
	now  atomic.Pointer[context.Context] // has the values; it descends from Context
	of   []attribute.KeyValue            // what both spans say
	wait trace.Span

	mu    sync.Mutex // permits that are acquired together end apart
	hold  trace.Span
	begun time.Time     // the hold
	held  time.Duration // until the last of what has ended
	left  int           // what is still held
	lost  bool          // some of it was
}

// Value implements context.Context. The key t has the passage itself.
func (p *passage) Value(key any) any {
	if t, ok := key.(*Telemetry); ok && t == p.t {
		return p
	}
	return (*p.now.Load()).Value(key)
}

// passage returns the innermost one that begin has made: that of the acquisition.
// There is none without a tracer, nor if the program's AcquireStart has made a
// context of its own.
func (t *Telemetry) passage(ctx context.Context) *passage {
	if t.tracer == nil {
		return nil
	}
	p, _ := ctx.Value(t).(*passage)
	return p
}

// begin begins the span of the wait.
func (t *Telemetry) begin(ctx context.Context, e observe.AcquireStartEvent) context.Context {
	p := &passage{Context: ctx, t: t, of: []attribute.KeyValue{kindKey.String(string(e.Kind))}}
	if name := t.spanName(e.Name); name != "" {
		p.of = append(p.of, nameKey.String(name))
	}
	if e.Mode != "" {
		p.of = append(p.of, modeKey.String(e.Mode))
	}
	if e.N > 0 {
		p.of = append(p.of, permitsKey.Int(e.N))
	}
	waiting, span := t.tracer.Start(ctx, "acquire "+string(e.Kind), trace.WithAttributes(p.of...), trace.WithAttributes(semconv.DBSystemNameRedis)) //nolint:spancheck // acquired ends it
	p.wait = span
	p.now.Store(&waiting)
	return p //nolint:spancheck // as above
}

// acquired ends the span of the wait, and begins that of the hold if there is one.
func (p *passage) acquired(e observe.AcquireEndEvent, now time.Time) {
	p.wait.SetAttributes(outcomeKey.String(string(e.Outcome)))
	if e.Owner != "" {
		p.wait.SetAttributes(ownerKey.String(e.Owner))
	}
	if e.Err != nil && e.Outcome != observe.OutcomeBusy && e.Outcome != observe.OutcomeCancelled {
		p.t.fail(p.wait, string(e.Outcome), e.Err)
	}
	p.wait.End(trace.WithTimestamp(now))

	then := p.Context
	if e.Err == nil {
		if n := holds(e); n > 0 {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.begun, p.left = now, n
			then, p.hold = p.t.tracer.Start(p.Context, "hold "+string(e.Kind), trace.WithTimestamp(now), trace.WithAttributes(p.of...), //nolint:spancheck // ended ends it
				trace.WithLinks(trace.Link{SpanContext: p.wait.SpanContext()}))
			if e.Owner != "" {
				p.hold.SetAttributes(ownerKey.String(e.Owner))
			}
		}
	}
	p.now.Store(&then)
}

// holds is how many ends will be told of what was acquired.
func holds(e observe.AcquireEndEvent) int {
	switch e.Kind {
	case redlatch.KindSemaphore, redlatch.KindRateLimiter, redlatch.KindLatch, redlatch.KindBarrier:
		return 0 // nobody holds it
	case redlatch.KindExpirable:
		return e.N
	}
	return 1
}

// ended ends the span of the hold, with the last of what was acquired. It may be
// told late: the span ends when the hold has.
func (p *passage) ended(e observe.HoldEndEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = max(p.held, e.Held)
	p.left--
	if e.Reason == observe.EndLost {
		p.lost = true
		p.hold.SetAttributes(lossKey.String(loss(e.Err)))
		p.t.fail(p.hold, string(e.Reason), e.Err)
	}
	if p.left > 0 {
		return
	}
	if p.lost {
		e.Reason = observe.EndLost
	}
	p.hold.SetAttributes(reasonKey.String(string(e.Reason)))
	p.hold.End(trace.WithTimestamp(p.begun.Add(p.held)))
}

// fail gives a span the status of an error. What errors say has names in it.
func (t *Telemetry) fail(span trace.Span, what string, err error) {
	span.SetAttributes(semconv.ErrorTypeKey.String(what))
	if t.opts.Name == nil && err != nil {
		what = text(err.Error())
	}
	span.SetStatus(codes.Error, what)
}
