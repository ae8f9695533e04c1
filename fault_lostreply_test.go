package redlatch_test

import (
	"slices"
	"testing"

	"github.com/redlatch/redlatch/internal/faultnet"
)

// Every request loses its reply once. Nobody may notice: the call succeeds, the
// count is right, there is one holder, and nothing is left behind.
func TestALostReplyChangesNothing(t *testing.T) {
	t.Parallel()
	eachAdapter(t, func(t *testing.T, a adapter) {
		ar := newArena(t, a)
		var stories []telling
		for i := range requestKinds {
			k := &requestKinds[i]
			stories = append(stories,
				telling{k.name + "/connection closed", func(s *story) { s.loseReply(k, faultnet.DropReply) }},
				telling{k.name + "/silence", func(s *story) { s.loseReply(k, faultnet.StallReply) }})
		}
		ar.tell(stories)
		ar.end()
	})
}

func (s *story) loseReply(k *requestKind, loss faultnet.Action) {
	var fired func() bool
	holds := k.provoke(s, func() func() bool {
		fired = s.once(k, loss)
		s.proxy.Record(true)
		return fired
	})
	s.proxy.Record(false)
	if !fired() {
		s.T.Fatal("no such request was sent")
	}
	s.wantOneRetry(k, loss)
	if len(holds) == 0 {
		s.wantFree("after it")
		return
	}
	h := holds[len(holds)-1]
	s.wantHeld("after it", h, len(holds))
	next := acquiring(s.other.Lock(s.lock))
	s.awaitSubscriber()
	s.wantShown("while another waits", h, len(holds))
	s.release(holds...)
	h = s.got(next)
	s.wantHeld("by the waiter", h, 1)
	s.release(h)
	s.wantFree("in the end")
}

// wantOneRetry checks that the retry was all that it took: it was recognised as
// one, rather than refused and made good for by something else.
func (s *story) wantOneRetry(k *requestKind, loss faultnet.Action) {
	s.T.Helper()
	if loss != faultnet.DropReply || k.more {
		return
	}
	n := 0
	for _, r := range s.proxy.Requests() {
		if r.Script() == "" || !slices.Contains(r.Args, s.lock) {
			continue
		}
		switch {
		case k.is(r, s.lock):
			n++
		case !isScript(r, "lock.renew", s.lock): // every broken connection calls for one
			s.T.Errorf("a request beside: %q", r.Args)
		}
	}
	if n != 2 {
		s.T.Errorf("the request was sent %d times, want twice", n)
	}
}
