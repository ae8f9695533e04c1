package otel

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redlatchotel"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// wantParent complains unless a span is the child of another.
func wantParent(t *testing.T, span sdktrace.ReadOnlySpan, of trace.SpanContext) {
	t.Helper()
	if span.Parent().SpanID() != of.SpanID() || span.SpanContext().TraceID() != of.TraceID() {
		t.Errorf("%s is a child of %v, want %v", span.Name(), span.Parent().SpanID(), of.SpanID())
	}
}

// A program's request waits for a lock that somebody else has, and works with it.
func TestTheWaitAndTheHoldAreTwoSpans(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		var asked []trace.SpanContext
		c := b.watched(w.Tapped(redlatch.Config{}, &locktest.Tap{Seen: func(ctx context.Context) { asked = append(asked, trace.SpanContextFromContext(ctx)) }}))
		other := w.Acquire(bg, w.Client(redlatch.Config{}).Lock("orders"))
		time.AfterFunc(3*time.Second, func() { w.Release(other) })

		ctx, request := b.tracer.Start(bg, "request")
		start := time.Now()
		h := w.Acquire(ctx, c.Lock("orders"))
		got := time.Now()
		_, work := b.tracer.Start(h.Context(), "work")
		work.End()
		_, beside := b.tracer.Start(h.With(ctx), "beside")
		beside.End()
		time.Sleep(5 * time.Second)
		w.Release(h)
		over := time.Now()
		request.End()

		wait, hold := b.one("acquire lock"), b.one("hold lock")
		wantParent(t, wait, request.SpanContext())
		wantParent(t, hold, request.SpanContext())
		wantParent(t, b.one("work"), hold.SpanContext())
		wantParent(t, b.one("beside"), request.SpanContext())
		if got.Sub(start) < 3*time.Second || !wait.StartTime().Equal(start) || !wait.EndTime().Equal(got) {
			t.Errorf("the wait from %v to %v is told from %v to %v", start, got, wait.StartTime(), wait.EndTime())
		}
		if !hold.StartTime().Equal(got) || !hold.EndTime().Equal(over) {
			t.Errorf("the hold from %v to %v is told from %v to %v", got, over, hold.StartTime(), hold.EndTime())
		}
		if links := hold.Links(); len(links) != 1 || !links[0].SpanContext.Equal(wait.SpanContext()) {
			t.Errorf("the hold has the links %v", links)
		}
		if len(asked) == 0 || !asked[0].Equal(wait.SpanContext()) {
			t.Errorf("the driver was asked under %v, want the wait's %v", asked, wait.SpanContext())
		}
		for span, want := range map[sdktrace.ReadOnlySpan]map[string]string{
			wait: {"redlatch.kind": "lock", "redlatch.name": "orders", "redlatch.outcome": "acquired", "db.system.name": "redis"},
			hold: {"redlatch.kind": "lock", "redlatch.name": "orders", "redlatch.reason": "released"},
		} {
			if !maps.Equal(say(span), want) || span.Status().Code != codes.Unset || span.SpanKind() != trace.SpanKindInternal {
				t.Errorf("%s says %v, %v, %v; want %v", span.Name(), say(span), span.Status(), span.SpanKind(), want)
			}
			if owner := attribute.String("redlatch.owner", h.ID()); !hasAttribute(span, owner) {
				t.Errorf("%s does not say the owner %s", span.Name(), h.ID())
			}
		}
	})
}

func hasAttribute(span sdktrace.ReadOnlySpan, want attribute.KeyValue) bool {
	return slices.Contains(span.Attributes(), want)
}

// Whoever reads traces looks for errors. What a caller has asked for is none.
func TestOutcomesAreToldBySpansAndHistograms(t *testing.T) {
	for name, story := range map[string]struct {
		want   observe.Outcome
		status codes.Code
		took   time.Duration
		tell   func(w *locktest.World, l *redlatch.Lock, b *backend) error
	}{
		"free": {observe.OutcomeAcquired, codes.Unset, 0, func(_ *locktest.World, l *redlatch.Lock, _ *backend) error {
			return l.Do(bg, func(context.Context) error { return nil })
		}},
		"busy": {observe.OutcomeBusy, codes.Unset, 0, func(_ *locktest.World, l *redlatch.Lock, _ *backend) error {
			_, err := l.TryAcquire(bg, 0)
			return err
		}},
		"cancelled": {observe.OutcomeCancelled, codes.Unset, time.Second, func(_ *locktest.World, l *redlatch.Lock, _ *backend) error {
			ctx, cancel := context.WithCancel(bg)
			time.AfterFunc(time.Second, cancel)
			_, err := l.Acquire(ctx)
			return err
		}},
		"timed out": {observe.OutcomeTimedOut, codes.Error, time.Second, func(_ *locktest.World, l *redlatch.Lock, _ *backend) error {
			_, err := l.TryAcquire(bg, time.Second)
			return err
		}},
		"outage": {observe.OutcomeUnavailable, codes.Error, 10 * time.Second, func(w *locktest.World, l *redlatch.Lock, _ *backend) error {
			w.Server.SetError("LOADING Redis is loading the dataset in memory")
			defer w.Server.SetError("")
			_, err := l.Acquire(bg)
			return err
		}},
		"refused": {observe.OutcomeRefused, codes.Error, 0, func(_ *locktest.World, l *redlatch.Lock, _ *backend) error {
			_, err := locktest.With(l, redlatch.Lease(time.Nanosecond)).Acquire(bg)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				b := newBackend(w, redlatchotel.Options{})
				if story.want != observe.OutcomeAcquired {
					keep(w, w.Client(redlatch.Config{}).Lock("orders"))
				}
				err := story.tell(w, b.watched(w.Client(redlatch.Config{})).Lock("orders"), b)
				span := b.one("acquire lock")
				if say(span)["redlatch.outcome"] != string(story.want) || span.Status().Code != story.status {
					t.Errorf("%v is told as %v with %v", err, say(span), span.Status())
				}
				if failed := story.status == codes.Error; failed && (span.Status().Description != err.Error() || say(span)["error.type"] != string(story.want)) {
					t.Errorf("%v is told as %v with %v", err, say(span), span.Status())
				}
				if took := span.EndTime().Sub(span.StartTime()); took < story.took || took > story.took+time.Second {
					t.Errorf("it took %v, want %v", took, story.took)
				}
				if n := len(b.ended("hold lock")); (n == 1) != (err == nil) {
					t.Errorf("%d spans of holds after %v", n, err)
				}
				all := b.durations("redlatch.acquire.duration")
				p, ok := all["redlatch.kind=lock,redlatch.outcome="+string(story.want)]
				if !ok || len(all) != 1 || p.Count != 1 || p.Sum < story.took.Seconds() || p.Sum > (story.took+time.Second).Seconds() {
					t.Errorf("the histogram has %+v", all)
				}
			})
		})
	}
}

// What is handed off or re-entered is a hold of its own, below that of its own
// caller.
func TestHandOffAndReentryAreToldInTheirOwnTraces(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		l := b.watched(w.Client(redlatch.Config{})).Lock("orders")
		first, one := b.tracer.Start(bg, "one")
		second, two := b.tracer.Start(bg, "two")
		h := w.Acquire(first, l)
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(second, l) })
		time.Sleep(time.Millisecond)
		w.Release(h)
		h = <-next
		inner := w.Acquire(h.Context(), l)
		_, work := b.tracer.Start(inner.Context(), "work")
		work.End()
		w.Release(inner)
		w.Release(h)
		one.End()
		two.End()

		waits, holds := b.ended("acquire lock"), b.ended("hold lock")
		if len(waits) != 3 || len(holds) != 3 {
			t.Fatalf("there are %v", names(b.spans.Ended()))
		}
		outer, within := holds[2], holds[1] // the inner one ends first
		for i, want := range []observe.Outcome{observe.OutcomeAcquired, observe.OutcomeHandedOff, observe.OutcomeReentered} {
			if got := say(waits[i])["redlatch.outcome"]; got != string(want) {
				t.Errorf("the acquisition %d is told as %q, want %q", i+1, got, want)
			}
		}
		wantParent(t, holds[0], one.SpanContext())
		wantParent(t, outer, two.SpanContext())
		wantParent(t, waits[2], outer.SpanContext())
		wantParent(t, within, outer.SpanContext())
		wantParent(t, b.one("work"), within.SpanContext())
	})
}

// A loss is an error that began before anybody was told.
func TestALossIsAnError(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		c := b.watched(w.Client(redlatch.Config{}))
		h := w.Acquire(bg, c.Lock("orders"))
		start := time.Now()
		w.Server.FlushAll()
		<-h.Context().Done()
		over := time.Since(start)
		span := b.one("hold lock")
		want := map[string]string{
			"redlatch.kind": "lock", "redlatch.name": "orders", "redlatch.reason": "lost",
			"redlatch.loss": string(redlatch.LostGone), "error.type": "lost",
		}
		if got := say(span); !maps.Equal(got, want) {
			t.Errorf("told as %v, want %v", got, want)
		}
		if s := span.Status(); s.Code != codes.Error || s.Description != h.Err().Error() {
			t.Errorf("the status is %v", s)
		}
		if took := span.EndTime().Sub(span.StartTime()); took != over {
			t.Errorf("held for %v, told %v", over, took)
		}
		if all := b.durations("redlatch.hold.duration"); all["redlatch.kind=lock,redlatch.reason=lost"].Sum != over.Seconds() {
			t.Errorf("the histogram has %+v", all)
		}
		if n := b.number("redlatch.losses"); n != 1 {
			t.Errorf("%v losses", n)
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)
	})
}

// The end of a hold may be told long after it: the span has the time of the hold.
func TestAHoldThatIsToldLateEndsWhenItDid(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		c := locktest.Observed(b.watched(w.Client(redlatch.Config{})), observe.Hooks{
			HoldEnd: func(context.Context, observe.HoldEndEvent) { time.Sleep(time.Second) },
		})
		for _, name := range []string{"a", "b", "c"} {
			keep(w, c.Lock(name), redlatch.Lease(2*time.Second))
		}
		time.Sleep(time.Minute)
		for _, span := range b.ended("hold lock") {
			if took := span.EndTime().Sub(span.StartTime()); took > 2*time.Second {
				t.Errorf("%v is told to have lasted for %v", say(span), took)
			}
		}
	})
}

// A span that is never ended is never seen.
func TestTheSpansOfEveryTypeEnd(t *testing.T) {
	type acquire = func(w *locktest.World, c *redlatch.Client) error
	stories := map[string]struct {
		kind    redlatch.Kind
		acquire acquire
		holds   int
	}{
		"multi": {redlatch.KindMultiLock, func(_ *locktest.World, c *redlatch.Client) error {
			return redlatch.MultiLock(c.Lock("a"), c.FairLock("b")).Do(bg, nothing)
		}, 1},
		"red": {redlatch.KindRedLock, func(w *locktest.World, c *redlatch.Client) error {
			other, third := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
			return redlatch.RedLock(c.Lock("a"), other.Lock("b"), third.Lock("c")).Do(bg, nothing)
		}, 1},
		"semaphore": {redlatch.KindSemaphore, func(w *locktest.World, c *redlatch.Client) error {
			w.SetPermits(semaphore.New(c, "jobs", 0), 2)
			return semaphore.New(c, "jobs", 0).Acquire(bg, 2)
		}, 0},
		"permits": {redlatch.KindExpirable, func(w *locktest.World, c *redlatch.Client) error {
			ps, err := locktest.Each(w.Permits(c, 3).Acquire(bg, 3))
			for _, p := range ps {
				err = errors.Join(err, p.Release(bg))
			}
			return err
		}, 1},
		"no permits": {redlatch.KindExpirable, func(w *locktest.World, c *redlatch.Client) error {
			_, err := locktest.Each(w.Permits(c, 3).Acquire(bg, 0))
			return err
		}, 0},
		"limiter": {redlatch.KindRateLimiter, func(w *locktest.World, c *redlatch.Client) error {
			w.SetRate(ratelimit.New(c, "api", ratelimit.Rate{}), ratelimit.Rate{Permits: 3, Interval: time.Hour})
			return ratelimit.New(c, "api", ratelimit.Rate{}).Acquire(bg, 3)
		}, 0},
		"latch": {redlatch.KindLatch, func(_ *locktest.World, c *redlatch.Client) error {
			return latch.New(c, "ready").Wait(bg)
		}, 0},
		"barrier": {redlatch.KindBarrier, func(_ *locktest.World, c *redlatch.Client) error {
			_, err := barrier.New(c, "step", 1).Await(bg)
			return err
		}, 0},
	}
	kinds := map[string]redlatch.Kind{
		"lock": redlatch.KindLock, "fair": redlatch.KindFair, "spin": redlatch.KindLock, "fenced": redlatch.KindFenced,
		"group": redlatch.KindGroup, "write": redlatch.KindReadWrite, "read": redlatch.KindReadWrite, "non-re-entry": redlatch.KindLock,
	}
	for name, of := range locktest.MemberKinds {
		stories[name] = struct {
			kind    redlatch.Kind
			acquire acquire
			holds   int
		}{kinds[name], func(_ *locktest.World, c *redlatch.Client) error { return of(c, "x").Do(bg, nothing) }, 1}
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				b := newBackend(w, redlatchotel.Options{})
				err := story.acquire(w, b.watched(w.Client(redlatch.Config{})))
				wait := b.one("acquire " + string(story.kind))
				if refused := name == "no permits"; (err != nil) != refused {
					t.Errorf("%v, told as %v", err, say(wait))
				}
				if mode := say(wait)["redlatch.mode"]; mode != map[string]string{"read": "read", "write": "write"}[name] {
					t.Errorf("the mode is told as %q", mode)
				}
				if got := len(b.ended("hold " + string(story.kind))); got != story.holds {
					t.Errorf("%d spans of holds, want %d", got, story.holds)
				}
			})
		})
	}
}

func nothing(context.Context) error { return nil }

// Several permits have one span, because there is one context to work under.
func TestPermitsThatAreAcquiredTogetherHaveOneSpan(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		ps, err := locktest.Each(w.Permits(b.watched(w.Client(redlatch.Config{})), 3).Acquire(bg, 3))
		w.OK(err)
		w.OK(ps[0].Release(bg))
		time.Sleep(time.Second)
		w.OK(ps[1].Release(bg))
		if n := len(b.ended("hold " + string(redlatch.KindExpirable))); n > 0 {
			t.Fatal("it has ended with a permit left")
		}
		start := time.Now()
		w.Server.FlushAll()
		<-ps[2].Context().Done()
		span := b.one("hold " + string(redlatch.KindExpirable))
		if got := say(span); got["redlatch.permits"] != "3" || got["redlatch.reason"] != "lost" || span.Status().Code != codes.Error {
			t.Errorf("told as %v with %v", got, span.Status())
		}
		if took, want := span.EndTime().Sub(span.StartTime()), time.Second+time.Since(start); took != want {
			t.Errorf("told for %v, want %v", took, want)
		}
	})
}

// While a caller waits, its context has the span of the wait; behind the wait for
// what nobody holds, that of the caller again.
func TestTheFunctionOfASpanlessTypeHasItsCallersSpan(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		var kept context.Context
		c := locktest.Observed(b.watched(w.Client(redlatch.Config{})), observe.Hooks{
			AcquireStart: func(ctx context.Context, _ observe.AcquireStartEvent) context.Context { kept = ctx; return nil },
		})
		ctx, request := b.tracer.Start(bg, "request")
		w.SetPermits(semaphore.New(c, "jobs", 0), 1)
		w.OK(semaphore.New(c, "jobs", 0).Acquire(ctx, 1))
		if got := trace.SpanContextFromContext(kept); !got.Equal(request.SpanContext()) {
			t.Errorf("the current span is %v", got)
		}
		request.End()
	})
}

// Names are what users make of them. An exporter drops a whole batch for one that
// is not UTF-8.
func TestNamesAreTold(t *testing.T) {
	for name, want := range map[string]string{
		"orders:42": "orders:42", "a\x00b\x1b[31m\nc\u202e": "a\x00b\x1b[31m\nc\u202e", "a\xff\xfeb": "a\uFFFDb", "größe": "größe",
	} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			b := newBackend(w, redlatchotel.Options{MetricName: func(name string) string { return name }})
			c := b.watched(w.Client(redlatch.Config{}))
			w.OK(c.Lock(name).Do(bg, nothing))
			h := w.Acquire(bg, c.Lock(name))
			_, err := b.watched(w.Client(redlatch.Config{})).Lock(name).TryAcquire(bg, time.Second)
			w.WantErr(err, redlatch.ErrBusy)
			w.Release(h)
			spans := append(b.ended("acquire lock"), b.ended("hold lock")...)
			if len(spans) != 5 {
				t.Fatalf("%d spans", len(spans))
			}
			for _, span := range spans {
				if got := say(span)["redlatch.name"]; got != want {
					t.Errorf("%q is told as %q, want %q", name, got, want)
				}
				if d := span.Status().Description; strings.ToValidUTF8(d, "") != d {
					t.Errorf("the status is %q", d)
				}
			}
			for _, histogram := range []string{"redlatch.acquire.duration", "redlatch.hold.duration"} {
				for _, p := range b.durations(histogram) {
					if got, _ := p.Attributes.Value("redlatch.name"); got.AsString() != want {
						t.Errorf("%s has %q for %q, want %q", histogram, got.AsString(), name, want)
					}
				}
			}
		})
	}
}

// A name that is not to be told stands in no text of an error either.
func TestAHiddenNameIsToldNowhere(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{Name: func(string) string { return "" }})
		c := b.watched(w.Client(redlatch.Config{}))
		h := w.Acquire(bg, c.Lock("secret"))
		_, err := b.watched(w.Client(redlatch.Config{})).Lock("secret").TryAcquire(bg, time.Second)
		w.WantErr(err, redlatch.ErrBusy)
		w.Server.FlushAll()
		<-h.Context().Done()
		failed := 0
		for _, span := range append(b.ended("acquire lock"), b.ended("hold lock")...) {
			if span.Status().Code == codes.Error {
				failed++
			}
			for _, a := range span.Attributes() {
				if strings.Contains(a.Value.String(), "secret") {
					t.Errorf("%s says %v", span.Name(), a)
				}
			}
			if strings.Contains(span.Status().Description, "secret") {
				t.Errorf("%s has %v", span.Name(), span.Status())
			}
		}
		if failed != 2 {
			t.Errorf("%d spans failed, want 2", failed)
		}
		for name, m := range b.durations("redlatch.acquire.duration") {
			if strings.Contains(name, "redlatch.name") {
				t.Errorf("metrics say %v", m.Attributes)
			}
		}
	})
}

// The program's own functions are called as without us, and find the spans.
func TestTheProgramsOwnEventsAreCalled(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		type key struct{}
		var mu sync.Mutex
		var told []string
		tell := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, what)
		}
		note := func(ctx context.Context, what string) {
			v, _ := ctx.Value(key{}).(string)
			tell(what + v)
			trace.SpanFromContext(ctx).SetAttributes(attribute.String("mine", what))
		}
		c := locktest.Observed(b.watched(w.Client(redlatch.Config{})), observe.Hooks{
			AcquireStart: func(ctx context.Context, _ observe.AcquireStartEvent) context.Context {
				note(ctx, "start")
				return context.WithValue(ctx, key{}, " mine")
			},
			AcquireEnd: func(ctx context.Context, e observe.AcquireEndEvent) { note(ctx, string(e.Outcome)) },
			HoldEnd:    func(ctx context.Context, e observe.HoldEndEvent) { note(ctx, string(e.Reason)) },
			Lost:       func(observe.LostEvent) { tell("told lost") },
		})
		h := w.Acquire(bg, c.Lock("orders"))
		if h.Context().Value(key{}) != " mine" {
			t.Error("the context of the program's AcquireStart is not that of the hold")
		}
		w.Server.FlushAll()
		<-h.Context().Done()
		w.Settle()
		mu.Lock()
		defer mu.Unlock()
		for _, want := range []string{"start", "acquired mine", "lost mine", "told lost"} {
			if n := strings.Count(strings.Join(told, ",")+",", want+","); n != 1 {
				t.Errorf("%q was called %d times: %q", want, n, told)
			}
		}
		if wait, hold := say(b.one("acquire lock"))["mine"], say(b.one("hold lock"))["mine"]; wait != "acquired" || hold != "lost" {
			t.Errorf("the spans say %q and %q", wait, hold)
		}
	})
}

// One for each team's backend, around one another.
func TestTwoTelemetriesDoNotMeddle(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := newBackend(w, redlatchotel.Options{}), newBackend(w, redlatchotel.Options{})
		c := b.watched(a.watched(w.Client(redlatch.Config{})))
		outer := w.Acquire(bg, c.Lock("orders"))
		inner := w.Acquire(outer.Context(), c.Lock("orders"))
		synctest.Wait()
		w.Release(inner)
		w.Release(outer)
		for _, each := range []*backend{a, b} {
			waits, holds := each.ended("acquire lock"), each.ended("hold lock")
			if len(waits) != 2 || len(holds) != 2 {
				t.Fatalf("there are %v", names(each.spans.Ended()))
			}
			for _, hold := range holds {
				if say(hold)["redlatch.reason"] != "released" {
					t.Errorf("told as %v", say(hold))
				}
			}
		}
	})
}
