package faults

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
)

func TestRelease(t *testing.T) {
	together(t,
		telling{"with an ended context", (*story).releaseWithAnEndedContext},
		telling{"behind a failed re-entry", (*story).releaseBehindAFailedReentry},
		telling{"of all holds of a nest at once", (*story).holdsOfOneNestReleasedAtOnce})
}

// Whoever's release comes last ends the term, and nobody gets an error for
// having been released at the same time.
func (s *story) holdsOfOneNestReleasedAtOnce() {
	for range 100 {
		holds := []*redlatch.Hold{s.acquire(bg)}
		for range 3 {
			holds = append(holds, s.acquire(holds[len(holds)-1].Context()))
		}
		var wg sync.WaitGroup
		for _, h := range holds {
			wg.Go(func() {
				if err := h.Release(bg); err != nil {
					s.T.Errorf("Release: %v", err)
				}
			})
		}
		wg.Wait()
		if s.wantFree("when all have returned"); s.T.Failed() {
			return
		}
	}
}

// A release may not return before the lock is free, also when a re-entry that
// has failed is still being undone.
func (s *story) releaseBehindAFailedReentry() {
	h := s.acquire(bg)
	reentry := &requestKind{script: "lock.renew", only: setsCount}
	s.inject(reentry, faultnet.Delay(patience/2), 1)
	if _, err := s.c.Lock(s.lock).TryAcquire(h.Context(), 20*time.Millisecond); err == nil {
		s.T.Fatal("the re-entry succeeded")
	}
	s.release(h)
	s.wantFree("after the release")
}

// A context that has ended before does not keep Release from releasing.
func (s *story) releaseWithAnEndedContext() {
	h := s.acquire(bg)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := h.Release(ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.T.Fatal(err)
	}
	if err := h.Err(); !errors.Is(err, redlatch.ErrNotHeld) {
		s.T.Errorf("Err: %v, want ErrNotHeld at once", err)
	}
	s.release(s.acquireBy(s.other, bg))
	s.wantFree("in the end")
}
