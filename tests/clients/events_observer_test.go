package clients

import (
	"context"
	"sync"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// An observer notes what it is told of acquisitions. When the test is over and its
// clients are closed, it complains if anything was told twice, or never.
type observer struct {
	w      *locktest.World
	events observe.Hooks // what clients call
	mu     sync.Mutex
	calls  []*call
}

// A call is one acquisition, as it was told. The context that it goes on with has
// it.
type call struct {
	start observe.AcquireStartEvent
	ends  []observe.AcquireEndEvent
	holds []observe.HoldEndEvent
}

type callKey struct{}

// callOf returns the call in whose context something happens.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// newObserver returns an observer. Clients are made after it, so that they are
// closed before it looks.
func newObserver(w *locktest.World) *observer {
	w.Helper()
	o := &observer{w: w}
	o.events = observe.Hooks{AcquireStart: o.acquireStart, AcquireEnd: o.acquireEnd, HoldEnd: o.holdEnd}
	w.Cleanup(o.check)
	return o
}

func (o *observer) acquireStart(ctx context.Context, e observe.AcquireStartEvent) context.Context {
	c := &call{start: e}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, c)
	return context.WithValue(ctx, callKey{}, c)
}

func (o *observer) acquireEnd(ctx context.Context, e observe.AcquireEndEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := callOf(ctx)
	if c == nil {
		o.w.Errorf("AcquireEnd has another context than AcquireStart returned: %+v", e)
		return
	}
	c.ends = append(c.ends, e)
}

func (o *observer) holdEnd(ctx context.Context, e observe.HoldEndEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := callOf(ctx)
	switch {
	case c == nil:
		o.w.Errorf("HoldEnd has another context than AcquireStart returned: %+v", e)
		return
	case len(c.ends) == 0:
		o.w.Errorf("HoldEnd comes before AcquireEnd: %+v", e)
	}
	c.holds = append(c.holds, e)
}

// last returns the acquisition that has begun last.
func (o *observer) last() call {
	o.w.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.calls) == 0 {
		o.w.Fatal("nothing was told")
	}
	return *o.calls[len(o.calls)-1]
}

// outcome returns how the last acquisition went.
func (o *observer) outcome() observe.AcquireEndEvent {
	o.w.Helper()
	c := o.last()
	if len(c.ends) != 1 {
		o.w.Fatalf("%d ends of %+v: %+v", len(c.ends), c.start, c.ends)
	}
	return c.ends[0]
}

// end returns how the last acquisition's only hold ended.
func (o *observer) end() observe.HoldEndEvent {
	o.w.Helper()
	c := o.last()
	if len(c.holds) != 1 {
		o.w.Fatalf("%d ends of a hold of %+v: %+v", len(c.holds), c.start, c.holds)
	}
	return c.holds[0]
}

// holdless are the kinds that have no holds.
var holdless = map[redlatch.Kind]bool{
	redlatch.KindSemaphore: true, redlatch.KindRateLimiter: true, redlatch.KindLatch: true, redlatch.KindBarrier: true,
}

// check complains of what was told more than once, or never.
func (o *observer) check() {
	o.w.Settle()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.calls {
		if len(c.ends) != 1 {
			o.w.Errorf("%d ends of %+v: %+v", len(c.ends), c.start, c.ends)
			continue
		}
		e, holds := c.ends[0], 0
		if e.Err == nil && !holdless[e.Kind] {
			holds = max(1, e.N)
		}
		if len(c.holds) != holds {
			o.w.Errorf("%d ends of holds, want %d, of %+v: %+v", len(c.holds), holds, e, c.holds)
		}
		if e.Name != c.start.Name || e.Kind != c.start.Kind || e.Mode != c.start.Mode || e.N != c.start.N {
			o.w.Errorf("%+v began, and %+v ended", c.start, e)
		}
		owners := map[string]bool{}
		for _, h := range c.holds {
			if h.Name != e.Name || h.Kind != e.Kind || h.Mode != e.Mode || (len(c.holds) == 1 && h.Owner != e.Owner) || owners[h.Owner] || h.Held < 0 {
				o.w.Errorf("%+v ended as %+v", e, h)
			}
			owners[h.Owner] = true
		}
	}
}
