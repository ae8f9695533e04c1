package otel

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redlatchotel"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// The sum of all clients is what a program holds.
func TestWatchedClientsAreObserved(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		b.stops = true
		if _, ok := b.metrics()["redlatch.holds"]; ok {
			t.Error("holds are told of no client")
		}
		one, two := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		stop, again := b.Watch(one), b.Watch(one)
		stopTwo := b.Watch(two)
		keep(w, one.Lock("a"))
		keep(w, one.Lock("b"))
		keep(w, two.Lock("c"))
		p := w.Permit(w.Permits(one, 1))
		ctx, cancel := context.WithCancel(bg)
		waiting := locktest.Later(func() error {
			_, err := two.Lock("a").Acquire(ctx)
			return err
		})
		time.Sleep(time.Second)
		want := func(when string, all map[string]float64) {
			t.Helper()
			for name, n := range all {
				if got := b.number(name); got != n {
					t.Errorf("%s: %s is %v, want %v", when, name, got, n)
				}
			}
		}
		want("at first", map[string]float64{
			"redlatch.holds": 3, "redlatch.permits": 1, "redlatch.waiters": 1,
			"redlatch.renewals.due": 0, "redlatch.renewals.failed": 0, "redlatch.renewals.lag": 0,
		})
		cancel()
		w.WantErr(<-waiting, context.Canceled)

		w.Server.SetError("LOADING Redis is loading the dataset in memory")
		time.Sleep(15 * time.Second)
		s := one.Stats()
		if s.RenewalsFailed == 0 || s.RenewalsDue == 0 {
			t.Fatalf("%+v", s)
		}
		failed := s.RenewalsFailed + two.Stats().RenewalsFailed
		want("in an outage", map[string]float64{
			"redlatch.renewals.due": float64(s.RenewalsDue + two.Stats().RenewalsDue), "redlatch.renewals.failed": float64(failed),
			"redlatch.renewals.lag": max(s.RenewalLag, two.Stats().RenewalLag),
		})
		stop()
		stop()
		want("watched once more", map[string]float64{"redlatch.renewals.failed": float64(failed)})
		again()
		want("one left", map[string]float64{"redlatch.holds": 1, "redlatch.permits": 0, "redlatch.renewals.failed": float64(failed)})
		stopTwo()
		if _, ok := b.metrics()["redlatch.holds"]; ok {
			t.Error("holds are told of a client that is not watched")
		}
		want("none left", map[string]float64{"redlatch.renewals.failed": float64(failed)})
		b.Watch(one)
		want("watched anew", map[string]float64{"redlatch.holds": 2, "redlatch.renewals.failed": float64(failed)})
		w.Server.SetError("")
		w.OK(p.Release(bg))
	})
}

// An exemplar leads from a slow bucket to the trace.
func TestDurationsHaveExemplars(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		w.OK(b.watched(w.Client(redlatch.Config{})).Lock("orders").Do(bg, nothing))
		for name, span := range map[string]sdktrace.ReadOnlySpan{
			"redlatch.acquire.duration": b.one("acquire lock"), "redlatch.hold.duration": b.one("hold lock"),
		} {
			for _, p := range b.durations(name) {
				id := span.SpanContext().SpanID()
				if len(p.Exemplars) != 1 || [8]byte(p.Exemplars[0].SpanID) != id {
					t.Errorf("%s has the exemplars %v, want the span %v", name, p.Exemplars, id)
				}
			}
		}
	})
}

// The units and kinds of instruments are what dashboards are built on.
func TestInstrumentsAreAsDocumented(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		c := b.watched(w.Client(redlatch.Config{}))
		keep(w, c.Lock("orders"))
		w.Cleanup(stand(c, "scheduler"))
		w.Server.FlushAll()
		time.Sleep(time.Minute)
		got := b.metrics()
		for name, want := range map[string]struct{ unit, kind string }{
			"redlatch.acquire.duration": {"s", "histogram"}, "redlatch.hold.duration": {"s", "histogram"}, "redlatch.losses": {"{loss}", "counter"},
			"redlatch.holds": {"{hold}", "up-down counter"}, "redlatch.permits": {"{permit}", "up-down counter"}, "redlatch.waiters": {"{waiter}", "up-down counter"}, "redlatch.leader": {"{leader}", "up-down counter"},
			"redlatch.renewals.due": {"{renewal}", "up-down counter"}, "redlatch.renewals.failed": {"{renewal}", "counter"}, "redlatch.renewals.lag": {"1", "gauge"},
		} {
			kind := "none"
			switch data := got[name].Data.(type) {
			case metricdata.Histogram[float64]:
				kind = "histogram"
				if bounds := data.DataPoints[0].Bounds; bounds[0] > .001 || bounds[len(bounds)-1] < 300 {
					t.Errorf("%s has the buckets %v", name, bounds)
				}
			case metricdata.Gauge[float64]:
				kind = "gauge"
			case metricdata.Sum[int64]:
				kind = "up-down counter"
				if data.IsMonotonic {
					kind = "counter"
				}
			}
			if kind != want.kind || got[name].Unit != want.unit || got[name].Description == "" {
				t.Errorf("%s is a %s of %q, %q; want a %s of %q", name, kind, got[name].Unit, got[name].Description, want.kind, want.unit)
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("nothing is said of %s", name)
		}
	})
}

// What is counted under contention is what has happened.
func TestManyCallersAtOnceAreAllCounted(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		clients := []*redlatch.Client{b.watched(w.Client(redlatch.Config{})), b.watched(w.Client(redlatch.Config{}))}
		const callers, times = 8, 20
		var all sync.WaitGroup
		for i := range callers {
			c := clients[i%len(clients)]
			all.Go(func() {
				defer b.Watch(c)()
				for n := range times {
					ctx, cancel := context.WithTimeout(bg, time.Duration(n)*time.Millisecond)
					_ = c.Lock("orders").Do(ctx, func(ctx context.Context) error {
						time.Sleep(time.Millisecond)
						return c.Lock("orders").Do(ctx, nothing)
					})
					cancel()
					_ = c.ReadWriteLock("accounts").Read().Do(bg, nothing)
				}
			})
		}
		for range 20 {
			time.Sleep(time.Millisecond)
			b.metrics()
		}
		all.Wait()
		count := func(name string) (n int) {
			for _, p := range b.durations(name) {
				n += int(p.Count)
			}
			return n
		}
		waits, holds := 0, 0
		for _, kind := range []redlatch.Kind{redlatch.KindLock, redlatch.KindReadWrite} {
			waits += len(b.ended("acquire " + string(kind)))
			holds += len(b.ended("hold " + string(kind)))
		}
		if waits < 2*callers*times || count("redlatch.acquire.duration") != waits {
			t.Errorf("%d acquisitions are counted, and there are %d spans", count("redlatch.acquire.duration"), waits)
		}
		if holds < callers*times || count("redlatch.hold.duration") != holds {
			t.Errorf("%d holds are counted, and there are %d spans", count("redlatch.hold.duration"), holds)
		}
	})
}

// A client is watched from New or Watch on until all have stopped that, however
// often.
func TestAClientIsRecordedOnceUntilNobodyWatchesIt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		b := newBackend(w, redlatchotel.Options{}, c)
		stop, again := b.Watch(other), b.Watch(other)
		want := func(when string, times uint64) {
			t.Helper()
			for _, c := range []*redlatch.Client{c, other} {
				w.OK(c.Lock("orders").Do(bg, nothing))
			}
			if n := b.durations("redlatch.hold.duration")["redlatch.kind=lock,redlatch.reason=released"].Count; n != times {
				t.Errorf("%s: %d holds are recorded, want %d", when, n, times)
			}
			if spans := len(b.ended("hold lock")); uint64(spans) != times {
				t.Errorf("%s: %d holds have spans, want %d", when, spans, times)
			}
		}
		want("both", 2)
		b.Watch(c)
		stop()
		want("watched once more", 4)
		again()
		want("one left", 5)
		b.Watch(other)
		want("watched anew", 7)
	})
}

// A program without a tracer keeps its contexts.
func TestWithoutATracerNoContextIsMade(t *testing.T) {
	telemetry, err := redlatchotel.New(redlatchotel.Options{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: noop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	c := locktest.Pretending(t)
	telemetry.Watch(c)
	var got context.Context
	observe.Add(c, observe.Hooks{AcquireStart: func(ctx context.Context, _ observe.AcquireStartEvent) context.Context { got = ctx; return nil }})
	ctx := context.WithValue(bg, bg, "the caller's")
	if err := c.Lock("orders").Do(ctx, nothing); err != nil || got != ctx {
		t.Errorf("%v; the acquisition goes on with %v, want %v", err, got, ctx)
	}
}

// stand has a client be a candidate that leads if it can, until the returned
// function is called.
func stand(c *redlatch.Client, name string) (end func()) {
	ctx, stop := context.WithCancel(bg)
	ended := locktest.Later(func() error {
		return election.New(c, name).Run(ctx, func(ctx context.Context, _ int64) error { <-ctx.Done(); return nil })
	})
	time.Sleep(time.Second)
	return func() { stop(); <-ended } //nolint:errcheck // how it ends is no matter
}

// The sum over processes says whether anybody leads, so a process that leads by
// one of its clients counts once.
func TestWhoLeadsIsObserved(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		one, two := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		own := newBackend(w, redlatchotel.Options{}, one, two)
		// Who sets Name keeps names in the process: an election's went out all the same.
		masked := newBackend(w, redlatchotel.Options{Name: func(name string) string { return "election " + name[:1] }}, one, two)
		hidden := newBackend(w, redlatchotel.Options{Name: func(string) string { return "" }}, one, two)
		none := newBackend(w, redlatchotel.Options{MetricName: func(string) string { return "" }}, one, two)
		want := func(b *backend, want map[string]int64) {
			t.Helper()
			got := map[string]int64{}
			if data, ok := b.metrics()["redlatch.leader"].Data.(metricdata.Sum[int64]); ok {
				for _, p := range data.DataPoints {
					name, _ := p.Attributes.Value("redlatch.name")
					got[name.AsString()] = p.Value
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("redlatch.leader is %v, want %v", got, want)
			}
		}
		want(own, map[string]int64{})
		foreign := stand(w.Client(redlatch.Config{}), "a")
		ends := []func(){stand(one, "a"), stand(two, "a"), stand(one, "b\xff")}
		want(own, map[string]int64{"a": 0, "b\uFFFD": 1})
		want(masked, map[string]int64{"election a": 0, "election b": 1})
		want(hidden, map[string]int64{"": 1})
		want(none, map[string]int64{"": 1})
		ends[2]()
		want(none, map[string]int64{"": 0})
		foreign()
		time.Sleep(time.Second)
		want(own, map[string]int64{"a": 1})
		ends[0]()
		ends[1]()
		want(own, map[string]int64{})
	})
}
