package faults

import (
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A requestKind is one of the requests with which a client changes a lock.
type requestKind struct {
	name   string
	script string
	only   func(r faultnet.Request) bool // narrows script down; nil: all of it
	// creates says that the request, should it arrive when its hold is over,
	// takes the lock.
	creates bool
	more    bool // other requests follow it
	second  bool // another request with its script goes before it
	// provoke gets the lock into the state in which the request is sent, calls
	// arm and provokes it. When it returns the request has been answered. It
	// returns the holds that are nested in one another then: their number is
	// the count that Redis must show.
	provoke func(s *story, arm func() (fired func() bool)) []*redlatch.Hold
}

func (k *requestKind) is(r faultnet.Request, lock string) bool {
	return isScript(r, k.script, lock) && (k.only == nil || k.only(r))
}

// setsCount says whether a renewal shows a hold count, its last argument: it is a
// re-entry, or corrects the count.
func setsCount(r faultnet.Request) bool { return r.Args[len(r.Args)-1] != "0" }

// plainKinds are those of the plain lock.
var plainKinds = []requestKind{
	{
		name: "take", script: "lock.take", creates: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			arm()
			return []*redlatch.Hold{s.acquire(bg)}
		},
	},
	{
		name: "take with a lease", script: "lock.take", creates: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			arm()
			return []*redlatch.Hold{s.acquire(bg, redlatch.Lease(lease))}
		},
	},
	{
		name: "take of many", script: "multilock.take", creates: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			arm()
			h, err := redlatch.MultiLock(s.c.Lock(s.lock), s.c.Lock(s.lock+"+")).TryAcquire(bg, locktest.Generous)
			if err != nil {
				s.T.Fatalf("Acquire: %v", err)
			}
			members := h.Members()
			s.release(members[1]) // the story is about one lock
			return members[:1]
		},
	},
	{
		name: "re-entry", script: "lock.renew", only: setsCount, more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			outer := s.acquire(bg)
			arm()
			return []*redlatch.Hold{outer, s.acquire(outer.Context())}
		},
	},
	{
		name: "partial release", script: "lock.renew", only: setsCount, more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			outer := s.acquire(bg)
			middle := s.acquire(outer.Context())
			inner := s.acquire(middle.Context())
			fired := arm()
			s.release(inner)
			if !locktest.Within(locktest.Generous, fired) {
				s.T.Fatal("nobody tells Redis that there is a hold less")
			}
			return []*redlatch.Hold{outer, middle}
		},
	},
	{
		name: "renew", script: "lock.renew",
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			h := s.acquire(bg)
			s.awaitControl()
			before := h.Expires()
			fired := arm()
			s.proxy.BreakAll() // is followed by a renewal
			if !locktest.Within(locktest.Generous, func() bool { return fired() && h.Expires().After(before) }) {
				s.T.Fatalf("the hold is not renewed: met %t, ended %v, expires in %v, was %v", fired(), h.Err(), time.Until(h.Expires()), time.Until(before))
			}
			return []*redlatch.Hold{h}
		},
	},
	{
		name: "extend", script: "lock.renew",
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			h := s.acquire(bg, redlatch.Lease(lease/2))
			arm()
			asked := time.Now()
			if err := h.Extend(bg, lease); err != nil {
				s.T.Fatalf("Extend: %v", err)
			}
			if end := h.Expires(); end.Before(asked.Add(lease * 9 / 10)) {
				s.T.Errorf("extended by %v, the hold expires in %v", lease, end.Sub(asked))
			}
			return []*redlatch.Hold{h}
		},
	},
	{
		name: "turn", script: "lock.yield",
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			h := s.acquire(bg)
			next := s.lineUp()
			time.Sleep(quantum)
			arm()
			s.release(h)
			return []*redlatch.Hold{s.got(next)}
		},
	},
	{
		name: "turn that is taken", script: "lock.yield", more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			return []*redlatch.Hold{s.turnTaken(arm)}
		},
	},
	{
		name: "transfer", script: "lock.transfer",
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			fired := arm()
			for end := time.Now().Add(locktest.Generous); time.Now().Before(end); {
				h := s.acquire(bg)
				first := s.lineUp()
				second := s.lineUp(redlatch.Lease(lease))
				s.release(h) // first begins a quantum, in which second inherits
				s.release(s.got(first))
				last := s.got(second)
				if fired() {
					return []*redlatch.Hold{last}
				}
				s.release(last) // too slow: that was a turn
			}
			s.T.Fatal("no transfer")
			return nil
		},
	},
	{
		name: "release", script: "lock.release",
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			h := s.acquire(bg)
			arm()
			s.release(h)
			return nil
		},
	},
	{
		name: "release of a nest", script: "lock.release",
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			outer := s.acquire(bg)
			inner := s.acquire(outer.Context())
			s.release(outer) // the outer first: only the last release ends it
			arm()
			s.release(inner)
			return nil
		},
	},
	{
		name: "force", script: "lock.force",
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
		name: "force of our own", script: "lock.force", more: true,
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

// turnTaken has a process release the lock to another one that waits, and returns
// the hold of the next in its own line. That other process may be too late for its
// turn. It is given turns, each of them armed, until it has taken one.
func (s *story) turnTaken(arm func() func() bool) *redlatch.Hold {
	s.T.Helper()
	for end := time.Now().Add(locktest.Generous); time.Now().Before(end); {
		h := s.acquire(bg)
		foreign := locktest.Acquiring(s.rival())
		s.awaitSubscriber()
		next := s.lineUp()
		time.Sleep(quantum)
		arm()
		s.release(h)
		take := func(o locktest.Outcome) {
			s.T.Helper()
			if o.Err != nil {
				s.T.Fatalf("Acquire: %v", o.Err)
			}
			s.wantHeld("in another process's turn", o.Hold, 1)
			s.release(o.Hold)
		}
		select {
		case o := <-foreign:
			take(o)
			return s.got(next)
		case o := <-next: // too late
			if o.Err != nil {
				s.T.Fatalf("Acquire: %v", o.Err)
			}
			s.release(s.track(o.Hold))
			take(await(s.T, "the other process", foreign))
			s.awaitNoSubscriber() // else it could be mistaken for the next one
		case <-time.After(locktest.Generous):
			s.T.Fatal("nobody gets the lock")
		}
	}
	s.T.Fatal("the other process never had its turn")
	return nil
}

func (s *story) force() {
	s.T.Helper()
	if ok, err := admin.ForceRelease(bg, s.of(s.c)); !ok || err != nil {
		s.T.Fatalf("ForceRelease: %t, %v", ok, err)
	}
}

// awaitSubscriber waits until somebody waits for the lock in Redis.
func (s *story) awaitSubscriber() {
	s.T.Helper()
	if s.side == "fair" {
		s.awaitQueue(1)
		return
	}
	if !locktest.Within(locktest.Generous, func() bool { return s.subscribers() > 0 }) {
		s.T.Fatal("nobody subscribes")
	}
}

// awaitNoSubscriber waits until nobody waits for the lock in Redis any more.
func (s *story) awaitNoSubscriber() {
	s.T.Helper()
	if !locktest.Within(locktest.Generous, func() bool { return s.subscribers() == 0 }) {
		s.T.Fatal("a subscription is still there")
	}
}

// subscribers returns how many clients hear of releases of the lock.
func (s *story) subscribers() int {
	s.T.Helper()
	n := s.list("PUBSUB", "NUMSUB", s.channel())
	if len(n) != 2 {
		s.T.Fatalf("NUMSUB: %q", n)
	}
	count, err := strconv.Atoi(n[1])
	if err != nil {
		s.T.Fatalf("NUMSUB: %q", n)
	}
	return count
}
