package locks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestTheHoldsContextOutlivesTheAcquireContext(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		type key struct{}
		c := w.Client(redlatch.Config{})
		ctx, cancel := context.WithCancelCause(context.WithValue(bg, key{}, "value"))
		h := w.Acquire(ctx, c.Lock("orders"))
		cancel(errors.New("the caller has left"))
		held := h.Context()
		if held.Err() != nil || context.Cause(held) != nil || held.Value(key{}) != "value" {
			t.Fatalf("err %v, cause %v, value %v", held.Err(), context.Cause(held), held.Value(key{}))
		}
		if _, ok := held.Deadline(); ok {
			t.Fatal("a watchdog hold has a deadline, which callees would copy")
		}
		both := h.With(ctx)
		if both.Err() == nil {
			t.Fatal("With does not end with its context")
		}
		child, stop := context.WithCancel(held)
		defer stop()
		w.Server.Del("orders")
		<-child.Done()
		w.WantErr(context.Cause(child), redlatch.ErrLost)
		w.WantErr(context.Cause(held), redlatch.ErrLost)
	})
}

func TestWithEndsWithTheHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		ctx := h.With(bg)
		w.Release(h)
		if ctx.Err() == nil {
			t.Fatal("With is not done after the release")
		}
		<-ctx.Done()
		w.WantErr(context.Cause(ctx), redlatch.ErrNotHeld)
	})
}

func TestDoCannotForgetToRelease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		boom := errors.New("boom")
		w.WantErr(l.Do(bg, func(context.Context) error { return boom }), boom)
		func() {
			defer func() { _ = recover() }()
			_ = l.Do(bg, func(context.Context) error { panic(boom) })
		}()
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = l.Do(bg, func(context.Context) error { runtime.Goexit(); return nil })
		})
		wg.Wait()
		if w.Server.Exists("orders") {
			t.Fatal("still held")
		}
		err := l.Do(bg, func(ctx context.Context) error {
			w.Server.Del("orders")
			<-ctx.Done()
			return nil
		})
		w.WantErr(err, redlatch.ErrLost)
		err = l.Do(bg, func(ctx context.Context) error {
			return l.Do(ctx, func(context.Context) error { return boom }) // re-enters
		})
		w.WantErr(err, boom)
	})
}

// Whether the function ran is what a caller has to know that thinks of doing it
// again.
func TestTryDoTellsWhetherTheFunctionRan(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l, taken := c.Lock("orders"), c.Lock("taken")
		h := w.Acquire(bg, taken)
		never := func(context.Context) error { w.Error("the function ran"); return nil }
		several := redlatch.MultiLock(l, taken)
		for what, call := range map[string]func() (bool, error){
			"a lock":        func() (bool, error) { return taken.TryDo(bg, time.Second, never) },
			"several locks": func() (bool, error) { return several.TryDo(bg, time.Second, never) },
		} {
			ran, err := call()
			var busy *redlatch.BusyError
			if ran || !errors.As(err, &busy) || busy.Name != "taken" || err.Error() != busy.Error() {
				w.Errorf("%s: %v, %v, of %v", what, ran, err, busy)
			}
		}

		// What the function has from another call is that one's.
		ran, err := l.TryDo(bg, 0, func(ctx context.Context) error {
			inner, err := taken.TryDo(ctx, time.Second, never)
			if inner {
				w.Error("the inner one says that it ran")
			}
			return fmt.Errorf("inside: %w", err)
		})
		if !ran || !errors.Is(err, redlatch.ErrBusy) || !strings.HasPrefix(err.Error(), "inside: ") {
			w.Errorf("got %v, %v", ran, err)
		}
		ran, err = several.TryDo(bg, -1, never)
		if ran || !errors.Is(err, redlatch.ErrInvalid) {
			w.Errorf("a negative wait: %v, %v", ran, err)
		}
		w.Release(h)
	})
}

func TestDoTellsOfALossOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Client(redlatch.Config{}).Lock("orders")
		lose := func(also error) string {
			err := l.Do(bg, func(ctx context.Context) error {
				w.Server.Del("orders")
				<-ctx.Done()
				return errors.Join(also, context.Cause(ctx))
			})
			w.WantErr(err, redlatch.ErrLost)
			return err.Error()
		}
		if text := lose(nil); strings.Count(text, "orders") != 1 {
			t.Errorf("got %q", text)
		}
		if text := lose(errors.New("boom")); strings.Count(text, "orders") != 1 || !strings.Contains(text, "boom") {
			t.Errorf("got %q", text)
		}
	})
}

func TestHoldFrom(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		want := func(what string, ctx context.Context, name string) {
			w.Helper()
			got := ""
			if h := redlatch.HoldFrom(ctx); h != nil {
				got = h.Name()
			}
			if got != name {
				w.Errorf("%s: the hold of %q, want that of %q", what, got, name)
			}
		}
		want("no hold", bg, "")
		w.OK(c.Lock("orders", redlatch.Fenced()).Do(bg, func(ctx context.Context) error {
			h := redlatch.HoldFrom(ctx)
			if h == nil || h.Token() != 1 {
				t.Fatalf("got %v", h)
			}
			below, cancel := context.WithCancel(context.WithValue(ctx, t, t))
			defer cancel()
			want("a context made of Do's", below, "orders")
			w.OK(redlatch.MultiLock(c.Lock("a"), c.Lock("b")).Do(below, func(ctx context.Context) error {
				want("a MultiLock inside", ctx, "a,b")
				return nil
			}))
			w.OK(w.Permits(c, 2).Do(below, 2, func(ctx context.Context) error {
				want("permits inside", ctx, locktest.Pool)
				return nil
			}))
			return c.Lock("inside").Do(below, func(ctx context.Context) error {
				want("two holds", ctx, "inside")
				return nil
			})
		}))
		h := w.Acquire(bg, c.Lock("orders"))
		if redlatch.HoldFrom(h.Context()) != h || redlatch.HoldFrom(h.With(bg)) != h {
			t.Error("the contexts of a hold have another one")
		}
		w.Release(h)
	})
}

func TestContextsOfOneHoldMayBeAskedForConcurrently(t *testing.T) {
	w := locktest.InRealTime(t)
	c := w.Client(redlatch.Config{})
	h := w.Acquire(bg, c.Lock("orders"))
	ctx := h.Context()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			_ = h.Context()
		}
	}()
	for range 1000 {
		select {
		case <-ctx.Done():
		default:
		}
	}
	<-done
	w.Release(h)
}
