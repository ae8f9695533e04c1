package lock

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

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
