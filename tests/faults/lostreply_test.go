package faults

import (
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestLostReply(t *testing.T) { together(t, lostReplies()...) }

func TestLostReplyToAnUnknownScript(t *testing.T) {
	apart(t, telling{"changes nothing", (*story).lostReplyToAnUnknownScript})
}

// Every request loses its reply, once or twice. Nobody may notice: the call
// succeeds, the count is right, there is one holder, and nothing is left behind.
func lostReplies() (stories []telling) {
	for i := range everyKind {
		k := &everyKind[i]
		name := "changes nothing/" + k.name
		stories = append(stories,
			telling{name + "/connection closed", func(s *story) { s.loseReply(k, faultnet.DropReply, 1) }},
			telling{name + "/connection closed twice", func(s *story) { s.loseReply(k, faultnet.DropReply, 2) }},
			telling{name + "/silence", func(s *story) { s.loseReply(k, faultnet.StallReply, 1) }})
	}
	return stories
}

func (s *story) loseReply(k *requestKind, loss faultnet.Action, times int) {
	var fired func() bool
	holds := k.provoke(s, func() func() bool {
		fired = s.inject(k, loss, times)
		s.proxy.Record(true)
		return fired
	})
	s.proxy.Record(false)
	if !fired() {
		s.T.Fatal("too few such requests were sent")
	}
	if loss == faultnet.DropReply && !k.more {
		s.wantRetries(k, times, s.asked.unanswered())
	}
	if len(holds) == 0 {
		s.wantFree("after it")
		return
	}
	h := holds[len(holds)-1]
	s.wantHeld("after it", h, len(holds))
	next := locktest.Acquiring(s.rival())
	s.awaitSubscriber()
	s.wantShown("while another waits", h, len(holds))
	s.release(holds...)
	s.write()
	h = s.got(next)
	s.wantHeld("by the waiter", h, 1)
	s.release(h)
	s.wantFree("in the end")
}

// wantRetries checks that as many retries were all that it took: they were
// recognised as such, rather than refused and made good for by something else.
// A busy machine may leave requests unanswered besides. They are repeated too, and
// what they have asked for is released again after its end.
func (s *story) wantRetries(k *requestKind, retries, unanswered int) {
	s.T.Helper()
	n := 0
	for _, r := range s.proxy.Requests() {
		switch {
		case r.Script() == "" || !slices.Contains(r.Args, s.lock):
		case k.is(r, s.lock):
			n++
		case n > 0 && !s.mayFollow(r, unanswered):
			s.T.Errorf("another request followed: %q", r.Args)
		}
	}
	if want := 1 + retries; (n < want || n > want+unanswered) && !strings.HasSuffix(k.script, ".renew") {
		s.T.Errorf("the request was sent %d times, want %d; %d requests were not answered in time", n, want, unanswered)
	}
}

// mayFollow says whether r may follow what has lost its reply.
func (s *story) mayFollow(r faultnet.Request, unanswered int) bool {
	scripts := []string{"lock.renew", "readwrite.renew"} // a broken connection calls for a renewal
	if unanswered > 0 {
		scripts = append(scripts, "lock.release", "fairlock.release", "readwrite.release")
	}
	return slices.ContainsFunc(scripts, func(name string) bool { return isScript(r, name, s.lock) })
}
