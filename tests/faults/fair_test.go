package faults

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// ofFair returns the kinds as ones of a fair lock.
func ofFair(kinds ...requestKind) []requestKind {
	for i := range kinds {
		provoke := kinds[i].provoke
		kinds[i].provoke = func(s *story, arm func() func() bool) []*redlatch.Hold {
			s.side = "fair"
			return provoke(s, arm)
		}
	}
	return kinds
}

// fairKinds are the requests in which a fair lock differs from a plain one.
var fairKinds = append([]requestKind{
	onSide("fair", "take", "fairlock.take"),
	onSide("fair", "re-entry", "lock.renew"),
	onSide("fair", "release", "fairlock.release"),
	onSide("fair", "force", "fairlock.force"),
	onSide("fair", "force of our own", "fairlock.force"),
}, ofFair([]requestKind{
	{
		name: "fair request for a place", script: "fairlock.take", creates: true, more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			f := s.acquireBy(s.other, bg)
			arm()
			got := locktest.Acquiring(s.of(s.c))
			s.awaitQueue(1)
			s.wantShown("while another waits", f, 1)
			s.release(f)
			return []*redlatch.Hold{s.got(got)}
		},
	},
	{
		name: "fair take out of the queue", script: "fairlock.take", creates: true, more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			for end := time.Now().Add(locktest.Generous); time.Now().Before(end); { // a look that was in flight may have taken the lock
				f := s.acquireBy(s.other, bg)
				got := locktest.Acquiring(locktest.With(s.of(s.c), redlatch.Lease(lease))) // or else it is given the lock
				s.awaitQueue(1)
				fired := arm()
				s.release(f)
				h := s.got(got)
				if fired() {
					return []*redlatch.Hold{h}
				}
				s.release(h)
			}
			s.T.Fatal("the lock was taken without a request")
			return nil
		},
	},
	{
		name: "fair release to another", script: "fairlock.release", more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			h := s.acquire(bg)
			got := locktest.Acquiring(s.of(s.other))
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
		name: "fair leave", script: "fairlock.release", more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			f := s.acquireBy(s.other, bg)
			ctx, cancel := context.WithCancel(bg)
			got := locktest.Later(func() error { _, err := s.of(s.c).Acquire(ctx); return err })
			s.awaitQueue(1)
			fired := arm()
			cancel()
			if err := await(s.T, "the cancelled Acquire", got); err == nil {
				s.T.Fatal("the lock was given twice")
			}
			s.awaitQueue(0)
			if !locktest.Within(locktest.Generous, fired) {
				s.T.Fatal("nothing was sent")
			}
			s.release(f)
			return nil
		},
	},
}...)...)

// awaitQueue waits until so many wait for the story's lock in Redis.
func (s *story) awaitQueue(n int) {
	s.T.Helper()
	queue, timeouts := wire.Prefix(wire.LockQueue, s.lock), wire.Prefix(wire.LockTimeout, s.lock)
	var ids, scored []string
	if !locktest.Within(locktest.Generous, func() bool {
		ids, scored = s.list("LRANGE", queue, "0", "-1"), s.list("ZRANGE", timeouts, "0", "-1")
		return len(ids) == n && len(scored) == n
	}) {
		s.T.Fatalf("in the queue: %q and %q, want %d", ids, scored, n)
	}
}
