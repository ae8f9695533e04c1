package faults

import (
	"context"
	"errors"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestLateRequest(t *testing.T) { together(t, lateRequests()...) }

// Every request comes late once: its first attempt is held back, answered for
// by its retry, and delivered at the worst moments. It must find nothing of its
// own: no second holder, no shortened TTL, no wrong count, nothing left behind.
func lateRequests() (stories []telling) {
	for i := range everyKind {
		k := &everyKind[i]
		for moment, tell := range map[string]func(*lateStory){
			"after its retry":          (*lateStory).afterRetry,
			"later in its term":        (*lateStory).laterInTerm,
			"after the release":        (*lateStory).afterRelease,
			"met by its own client":    (*lateStory).met,
			"in the next term":         (*lateStory).nextTerm,
			"in another client's term": (*lateStory).foreignTerm,
		} {
			stories = append(stories, telling{"changes nothing/" + k.name + "/" + moment, func(s *story) {
				tell(&lateStory{story: s, kind: k})
			}})
		}
	}
	return stories
}

type lateStory struct {
	*story
	kind *requestKind
	held *faultnet.Held // what was caught last
}

// begin provokes the request, whose first attempt is caught.
func (s *lateStory) begin() []*redlatch.Hold {
	s.T.Helper()
	return s.kind.provoke(s.story, func() func() bool {
		s.held = new(faultnet.Held)
		return s.inject(s.kind, faultnet.Hold(s.held), 1)
	})
}

// deliver lets the first attempt arrive.
func (s *lateStory) deliver() {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(bg, locktest.Generous)
	defer cancel()
	if _, ok := s.held.Request(); !ok {
		s.T.Fatal("no such request was sent")
	}
	reply, err := s.held.Deliver(ctx)
	if err != nil {
		s.T.Fatal(err)
	}
	if reply[0] == '-' {
		s.T.Fatalf("the late request was answered %q", reply)
	}
}

// wantFreeSoon checks that nobody has the lock. A late request may have waited in
// the queue of a fair one, and then have been given the lock: its client gives it
// back, after one second and after three.
func (s *lateStory) wantFreeSoon(when string) {
	s.T.Helper()
	if s.side == "fair" && s.kind.creates {
		locktest.Within(locktest.Generous, func() bool { return len(s.list("HGETALL", s.lock)) == 0 })
	}
	s.wantFree(when)
}

func (s *lateStory) afterRetry() {
	holds := s.begin()
	if len(holds) == 0 {
		s.deliver()
		s.wantFree("after it")
		return
	}
	h := holds[len(holds)-1]
	s.wantHeld("before it", h, len(holds))
	keepsTTL := s.keepsTTL()
	s.deliver()
	keepsTTL("after it")
	s.wantHeld("after it", h, len(holds))
	for n := len(holds) - 1; n > 0; n-- {
		s.release(holds[n])
		s.wantHeld("after a partial release", holds[n-1], n)
	}
	s.release(holds[0])
	s.wantFreeSoon("in the end")
}

// The count has changed since, up and down: the late request must not bring
// back the one that it asked for.
func (s *lateStory) laterInTerm() {
	holds := s.begin()
	if len(holds) == 0 { // its term is over
		s.deliver()
		s.wantFree("after it")
		return
	}
	h := holds[len(holds)-1]
	more := s.acquire(h.Context())
	s.deliver()
	s.wantHeld("after it, one hold later", more, len(holds)+1)
	s.release(more)
	s.deliver() // more than once: it may change nothing at any time
	s.wantHeld("after it, as many holds later", h, len(holds))
	s.release(h)
	s.deliver()
	if len(holds) > 1 {
		s.wantHeld("after it, one hold less", holds[len(holds)-2], len(holds)-1)
	} else if !s.kind.creates {
		s.wantFree("after it, without a hold")
	}
	s.release(holds[:len(holds)-1]...)
}

// A take that arrives after the release takes the lock for nobody. Its client
// knows that it may, and releases it: after one second, then after three.
func (s *lateStory) afterRelease() {
	s.release(s.begin()...)
	s.wantFree("before it")
	s.deliver()
	if !s.kind.creates {
		s.wantFree("after it")
		return
	}
	s.write()
	_, err := s.rival().TryAcquire(bg, 0)
	if !errors.Is(err, redlatch.ErrBusy) {
		s.T.Errorf("after it: %v, want busy", err)
	}
	h := s.acquireBy(s.other, bg)
	s.wantHeld("in the end", h, 1)
	s.release(h)
}

// When its own client meets what a late take took, it releases it at once.
func (s *lateStory) met() {
	s.release(s.begin()...)
	s.deliver()
	s.write()
	h := s.acquire(bg)
	s.wantHeld("in the end", h, 1)
	s.release(h)
	s.wantFreeSoon("in the end")
}

func (s *lateStory) nextTerm() {
	s.release(s.begin()...)
	s.write()
	outer := s.acquire(bg)
	inner := s.acquire(outer.Context())
	s.wantHeld("before it", inner, 2)
	keepsTTL := s.keepsTTL()
	s.deliver()
	keepsTTL("after it")
	s.wantHeld("after it", inner, 2)
	s.release(inner)
	s.wantHeld("after a partial release", outer, 1)
	s.release(outer)
	s.wantFreeSoon("in the end")
}

func (s *lateStory) foreignTerm() {
	s.release(s.begin()...)
	s.write()
	h := s.acquireBy(s.other, bg)
	keepsTTL := s.keepsTTL()
	s.deliver()
	keepsTTL("after it")
	s.wantHeld("after it", h, 1)
	s.release(h)
	s.wantFreeSoon("in the end")
}
