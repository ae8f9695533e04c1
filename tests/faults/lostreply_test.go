package faults

import (
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/faultnet"
)

// Every request loses its reply, once or twice. Nobody may notice: the call
// succeeds, the count is right, there is one holder, and nothing is left behind.
func lostReplies() (stories []telling) {
	for i := range everyKind {
		k := &everyKind[i]
		name := "a lost reply changes nothing/" + k.name
		stories = append(stories,
			telling{name + "/connection closed", func(s *story) { s.loseReply(k, faultnet.DropReply, 1) }},
			telling{name + "/connection closed twice", func(s *story) { s.loseReply(k, faultnet.DropReply, 2) }},
			telling{name + "/silence", func(s *story) { s.loseReply(k, faultnet.StallReply, 1) }})
	}
	return stories
}

func (s *story) loseReply(k *requestKind, loss faultnet.Action, times int) {
	var fired func() bool
	var start time.Time
	holds := k.provoke(s, func() func() bool {
		start = time.Now()
		fired = s.inject(k, loss, times)
		s.proxy.Record(true)
		return fired
	})
	s.proxy.Record(false)
	took := time.Since(start)
	if !fired() {
		s.T.Fatal("too few such requests were sent")
	}
	switch {
	case loss != faultnet.DropReply || k.more:
	case took < patience:
		s.wantRetries(k, times)
	default: // a request that was not answered for so long was repeated
		s.T.Logf("NOT PROVEN, because it took %v: that %d retries were enough", took, times)
	}
	if len(holds) == 0 {
		s.wantFree("after it")
		return
	}
	h := holds[len(holds)-1]
	s.wantHeld("after it", h, len(holds))
	next := acquiring(s.rival())
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
func (s *story) wantRetries(k *requestKind, retries int) {
	s.T.Helper()
	n := 0
	for _, r := range s.proxy.Requests() {
		switch {
		case r.Script() == "" || !slices.Contains(r.Args, s.lock):
		case k.is(r, s.lock):
			n++
		case n > 0 && !isScript(r, "lock.renew", s.lock) && !isScript(r, "readwrite.renew", s.lock): // a broken connection calls for a renewal
			s.T.Errorf("another request followed: %q", r.Args)
		}
	}
	if n != 1+retries && !strings.HasSuffix(k.script, ".renew") {
		s.T.Errorf("the request was sent %d times, want %d", n, 1+retries)
	}
}
