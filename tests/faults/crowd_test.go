package faults

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/standstill"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// These tests count goroutines, so nothing runs beside them.

func TestTenThousandWaitersLeaveNothingBehind(t *testing.T) {
	crowds := []struct {
		name  string
		local bool // the lock is held by the waiters' own process
		end   func(s *story, h *redlatch.Hold, cancel func())
	}{
		{"cancelled, the lock being held here", true, func(s *story, h *redlatch.Hold, cancel func()) {
			cancel()
			s.awaitCrowd()
			s.release(h)
		}},
		{"cancelled, the lock being held elsewhere", false, func(s *story, h *redlatch.Hold, cancel func()) {
			cancel()
			s.awaitCrowd()
			s.release(h)
		}},
		{"cancelled while the lock is released here", true, func(s *story, h *redlatch.Hold, cancel func()) {
			s.crowd.Go(func() { s.release(h) })
			cancel()
			s.awaitCrowd()
		}},
		{"cancelled while the lock is released elsewhere", false, func(s *story, h *redlatch.Hold, cancel func()) {
			s.crowd.Go(func() { s.release(h) })
			cancel()
			s.awaitCrowd()
		}},
		{"cancelled while the client is closed", true, func(s *story, h *redlatch.Hold, cancel func()) {
			s.release(h)
			s.crowd.Go(func() { _ = s.c.Close() })
			cancel()
			s.awaitCrowd()
		}},
	}
	for _, p := range places() {
		t.Run(p.String(), func(t *testing.T) {
			t.Cleanup(func() { wantNoGoroutines(t) })
			ar := newArena(t, p)
			for _, x := range crowds {
				t.Run(x.name, func(t *testing.T) { ar.story(t).tellCrowd(x.local, x.end) })
			}
		})
	}
}

func (s *story) tellCrowd(local bool, end func(*story, *redlatch.Hold, func())) {
	const size = 10_000
	holder := s.other
	if local {
		holder = s.c
	}
	s.release(s.acquire(bg)) // connections and workers are there
	h := s.acquireBy(holder, bg)
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var asked, got, refused atomic.Int64
	for range size {
		s.crowd.Go(func() {
			asked.Add(1)
			hold, err := s.c.Lock(s.lock).Acquire(ctx)
			if err == nil {
				got.Add(1)
				err = hold.Release(bg)
				if err != nil {
					s.T.Errorf("Release: %v", err)
				}
				return
			}
			if !errors.Is(err, redlatch.ErrBusy) && !errors.Is(err, redlatch.ErrClosed) && !errors.Is(err, redlatch.ErrUnavailable) {
				s.T.Errorf("Acquire: %v, want busy, or unavailable where even that took too long", err)
			}
			refused.Add(1)
		})
	}
	if !locktest.Within(locktest.Generous, func() bool { return asked.Load() == size }) {
		s.T.Fatalf("only %d have asked", asked.Load())
	}
	if !local {
		s.awaitSubscriber()
	}
	slow := s.asked.unanswered()
	end(s, h, cancel)
	if got.Load()+refused.Load() != size {
		s.T.Errorf("%d and %d of %d", got.Load(), refused.Load(), size)
	}
	s.wantGoroutines("after the crowd", before+idle+more)
	if !locktest.Within(locktest.Generous, func() bool { return !s.subscribed() }) {
		s.T.Error("the subscription is still there")
	}
	if err := s.c.Close(); err != nil {
		s.T.Errorf("Close: %v", err)
	}
	s.wantGoroutines("after Close", before+more)
	// A caller that was let in as Close ended leaves a release to the background. It
	// is sent once: a closed client repeats nothing, and what the server does not
	// answer then stays until its TTL.
	free := func() bool { return len(s.list("HGETALL", s.lock)) == 0 }
	if !locktest.Within(locktest.Generous, free) && s.asked.unanswered() > slow {
		standstill.NotProven(s.T, "%d requests had no answer in time since the end began", s.asked.unanswered()-slow)
		s.server.MustDo("DEL", s.lock)
		return
	}
	s.wantFree("in the end")
}

const (
	idle = 64 // workers that a client keeps
	more = 20 // goroutines of connections that a driver may have opened meanwhile
)

func (s *story) wantGoroutines(when string, most int) {
	s.T.Helper()
	var now int
	if !locktest.Within(locktest.Generous, func() bool { now = runtime.NumGoroutine(); return now <= most }) {
		s.T.Errorf("%s: %d goroutines, want at most %d:\n%s", when, now, most, stacks())
	}
}

// wantNoGoroutines checks that the library itself has none: all of its clients
// are closed.
func wantNoGoroutines(t *testing.T) {
	t.Helper()
	ours := func() (list []string) {
		for g := range strings.SplitSeq(stacks(), "\n\n") {
			if strings.Contains(g, "redlatch/redlatch.(") || strings.Contains(g, "redlatch/redlatch/internal/worker.") {
				list = append(list, g)
			}
		}
		return list
	}
	if !locktest.Within(locktest.Generous, func() bool { return len(ours()) == 0 }) {
		t.Errorf("after Close there are goroutines:\n%s", strings.Join(ours(), "\n\n"))
	}
}

func stacks() string {
	buf := make([]byte, 16<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

func (s *story) subscribed() bool {
	for _, channel := range s.list("PUBSUB", "CHANNELS") {
		if strings.Contains(channel, s.lock) {
			return true
		}
	}
	return false
}
