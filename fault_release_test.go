package redlatch_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
)

// Whoever's release comes last ends the tenure, and nobody gets an error for
// having been released at the same time.
func holdsOfOneNestReleasedAtOnce(t *testing.T, a adapter) {
	ar := newArena(t, a)
	ar.tell([]telling{{"many times", func(s *story) {
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
	}}})
	ar.close()
}

// A release may not return before the lock is free, also when a re-entry that
// has failed is still being undone.
func aReleaseBehindAFailedReentry(t *testing.T, a adapter) {
	ar := newArena(t, a)
	ar.tell([]telling{{"once", func(s *story) {
		h := s.acquire(bg)
		reentry := &requestKind{script: "lock.reenter"}
		s.inject(reentry, faultnet.Delay(100*time.Millisecond), 1)
		if _, err := s.c.Lock(s.lock).Acquire(h.Context(), redlatch.Wait(20*time.Millisecond)); err == nil {
			s.T.Fatal("the re-entry succeeded")
		}
		s.release(h)
		s.wantFree("after the release")
	}}})
	ar.close()
}
