package clients

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A diary has what several observers were told, in order.
type diary struct {
	mu   sync.Mutex
	told []string
	lost []string // of losses, which nothing puts in order with the ends of holds
}

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, what)
}

// want compares what was told since the last call.
func (d *diary) want(w *locktest.World, told ...string) {
	w.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.told, told) {
		w.Errorf("told %q, want %q", d.told, told)
	}
	d.told = nil
}

type pathKey struct{}

func path(ctx context.Context) string {
	s, _ := ctx.Value(pathKey{}).(string)
	return s
}

// hooks are of an observer with a name, which AcquireStart adds to the context.
func (d *diary) hooks(name string) observe.Hooks {
	return observe.Hooks{
		AcquireStart: func(ctx context.Context, _ observe.AcquireStartEvent) context.Context {
			d.note(name + " start" + path(ctx))
			return context.WithValue(ctx, pathKey{}, path(ctx)+" "+name)
		},
		AcquireEnd: func(ctx context.Context, _ observe.AcquireEndEvent) { d.note(name + " end" + path(ctx)) },
		HoldEnd:    func(ctx context.Context, _ observe.HoldEndEvent) { d.note(name + " hold" + path(ctx)) },
		Lost: func(observe.LostEvent) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.lost = append(d.lost, name)
		},
	}
}

// Observers come and go while a client is used. Each is told of what begins while
// it is there, inside of those before it.
func TestObserversComeAndGo(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var d diary
		c := w.Client(redlatch.Config{})
		lock := c.Lock("orders")
		early := w.Acquire(bg, lock)
		removeA := observe.Add(c, d.hooks("a"))
		removeB := observe.Add(c, d.hooks("b"))
		w.Release(early)
		d.want(w) // it began before them

		h := w.Acquire(bg, lock)
		d.want(w, "a start", "b start a", "b end a b", "a end a b")
		w.Release(h)
		d.want(w, "b hold a b", "a hold a b")

		h = w.Acquire(bg, lock)
		d.want(w, "a start", "b start a", "b end a b", "a end a b")
		observe.Add(c, d.hooks("c"))
		removeA()
		removeA()
		w.Server.FlushAll()
		<-h.Context().Done()
		d.want(w, "b hold a b") // c was not told of the acquisition
		if !slices.Equal(d.lost, []string{"b", "c"}) {
			t.Errorf("the loss was told to %q", d.lost)
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)

		removeB()
		w.Release(w.Acquire(bg, lock))
		d.want(w, "c start", "c end c", "c hold c")
	})
}

// One of several locks has an observer: it is told of all as one, also if it has
// come later than the client of another.
func TestSeveralLocksAreToldToWhoeverHasBeenAdded(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var d diary
		one, two := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		m := redlatch.MultiLock(one.Lock("a"), two.Lock("b"))
		w.Release(w.Acquire(bg, m))
		d.want(w)
		remove := observe.Add(two, d.hooks("two"))
		w.Release(w.Acquire(bg, m))
		d.want(w, "two start", "two end two", "two hold two")
		remove()
		w.Release(w.Acquire(bg, m))
		d.want(w)
	})
}

// A function may remove those that it belongs to, and add others: it is not waited
// for.
func TestAFunctionMayRemoveItself(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		var remove func()
		starts, ends := 0, 0
		remove = observe.Add(c, observe.Hooks{
			AcquireStart: func(context.Context, observe.AcquireStartEvent) context.Context {
				starts++
				remove()
				return nil
			},
			AcquireEnd: func(context.Context, observe.AcquireEndEvent) { ends++ },
		})
		for range 2 {
			w.OK(c.Lock("orders").Do(bg, func(context.Context) error { return nil }))
		}
		if starts != 1 || ends != 0 {
			t.Errorf("told of %d starts and %d ends, want 1 and 0", starts, ends)
		}
	})
}

// While many goroutines use a client, whoever stays is told of as many ends as
// begins, and whoever has been removed of nothing more.
func TestObserversChangeWhileLocksAreUsed(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		var starts, ends, holds, calls atomic.Int64
		count := func(of *atomic.Int64) observe.Hooks {
			return observe.Hooks{
				AcquireStart: func(ctx context.Context, _ observe.AcquireStartEvent) context.Context { of.Add(1); return ctx },
			}
		}
		stays := count(&starts)
		stays.AcquireEnd = func(context.Context, observe.AcquireEndEvent) { ends.Add(1) }
		stays.HoldEnd = func(context.Context, observe.HoldEndEvent) { holds.Add(1) }
		observe.Add(c, stays)
		const callers, times = 8, 50
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				l := c.Lock([]string{"a", "b"}[i%2])
				for range times {
					if err := l.Do(bg, func(context.Context) error { return nil }); err != nil {
						t.Error(err)
					}
					remove := observe.Add(c, count(&calls))
					_, _ = locktest.With(l, redlatch.Lease(-1)).TryAcquire(bg, 0) // is told, and refused
					remove()
				}
			})
		}
		all.Wait()
		w.Settle()
		if n := int64(2 * callers * times); starts.Load() != n || ends.Load() != n || holds.Load() != n/2 {
			t.Errorf("%d starts, %d ends, %d ends of holds, want %d, %d and %d", starts.Load(), ends.Load(), holds.Load(), n, n, n/2)
		}
		if calls.Load() < callers*times {
			t.Errorf("%d calls of those that were removed, want %d at least", calls.Load(), callers*times)
		}
		before := calls.Load()
		w.OK(c.Lock("a").Do(bg, func(context.Context) error { return nil }))
		if calls.Load() != before {
			t.Error("somebody is told who has been removed")
		}
	})
}
