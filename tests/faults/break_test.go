package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestBreak(t *testing.T) {
	together(t,
		telling{"is followed by renewals", func(s *story) { s.breakOff(s.proxy.BreakAll) }},
		telling{"a foreign release is noticed", (*story).foreignReleaseIsNoticed})
}

func TestBreakByTheServer(t *testing.T) {
	apart(t, append(emptyServers(), telling{"is followed by renewals", func(s *story) {
		s.breakOff(func() { s.server.MustDo("CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes") })
	}})...)
}

// A broken connection may mean another server, which may not know the lock:
// every hold is asked for at once.
func (s *story) breakOff(how func()) {
	var holds []*redlatch.Hold
	for i := range 3 {
		h, err := s.c.Lock(fmt.Sprint(s.lock, i)).Acquire(bg)
		if err != nil {
			s.T.Fatal(err)
		}
		holds = append(holds, h)
	}
	leased, err := s.c.Lock(s.lock, redlatch.Lease(lease)).Acquire(bg)
	if err != nil {
		s.T.Fatal(err)
	}
	holds = append(holds, leased)
	s.awaitControl()
	expires := leased.Expires()
	s.proxy.Record(true)
	how()
	renewed := func() bool {
		return !slices.ContainsFunc(holds, func(h *redlatch.Hold) bool {
			return !slices.ContainsFunc(s.proxy.Requests(), func(r faultnet.Request) bool { return isScript(r, "lock.renew", h.Name()) })
		})
	}
	if !locktest.Within(locktest.Generous, renewed) {
		s.T.Error("no renewal of each hold")
	}
	for _, h := range holds {
		if err := h.Err(); err != nil {
			s.T.Errorf("%s: %v", h.Name(), err)
		}
	}
	if got := leased.Expires(); !got.Equal(expires) {
		s.T.Errorf("a hold with a lease of its own was extended by %v", got.Sub(expires))
	}
	s.release(holds...)
}

// awaitControl waits until the client hears others: from then on it has a
// connection by which it notices a break.
func (s *story) awaitControl() {
	s.T.Helper()
	for _, c := range []*redlatch.Client{s.c, s.other} { // question and answer
		h, err := c.Lock(s.lock + "control").Acquire(bg) // with its first it begins to listen
		if err != nil {
			s.T.Fatal(err)
		}
		s.release(h)
		if !locktest.Within(locktest.Generous, func() bool { return len(s.list("PUBSUB", "CHANNELS", control(c))) == 1 }) {
			s.T.Fatal("the client does not listen")
		}
	}
	h, err := s.c.Lock(s.lock + "control").Acquire(bg)
	if err != nil {
		s.T.Fatal(err)
	}
	if ok, err := admin.ForceRelease(bg, s.other.Lock(h.Name())); !ok || err != nil {
		s.T.Fatalf("ForceRelease: %t, %v", ok, err)
	}
	await(s.T, "the end of a hold that another client has ended", h.Context().Done())
}

// A server that comes back without its data has given every lock away.
func emptyServers() (stories []telling) {
	for _, down := range []time.Duration{0, time.Second} {
		stories = append(stories, telling{fmt.Sprint("an empty server ends every hold at once/down for ", down), func(s *story) {
			s.c = s.other // which no proxy disconnects
			watched := s.acquire(bg)
			leased, err := s.c.Lock(s.lock+"leased", redlatch.Lease(lease)).Acquire(bg)
			if err != nil {
				s.T.Fatal(err)
			}
			s.awaitControl()
			s.server.Kill()
			time.Sleep(down)
			s.server.Restart()
			for _, h := range []*redlatch.Hold{watched, leased} {
				await(s.T, "the end of a lost hold", h.Context().Done())
				wantLost(s.T, h, redlatch.LostGone)
			}
		}})
	}
	return stories
}

// Redisson's forceUnlock says what it did on the lock's channel.
func (s *story) foreignReleaseIsNoticed() {
	first := s.acquireBy(s.other, bg)
	got := locktest.Acquiring(s.c.Lock(s.lock)) // subscribes
	s.awaitSubscriber()
	s.release(first)
	h := s.got(got)
	s.server.MustDo("DEL", s.lock)
	s.server.MustDo("PUBLISH", "redisson_lock__channel:{"+s.lock+"}", "0")
	await(s.T, "the end of the hold", h.Context().Done())
	wantLost(s.T, h, redlatch.LostGone)
}
