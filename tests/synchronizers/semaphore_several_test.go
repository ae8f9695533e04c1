package synchronizers

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// several acquires three permits of five.
func several(w *locktest.World, c *redlatch.Client, opts ...redlatch.HoldOption) (*semaphore.Expirable, *redlatch.Hold) {
	w.Helper()
	s := w.Permits(c, 5, opts...)
	h, err := s.Acquire(bg, 3)
	w.OK(err)
	return s, h
}

func TestSeveralPermitsAreOneHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		_, h := several(w, w.Client(redlatch.Config{}))
		if h.Name() != locktest.Pool || h.ID() != "" || h.Token() != 0 || len(h.Members()) != 3 || redlatch.HoldFrom(h.Context()) != h {
			t.Errorf("%q, %q, %d", h.Name(), h.ID(), len(h.Members()))
		}
		time.Sleep(time.Hour) // renewed
		ctx, joined := h.Context(), h.With(bg)
		if h.Err() != nil || ctx.Err() != nil || time.Until(h.Expires()) <= 0 {
			t.Errorf("%v, %v", h.Err(), h.Expires())
		}
		w.WantErr(h.Extend(bg, time.Hour), redlatch.ErrInvalid)
		_, err := h.Detach()
		w.WantErr(err, redlatch.ErrInvalid)
		w.WantPermits(2, 3)
		w.OK(h.Release(bg))
		w.WantErr(context.Cause(ctx), redlatch.ErrNotHeld)
		w.WantErr(context.Cause(joined), redlatch.ErrNotHeld)
		w.WantErr(h.Err(), redlatch.ErrNotHeld)
		w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
		if !h.Expires().IsZero() {
			t.Errorf("trusted until %v", h.Expires())
		}
		w.WantPermits(5, 0)
	})
}

func TestTheLossOfOnePermitEndsThemAll(t *testing.T) {
	for _, asked := range []bool{true, false} { // for the context, before the loss
		locktest.InFakeTime(t, func(w *locktest.World) {
			_, h := several(w, w.Client(redlatch.Config{}))
			var ctx context.Context
			if asked {
				ctx = h.Context()
			}
			ids, _ := w.Server.ZMembers(locktest.PoolTimes)
			_, _ = w.Server.ZRem(locktest.PoolTimes, ids[0])
			_, _ = w.Server.Incr(locktest.Pool, 1)
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if asked && ctx.Err() == nil {
				t.Error("the context lives")
			}
			w.WantErr(context.Cause(h.Context()), redlatch.ErrLost)
			w.WantErr(h.Err(), redlatch.ErrLost)
			w.WantErr(h.Release(bg), redlatch.ErrLost)
			w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
			w.WantPermits(5, 0)
		})
	}
}

func TestSeveralPermitsHaveALeaseAndAreDetachedOneByOne(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s, h := several(w, c, redlatch.Lease(10*time.Second))
		time.Sleep(5 * time.Second)
		w.OK(h.Extend(bg, time.Hour))
		time.Sleep(time.Minute)
		if h.Err() != nil || time.Until(h.Expires()) < 50*time.Minute {
			t.Errorf("%v, trusted for %v", h.Err(), time.Until(h.Expires()))
		}
		for _, m := range h.Members() {
			id := w.Detach(m)
			w.OK(s.Release(bg, id))
		}
		w.WantPermits(5, 0)

		err := s.Do(bg, 2, func(ctx context.Context) error {
			w.WantPermits(3, 2)
			time.Sleep(time.Minute)
			return ctx.Err()
		})
		if !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("after the lease: %v", err)
		}
		w.WantPermits(5, 0)
		ran, err := s.TryDo(bg, 6, time.Second, func(context.Context) error { return nil })
		if ran || !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("six of five: %t, %v", ran, err)
		}
	})
}

// What was dropped is given back, but for what was detached. A member keeps them
// all.
func TestSeveralPermitsThatAreDroppedComeBack(t *testing.T) {
	dropped := make(chan struct{}, 10)
	w := locktest.InRealTime(t)
	c := w.Client(redlatch.Config{}, observe.Hooks{Dropped: func(observe.DroppedEvent) { dropped <- struct{}{} }})
	s, h := several(w, c, redlatch.Lease(time.Hour))
	id := w.Detach(h.Members()[0])
	last := h.Members()[2]
	for range 5 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	if len(dropped) > 0 {
		t.Error("a member does not keep the others")
	}
	runtime.KeepAlive(last)
	for n := 0; n < 1; {
		runtime.GC()
		select {
		case <-dropped:
			n++
		case <-time.After(100 * time.Millisecond):
		}
	}
	if !locktest.Within(locktest.Generous, func() bool { n, err := s.Acquired(bg); return err == nil && n == 1 }) {
		t.Error("they did not come back")
	}
	if len(dropped) > 0 {
		t.Error("one hold is told as dropped more than once")
	}
	w.OK(s.Release(bg, id))
}

func TestSeveralPermitsAreReleasedWithOneRequest(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, since := w.Counted(redlatch.Config{})
		_, h := several(w, c)
		w.OK(h.Members()[1].Release(bg)) // counts as released
		since()
		w.OK(h.Release(bg))
		if sent := since(); len(sent) != 1 {
			t.Errorf("sent %v", sent)
		}
		w.WantPermits(5, 0)
	})
}
