package synchronizers

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestADetachedPermitIsNotReleasedWhenItIsCollected(t *testing.T) {
	w := locktest.InRealTime(t)
	dropped := make(chan observe.DroppedEvent, 10)
	c := w.Client(redlatch.Config{}, observe.Hooks{Dropped: func(e observe.DroppedEvent) { dropped <- e }})
	s, other := w.Permits(c, 1, redlatch.Lease(time.Hour)), semaphore.NewExpirable(c, "other", 0)
	if _, err := other.TrySetPermits(bg, 1); err != nil {
		t.Fatal(err)
	}
	id := w.Detach(w.Permit(s))
	_ = w.Permit(other) // shows that there was a collection
	for noticed := false; !noticed; {
		runtime.GC()
		select {
		case e := <-dropped:
			noticed = true
			if e.Name == locktest.Pool {
				t.Fatalf("%+v", e)
			}
		case <-time.After(100 * time.Millisecond):
		}
	}
	for range 10 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if left, err := s.LeaseLeft(bg, id); left < 59*time.Minute || err != nil {
		t.Errorf("%v left, %v", left, err)
	}
	select {
	case e := <-dropped:
		t.Errorf("and another one: %+v", e)
	default:
	}
}

// Who has handed a permit over does not know how it goes on, and is told nothing.
func TestADetachedPermitEndsForNobodyButWhoReleasesIt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lost int
		c := w.Client(redlatch.Config{}, observe.Hooks{Lost: func(observe.LostEvent) { lost++ }})
		s, other := w.Permits(c, 4), semaphore.NewExpirable(w.Client(redlatch.Config{}), locktest.Pool, 0)
		live := func(p *redlatch.Hold) {
			t.Helper()
			if err := p.Err(); err != nil || p.Context().Err() != nil {
				t.Errorf("%v, %v", err, p.Context().Err())
			}
		}
		over, elsewhere, here, closed := w.Permit(semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(time.Second))), w.Permit(semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(time.Minute))), w.Permit(semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(time.Minute))), w.Permit(semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(time.Minute)))
		for _, p := range []*redlatch.Hold{over, elsewhere, here, closed} {
			ctx := p.Context()
			w.Detach(p)
			w.Detach(p)
			if ctx.Err() != nil {
				t.Errorf("detached: %v", ctx.Err())
			}
		}
		expires := over.Expires()
		time.Sleep(5 * time.Second)
		live(over)
		if !over.Expires().Equal(expires) {
			t.Error("Expires has moved")
		}
		if err := other.Release(bg, elsewhere.ID()); err != nil {
			t.Error(err)
		}
		live(elsewhere)
		if err := here.Extend(bg, time.Hour); err != nil {
			t.Error(err)
		}
		if left, err := other.LeaseLeft(bg, here.ID()); left < time.Hour || err != nil {
			t.Errorf("%v left, %v", left, err)
		}
		if err := s.Release(bg, closed.ID()); err != nil {
			t.Error(err)
		}
		live(closed)
		for p, want := range map[*redlatch.Hold]error{over: redlatch.ErrNotHeld, elsewhere: redlatch.ErrNotHeld, here: nil} {
			if err := p.Release(bg); !errors.Is(err, want) || !errors.Is(context.Cause(p.Context()), redlatch.ErrNotHeld) {
				t.Errorf("released: %v, want %v; %v", err, want, context.Cause(p.Context()))
			}
			w.WantErr(p.Release(bg), redlatch.ErrNotHeld)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		live(closed)
		if lost > 0 {
			t.Errorf("%d were reported as lost", lost)
		}
	})
}

// Whoever passes on the id of a permit that nobody keeps, or that is over, has to
// learn it.
func TestWhatCannotBeDetachedSaysWhy(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		s := w.Permits(c, 4)
		kept, lost := w.Permit(s), w.Permit(semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(time.Second)))
		released, closed := w.Permit(semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(time.Hour))), w.Permit(semaphore.NewExpirable(other, s.Name(), 0, redlatch.Lease(time.Hour)))
		time.Sleep(2 * time.Second)
		w.OK(released.Release(bg))
		refused := func(p *redlatch.Hold, want error) {
			t.Helper()
			if id, err := p.Detach(); id != "" || !errors.Is(err, want) {
				t.Errorf("detached as %q, %v; want %v", id, err, want)
			}
		}
		refused(kept, redlatch.ErrInvalid)
		refused(lost, redlatch.ErrLost)
		refused(released, redlatch.ErrNotHeld)
		w.OK(other.Close())
		refused(closed, redlatch.ErrClosed)
		time.Sleep(5 * time.Minute)
		giveBack(w, kept)
		w.WantErr(lost.Release(bg), redlatch.ErrLost)
	})
}
