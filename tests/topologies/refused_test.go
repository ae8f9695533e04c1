package topologies

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
)

// outOfMemory: what is held is kept and can be let go, but Redis gives away only
// what it gives in letting go.
func outOfMemory(s *scene) {
	before := map[*held]time.Time{}
	s.each(func(h *household) {
		for _, x := range h.holds {
			before[x] = x.Expires()
		}
	})
	s.server.MustDo("CONFIG", "SET", "maxmemory", "1")
	s.each(func(h *household) { h.refused("OOM") })
	s.each(func(h *household) {
		for _, x := range h.holds {
			h.eventually(x.what+" is renewed", func() bool {
				return x.what == "lease" || x.Err() != nil || x.Expires().After(before[x])
			})
		}
		h.wantHeld()
	})
	s.each((*household).giveUp)
	s.each(func(h *household) { h.wantWaiting("latch", "fair", "permit") })
	s.server.MustDo("CONFIG", "SET", "maxmemory", "0")
	s.each((*household).arrive)
	s.each(func(h *household) { h.wantServed(soon) })
}

// diskBroken lets the server fail to save its data, so that it refuses to write.
func diskBroken(s *scene) (mend func()) {
	dir := filepath.Join(s.server.Dir(), "in-the-way")
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.Fatal(err)
	}
	status := func(want string) {
		// It is allowed to try once in five seconds only when it tries by itself.
		s.server.MustDo("BGSAVE")
		eventually(s.T, "saving is "+want, func() bool {
			return strings.Contains(fmt.Sprint(s.server.MustDo("INFO", "persistence")), "rdb_last_bgsave_status:"+want)
		})
	}
	s.server.MustDo("CONFIG", "SET", "save", "3600 1000000")
	status("err")
	return func() {
		if err := os.Remove(dir); err != nil {
			s.Fatal(err)
		}
		status("ok")
	}
}

// fileInTheWay is where diskBroken puts a directory.
var fileInTheWay = []string{"--dbfilename", "in-the-way"}

func replicasMissing(s *scene) (mend func()) {
	s.server.MustDo("CONFIG", "SET", "min-replicas-to-write", "1")
	return func() { s.server.MustDo("CONFIG", "SET", "min-replicas-to-write", "0") }
}

// noWrites: the server refuses every write for less than a lease.
func noWrites(begin func(s *scene) (mend func()), code string) func(s *scene) {
	return func(s *scene) {
		mend := begin(s)
		var awaits []func()
		s.each(func(h *household) {
			h.refused(code)
			awaits = append(awaits, h.calls())
			select {
			case <-h.failed:
			case <-time.After(shortLease/3 + soon):
				h.Errorf("%s: nobody has tried to renew", h.name)
			}
		})
		s.each((*household).wantHeld)
		mend()
		for _, await := range awaits {
			await()
		}
		s.each((*household).goesOn)
	}
}

// noWritesForLong: holders cannot be kept, and are told before others get what they
// had: see household.alone.
func noWritesForLong(s *scene) {
	mend := diskBroken(s)
	s.each(func(h *household) { h.wantLost(shortLease+soon, redlatch.LostExpired, "lease") })
	s.each(func(h *household) { h.wantWaiting() })
	mend()
	s.each(func(h *household) {
		h.wantServed(2*soon, "lease", "semaphore", "latch", "barrier")
		h.giveUp()
		h.arrive()
		h.wantServed(soon)
	})
}

// evicted: under pressure Redis drops the keys with the shortest time to live, that
// is locks.
func evicted(s *scene) {
	s.each(func(h *household) { h.forgets.Store(true) })
	used := 0
	for line := range strings.Lines(fmt.Sprint(s.server.MustDo("INFO", "memory"))) {
		if n, ok := strings.CutPrefix(line, "used_memory:"); ok {
			used, _ = strconv.Atoi(strings.TrimSpace(n))
		}
	}
	s.server.MustDo("CONFIG", "SET", "maxmemory", strconv.Itoa(used+1<<20))
	value := strings.Repeat("x", 64<<10)
	pressure := 0
	for ; pressure < 100; pressure++ {
		if _, err := s.server.Do("SET", "pressure"+strconv.Itoa(pressure), value); err != nil {
			break // there is nothing left to evict
		}
	}
	s.each(func(h *household) {
		for _, x := range h.holds {
			if x.what != "permit" {
				h.eventually(x.what+" is evicted", func() bool {
					fields := fmt.Sprint(s.server.MustDo("HGETALL", h.of(x.what)))
					return !strings.Contains(fields, h.a.ID())
				})
			}
		}
	})
	for i := range pressure {
		s.server.MustDo("DEL", "pressure"+strconv.Itoa(i))
	}
	s.each(func(h *household) {
		h.wantLost(shortLease/3+soon, redlatch.LostGone, "permit", "lease")
		h.wantError("barrier", soon, redlatch.ErrBroken)
		h.wantServed(soon, "permit", "semaphore", "latch")
		h.giveUpWhatWasKept()
		h.wantServed(soon)
	})
}
