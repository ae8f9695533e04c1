package faults

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// everyKind is every request about every type of lock.
var everyKind = slices.Concat(plainKinds, fairKinds, readWriteKinds)

// sides are what a story knows of the type of its lock and, if that is a
// read-write lock, of its holds.
type sides struct {
	side   string // "read", "write", "fair": what the story acquires now; empty: a plain lock
	prefer bool   // writers

	mu    sync.Mutex
	reads map[*redlatch.Hold]bool // by those acquired so far
}

// of returns the story's lock.
func (s *story) of(c *redlatch.Client) *redlatch.Lock {
	rw := c.ReadWriteLock(s.lock)
	if s.prefer {
		rw = rw.PreferWriters()
	}
	switch s.side {
	case "read":
		return rw.Read()
	case "write":
		return rw.Write()
	case "fair":
		return c.FairLock(s.lock)
	default:
		return c.Lock(s.lock)
	}
}

func (s *story) isReadWrite() bool { return s.side == "read" || s.side == "write" }

// rival returns the lock of another process that excludes the story's.
func (s *story) rival() *redlatch.Lock {
	if s.isReadWrite() {
		return s.other.ReadWriteLock(s.lock).Write()
	}
	return s.of(s.other)
}

func (s *story) channel() string {
	if s.isReadWrite() {
		return wire.Prefix(wire.RWChannel, s.lock)
	}
	return wire.Prefix(wire.LockChannel, s.lock)
}

// write has the story go on with writers, if it was about readers.
func (s *story) write() {
	if s.side == "read" {
		s.side = "write"
	}
}

func (s *story) track(h *redlatch.Hold) *redlatch.Hold {
	s.sides.mu.Lock()
	defer s.sides.mu.Unlock()
	if s.reads == nil {
		s.reads = map[*redlatch.Hold]bool{}
	}
	s.reads[h] = s.side == "read"
	return h
}

// wantSides checks that a read-write lock is that of h's owner, for as long as
// it is trusted, and shows each write hold of the owner that lives, and that it
// reads if it ever did.
func (s *story) wantSides(when string, h *redlatch.Hold) {
	s.T.Helper()
	s.sides.mu.Lock()
	writes, reads := 0, 0
	if _, known := s.reads[h]; !known {
		writes++ // it came from elsewhere
	}
	for other, read := range s.reads {
		switch {
		case other.ID() != h.ID():
		case read:
			reads = 1 // until the owner has nothing left
		case other.Err() == nil:
			writes++
		}
	}
	s.sides.mu.Unlock()
	want := map[string]string{"mode": "read"}
	if writes > 0 {
		want["mode"], want[h.ID()+":write"] = "write", strconv.Itoa(writes)
	}
	if reads > 0 {
		want[h.ID()] = "1"
	}
	var got map[string]string
	if !s.inTheEnd(func() bool {
		list := s.list("HGETALL", s.lock)
		got = map[string]string{}
		for i := 0; i+1 < len(list); i += 2 {
			got[list[i]] = list[i+1]
		}
		return maps.Equal(got, want)
	}) {
		s.T.Errorf("%s: Redis shows %q, want %q", when, got, want)
	}
	trusted := h.Expires()
	ttls := []time.Duration{s.ttl()}
	if reads > 0 {
		ms, _ := s.server.MustDo("PTTL", wire.ReadTimeout(s.lock, h.ID(), 1)).(int64)
		ttls = append(ttls, time.Duration(ms)*time.Millisecond)
	}
	if ttl := slices.Min(ttls); time.Now().Add(ttl).Before(trusted) {
		s.T.Errorf("%s: Redis keeps the lock, or the read hold, for another %v, its holder trusts it for %v", when, ttl, time.Until(trusted))
	}
}

// quantum is longer than one.
const quantum = 10 * time.Millisecond

// Of readwrite.write.intent behind lock and writers: owner, wait, channel.
func withdraws(r faultnet.Request) bool { return r.Args[len(r.Args)-2] == "0" }
func announces(r faultnet.Request) bool { return !withdraws(r) }

// preferredWriter has a writer wait to whom readers give precedence, and returns
// its hold.
func preferredWriter(s *story, arm func() func() bool) []*redlatch.Hold {
	s.side, s.prefer = "write", true
	fired := arm()
	for end := time.Now().Add(locktest.Generous); time.Now().Before(end); {
		reader, err := s.other.ReadWriteLock(s.lock).Read().Acquire(bg)
		if err != nil {
			s.T.Fatal(err)
		}
		got := locktest.Acquiring(s.of(s.c))
		s.awaitSubscriber()
		s.release(reader)
		h := s.got(got)
		if locktest.Within(100*time.Millisecond, fired) {
			return []*redlatch.Hold{h}
		}
		s.release(h) // that was one, and there are to be more
	}
	s.T.Fatal("too few such requests were sent")
	return nil
}

// onSide returns a kind that does with one side of a read-write lock, or with a
// fair lock, what the kind of that name does with a plain lock.
func onSide(side, name, script string) requestKind {
	i := slices.IndexFunc(plainKinds, func(k requestKind) bool { return k.name == name })
	k := plainKinds[i]
	provoke := k.provoke
	k.name, k.script = side+" "+name, script
	k.provoke = func(s *story, arm func() func() bool) []*redlatch.Hold {
		s.side = side
		return provoke(s, arm)
	}
	return k
}

// readWriteKinds are the requests about a read-write lock.
var readWriteKinds = []requestKind{
	onSide("write", "take", "readwrite.write.take"),
	onSide("write", "take with a lease", "readwrite.write.take"),
	onSide("write", "re-entry", "readwrite.renew"),
	onSide("write", "partial release", "readwrite.renew"),
	onSide("write", "renew", "readwrite.renew"),
	onSide("write", "extend", "readwrite.renew"),
	onSide("write", "turn", "readwrite.write.yield"),
	onSide("write", "transfer", "readwrite.write.transfer"),
	onSide("write", "release", "readwrite.release"),
	onSide("write", "release of a nest", "readwrite.release"),
	onSide("write", "force of our own", "readwrite.write.force"),
	onSide("read", "take", "readwrite.read.take"),
	onSide("read", "take with a lease", "readwrite.read.take"),
	onSide("read", "renew", "readwrite.renew"),
	onSide("read", "extend", "readwrite.renew"),
	onSide("read", "release", "readwrite.release"),
	onSide("read", "force of our own", "readwrite.read.force"),
	{
		name: "write turn that is taken", script: "readwrite.write.yield", more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			s.side = "write"
			return []*redlatch.Hold{s.turnTaken(arm)}
		},
	},
	{
		name: "read in write", script: "readwrite.read.reenter",
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			s.side = "write"
			outer := s.acquire(bg)
			s.side = "read"
			arm()
			return []*redlatch.Hold{outer, s.acquire(outer.Context())}
		},
	},
	{
		name: "downgrade", script: "readwrite.downgrade",
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			s.side = "write"
			outer := s.acquire(bg)
			s.side = "read"
			inner := s.acquire(outer.Context())
			arm()
			s.release(outer)
			return []*redlatch.Hold{inner}
		},
	},
	{
		name: "question whether others wait", script: "readwrite.read.ask", more: true,
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			s.side = "read"
			h := s.acquire(bg)
			fired := arm()
			if !locktest.Within(locktest.Generous, func() bool {
				time.Sleep(quantum)
				s.release(s.acquire(bg)) // joins, and asks
				return fired()
			}) {
				s.T.Fatal("nobody asked")
			}
			return []*redlatch.Hold{h}
		},
	},
	{name: "wish", script: "readwrite.write.intent", only: announces, more: true, provoke: preferredWriter},
	{name: "wish that is over", script: "readwrite.write.intent", only: withdraws, more: true, second: true, provoke: preferredWriter},
	{
		name: "write force", script: "readwrite.write.force",
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			s.side = "write"
			s.server.MustDo("HSET", s.lock, "mode", "write", wire.WriteField(wire.Owner(wire.NewClientID(), 7)), "1")
			s.server.MustDo("PEXPIRE", s.lock, "60000")
			arm()
			s.force()
			return nil
		},
	},
	{
		name: "read force", script: "readwrite.read.force",
		provoke: func(s *story, arm func() func() bool) []*redlatch.Hold {
			s.side = "read"
			dead := wire.Owner(wire.NewClientID(), 7)
			s.server.MustDo("HSET", s.lock, "mode", "read", dead, "1")
			s.server.MustDo("PEXPIRE", s.lock, "60000")
			s.server.MustDo("SET", wire.ReadTimeout(s.lock, dead, 1), "1", "PX", "60000")
			arm()
			s.force()
			return nil
		},
	},
}
