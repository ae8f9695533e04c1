package redlatch_test

import (
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
)

// requestKinds are all of them.
var requestKinds = slices.Concat(plainKinds, fairKinds)

// fairKinds are those in which a fair lock differs from a plain one.
var fairKinds = []requestKind{
	{
		name: "fair take", script: "fairlock.take", fair: true, creates: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			arm()
			return []*redlatch.Hold{s.acquire(bg)}
		},
	},
	{
		name: "fair request for a place", script: "fairlock.take", fair: true, creates: true, more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			f := s.acquireBy(s.other, bg)
			arm()
			got := acquiring(s.of(s.c))
			s.awaitQueue(1)
			s.wantShown("while another waits", f, 1)
			s.release(f)
			return []*redlatch.Hold{s.got(got)}
		},
	},
	{
		name: "fair take out of the queue", script: "fairlock.take", fair: true, creates: true, more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			f := s.acquireBy(s.other, bg)
			got := acquiring(s.of(s.c))
			s.awaitQueue(1)
			fired := arm()
			s.release(f)
			h := s.got(got)
			if !fired() {
				s.T.Fatal("the lock was taken without a request")
			}
			return []*redlatch.Hold{h}
		},
	},
	{
		name: "fair re-entry", script: "lock.reenter", only: raisesCount, fair: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			outer := s.acquire(bg)
			arm()
			return []*redlatch.Hold{outer, s.acquire(outer.Context())}
		},
	},
	{
		name: "fair release", script: "fairlock.release", fair: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			h := s.acquire(bg)
			arm()
			s.release(h)
			return nil
		},
	},
	{
		name: "fair release to another", script: "fairlock.release", fair: true, more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			h := s.acquire(bg)
			got := acquiring(s.of(s.other))
			s.awaitQueue(1)
			arm()
			s.release(h)
			f := s.got(got)
			s.wantHeld("by the waiter", f, 1)
			s.release(f)
			return nil
		},
	},
	{
		name: "fair leave", script: "fairlock.release", fair: true, more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			f := s.acquireBy(s.other, bg)
			ctx, cancel := context.WithCancel(bg)
			got := later(func() error { _, err := s.of(s.c).Acquire(ctx); return err })
			s.awaitQueue(1)
			fired := arm()
			cancel()
			if err := await(s.T, "the cancelled Acquire", got); err == nil {
				s.T.Fatal("the lock was given twice")
			}
			s.awaitQueue(0)
			if !within(generous, fired) {
				s.T.Fatal("nothing was sent")
			}
			s.release(f)
			return nil
		},
	},
	{
		name: "fair force", script: "fairlock.force", fair: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			dead := wire.Owner(wire.NewClientID(), 7) // nobody listens for it
			s.server.MustDo("HSET", s.lock, dead, "1")
			s.server.MustDo("PEXPIRE", s.lock, "60000")
			arm()
			s.force()
			return nil
		},
	},
	{
		name: "fair force of our own", script: "fairlock.force", fair: true, more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			h := s.acquire(bg)
			arm()
			s.force()
			if h.Err() == nil {
				s.T.Error("the hold lives on after a force release")
			}
			return nil
		},
	},
}

// awaitQueue waits until so many wait for the story's lock in Redis. Nobody who
// does not want it any more is there for longer than four seconds.
func (s *story) awaitQueue(n int) {
	s.T.Helper()
	start := time.Now()
	queue, timeouts, _ := fairKeys(s.lock)
	var ids, scored []string
	if !within(generous, func() bool {
		ids, scored = s.list("LRANGE", queue, "0", "-1"), s.list("ZRANGE", timeouts, "0", "-1")
		return len(ids) == n && len(scored) == n
	}) {
		s.T.Fatalf("in the queue: %q and %q, want %d", ids, scored, n)
	}
	if took := time.Since(start); n == 0 && took > 8*time.Second {
		s.T.Errorf("the queue was empty only after %v", took)
	}
}
