package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
)

// A release sent at once would overtake the take that it is to undo, and the
// take would leave a lock that nobody holds.
func aCancelledAcquireLeavesNoOrphan(t *testing.T, a adapter) {
	ar := newArena(t, a)
	var stories []telling
	for i := range 20 {
		delay := time.Duration(5+10*i) * time.Millisecond // all of them shorter than the driver's patience
		stories = append(stories, telling{fmt.Sprint("slow take/", delay), func(s *story) { s.cancelledAcquire(delay) }})
	}
	for i := range 4 {
		delay := time.Duration(800+200*i) * time.Millisecond // all of them longer
		stories = append(stories, telling{fmt.Sprint("late take/", delay), func(s *story) { s.cancelledAcquire(delay) }})
	}
	ar.tell(stories)
	ar.end()
}

func (s *story) cancelledAcquire(delay time.Duration) {
	take := &requestKind{script: "lock.take"}
	fired := s.inject(take, faultnet.Delay(delay), 1)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	start := time.Now()
	got := later(func() outcome {
		h, err := s.c.Lock(s.lock).Acquire(ctx)
		return outcome{h, err, time.Now()}
	})
	if !within(generous, fired) {
		s.T.Fatal("no take was sent")
	}
	cancelled := time.Now()
	cancel()
	o := await(s.T, "the cancelled Acquire", got) // how soon: TestEveryCallReturnsWhenItsContextEnds
	if o.err == nil && cancelled.Sub(start) >= delay {
		s.release(o.hold) // the take may have run before
		return
	}
	if !errors.Is(o.err, context.Canceled) || !errors.Is(o.err, redlatch.ErrBusy) && !errors.Is(o.err, redlatch.ErrUnavailable) {
		s.T.Fatalf("Acquire: %v, want cancelled, and busy or, if even to connect took too long, unavailable", o.err)
	}

	// The take runs now, or has been waited for; either way its lock goes.
	time.Sleep(time.Until(cancelled.Add(delay)))
	start = time.Now()
	h := s.acquireBy(s.other, bg)
	if waited := time.Since(start); waited > soon {
		s.T.Errorf("the lock was blocked for %v", waited)
	}
	s.wantHeld("in the end", h, 1)
	s.release(h)
}

// The next in line inherits the request that is under way: it gets the lock and
// nothing is left behind.
func aCancelledAcquirePassesItsTakeOn(t *testing.T, a adapter) {
	ar := newArena(t, a)
	ar.tell([]telling{{"one", func(s *story) {
		take := &requestKind{script: "lock.take"}
		fired := s.inject(take, faultnet.Delay(60*time.Millisecond), 1)
		s.proxy.Record(true)
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		first := later(func() error { _, err := s.c.Lock(s.lock).Acquire(ctx); return err })
		if !within(generous, fired) {
			s.T.Fatal("no take was sent")
		}
		second := acquiring(s.c.Lock(s.lock))
		cancel()
		if err := await(s.T, "the cancelled Acquire", first); !errors.Is(err, context.Canceled) {
			s.T.Fatalf("Acquire: %v, want cancelled", err)
		}
		h := s.got(second)
		s.wantHeld("by the second in line", h, 1)
		takes := 0
		for _, r := range s.proxy.Requests() {
			if take.is(r, s.lock) {
				takes++
			}
		}
		if takes != 1 {
			s.T.Errorf("the lock was asked for %d times, want once", takes)
		}
		s.release(h)
		s.wantFree("in the end")
	}}})
	ar.close()
}
