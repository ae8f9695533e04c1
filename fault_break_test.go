package redlatch_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
)

// A broken connection may mean another server, which may not know the lock:
// every hold is asked for at once.
func aBreakIsFollowedByRenewals(t *testing.T, a adapter) {
	ar := newArena(t, a)
	breaks := []telling{
		{"broken", func(s *story) { s.breakOff(s.proxy.BreakAll) }},
		{"killed by the server", func(s *story) {
			s.breakOff(func() { s.server.MustDo("CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes") })
		}},
	}
	for _, x := range breaks { // one after the other: the second breaks the connections of all
		ar.tell([]telling{x})
	}
	ar.end()
}

func (s *story) breakOff(how func()) {
	var holds []*redlatch.Hold
	for i := range 3 {
		h, err := s.c.Lock(fmt.Sprint(s.lock, i)).Acquire(bg)
		if err != nil {
			s.T.Fatal(err)
		}
		holds = append(holds, h)
	}
	lease, err := s.c.Lock(s.lock).Acquire(bg, redlatch.Lease(generous))
	if err != nil {
		s.T.Fatal(err)
	}
	holds = append(holds, lease)
	s.awaitControl()
	expires := lease.Expires()
	s.proxy.Record(true)
	start := time.Now()
	how()
	renewed := func() bool {
		return !slices.ContainsFunc(holds, func(h *redlatch.Hold) bool {
			return !slices.ContainsFunc(s.proxy.Requests(), func(r faultnet.Request) bool { return isScript(r, "lock.renew", h.Name()) })
		})
	}
	if !within(generous, renewed) {
		s.T.Error("no renewal of each hold")
	}
	if took := time.Since(start); took > soon {
		s.T.Errorf("the last renewal came after %v", took)
	}
	for _, h := range holds {
		if err := h.Err(); err != nil {
			s.T.Errorf("%s: %v", h.Name(), err)
		}
	}
	if got := lease.Expires(); !got.Equal(expires) {
		s.T.Errorf("a hold with a lease of its own was extended by %v", got.Sub(expires))
	}
	s.release(holds...)
}

// awaitControl waits until the client listens for others: from then on it has a
// connection by which it notices a break.
func (s *story) awaitControl() {
	s.T.Helper()
	channel := "redlatch_control:" + s.c.ID()
	if !within(generous, func() bool { return len(s.list("PUBSUB", "CHANNELS", channel)) == 1 }) {
		s.T.Fatal("the client does not listen")
	}
}

// A server that comes back without its data has given every lock away.
func anEmptyServerEndsEveryHoldAtOnce(t *testing.T, a adapter) {
	var tests []subtest
	for _, down := range []time.Duration{0, time.Second} {
		tests = append(tests, subtest{fmt.Sprint("down for ", down), func(t *testing.T) {
			ar := newArena(t, a)
			s := &story{T: t, arena: ar, lock: "orders", c: ar.other}
			watched := s.acquire(bg)
			leased, err := s.c.Lock("a lease").Acquire(bg, redlatch.Lease(generous))
			if err != nil {
				t.Fatal(err)
			}
			s.awaitControl()
			ar.server.Kill()
			time.Sleep(down)
			ar.server.Restart()
			back := time.Now()
			for _, h := range []*redlatch.Hold{watched, leased} {
				await(t, "the end of a lost hold", h.Context().Done())
				if took := time.Since(back); took > soon {
					t.Errorf("the holder of %s was told after %v", h.Name(), took)
				}
				wantLost(t, h, redlatch.LostGone)
			}
			ar.end()
		}})
	}
	concurrently(t, len(tests), tests)
}

// Redisson's forceUnlock says what it did on the lock's channel.
func aForeignReleaseOfOurLockIsNoticed(t *testing.T, a adapter) {
	ar := newArena(t, a)
	ar.tell([]telling{{"once", func(s *story) {
		first := s.acquireBy(s.other, bg)
		got := acquiring(s.c.Lock(s.lock)) // subscribes
		s.awaitSubscriber()
		s.release(first)
		h := s.got(got)
		s.server.MustDo("DEL", s.lock)
		s.server.MustDo("PUBLISH", "redisson_lock__channel:{"+s.lock+"}", "0")
		start := time.Now()
		await(s.T, "the end of the hold", h.Context().Done())
		if took := time.Since(start); took > soon {
			s.T.Errorf("told after %v", took)
		}
		wantLost(s.T, h, redlatch.LostGone)
	}}})
	ar.end()
}
