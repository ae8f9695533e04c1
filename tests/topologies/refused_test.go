package topologies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// outOfMemory: what is held is kept, passed on in its process and let go, but
// Redis gives away only what it gives in letting go.
func outOfMemory(s *scene) {
	before := map[*held]time.Time{}
	var passOn []func()
	s.each(func(h *household) {
		for _, x := range h.holds {
			before[x] = x.Expires()
		}
		passOn = append(passOn, h.nestAndLineUp())
	})
	s.server.MustDo("CONFIG", "SET", "maxmemory", "1")
	for _, f := range passOn {
		f()
	}
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
	s.each(func(h *household) {
		h.wantServed(soon, "lock", "lease", "fair", "group", "write", "read", "permit", "semaphore", "pool", "barrier", "rate")
		h.wantWaiting("fair", "permit")
		h.breakUp()
	})
	s.server.MustDo("CONFIG", "SET", "maxmemory", "0")
	s.each(func(h *household) { h.wantServed(soon) })
}

// nestAndLineUp acquires locks twice over, and lets another goroutine of the same
// process wait, with a lease of its own: it can only get the very lock that the
// first one has. Groups are not passed on so.
func (h *household) nestAndLineUp() (passOn func()) {
	h.Helper()
	waiting := make(chan struct{}, 10)
	c := client(h.T, h.open(), redlatch.Config{
		WatchdogTimeout: longLease, // what has not been confirmed for a third of it is not passed on
		SlowWait:        time.Millisecond,
	})
	observe.Add(c, observe.Hooks{SlowWait: func(observe.SlowWaitEvent) { waiting <- struct{}{} }})
	locks := []*redlatch.Lock{c.Lock(h.of("nest")), c.ReadWriteLock(h.of("nest-write")).Write(), redisson.GroupLock(c, h.of("nest-group"), []string{"x"})}
	got := make(chan error, len(locks))
	var holds [][2]*redlatch.Hold
	begun := time.Now()
	waits, giveUp := context.WithCancel(h.ctx)
	for _, l := range locks {
		outer, err := l.Acquire(h.ctx)
		h.must("Acquire", err)
		inner, err := l.Acquire(outer.Context())
		h.must("the second Acquire", err)
		holds = append(holds, [2]*redlatch.Hold{outer, inner})
		if strings.HasSuffix(l.Name(), "group") {
			continue
		}
		go func() {
			hold, err := locktest.With(l, redlatch.Lease(time.Minute)).Acquire(waits)
			if err == nil {
				err = hold.Release(h.ctx)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", l.Name(), err)
			}
			got <- err
		}()
		select {
		case <-waiting:
		case <-time.After(generous):
			h.Fatalf("%s: nobody waits for %s", h.name, l.Name())
		}
	}
	return func() {
		h.Helper()
		defer giveUp()
		ctx, cancel := context.WithTimeout(h.ctx, generous)
		defer cancel()
		for _, nest := range holds {
			h.must("Release of the inner hold", nest[1].Release(ctx))
			h.must("Release of the outer hold", nest[0].Release(ctx))
		}
		if time.Since(begun) > time.Second {
			// Who has had a lock for so long lets others have it, whoever they are, and
			// a server without memory gives nothing new away.
			giveUp()
			for range locks[1:] {
				h.Logf("%s: too slow a machine to see a lock passed on: %v", h.name, <-got)
			}
			return
		}
		for range locks[1:] {
			select {
			case err := <-got:
				h.must("what was passed on", err)
			case <-ctx.Done():
				h.Fatalf("%s: a lock is not passed on", h.name)
			}
		}
	}
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
			case <-time.After(time.Minute/3 + soon):
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

// noWritesForLong: holders cannot be kept, and are told before others get what
// they had: see household.alone.
func noWritesForLong(s *scene) {
	mend := diskBroken(s)
	s.each(func(h *household) { h.wantLost(shortLease+soon, redlatch.LostExpired, "lease") })
	s.each(func(h *household) { h.wantWaiting() })
	mend()
	s.each(func(h *household) {
		h.wantServed(2*soon, "lease", "semaphore", "pool", "latch", "barrier")
		h.giveUp()
		h.breakUp()
		h.wantServed(soon)
	})
}

// locksEvicted: under pressure Redis drops the keys with the shortest time to
// live, that is locks.
func locksEvicted(s *scene) {
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
	s.awaitForgotten("permit")
	for i := range pressure {
		s.server.MustDo("DEL", "pressure"+strconv.Itoa(i))
	}
	s.each(func(h *household) {
		h.wantLost(shortLease/3+soon, redlatch.LostGone, "permit", "lease")
		h.wantError("barrier", soon, barrier.ErrBroken)
		h.wantServed(soon, "permit", "semaphore", "pool", "latch")
		h.releaseLease()
		h.holds = slices.DeleteFunc(h.holds, func(x *held) bool { return x.what != "permit" })
		h.giveUp()
		h.wantServed(soon)
	})
}

// allEvicted: a server that may drop any key drops all, as FLUSHALL would.
func allEvicted(s *scene) {
	s.each(func(h *household) { h.forgets.Store(true) })
	s.server.MustDo("CONFIG", "SET", "maxmemory", "1")
	s.awaitForgotten()
	s.server.MustDo("CONFIG", "SET", "maxmemory", "0")
	s.each(func(h *household) {
		h.wantLost(shortLease/3+soon, redlatch.LostGone, "lease")
		h.releaseLease()
		h.wantForgotten()
	})
}

// awaitForgotten waits until the server does not know any more what the first
// clients hold.
func (s *scene) awaitForgotten(except ...string) {
	s.Helper()
	s.each(func(h *household) {
		for _, x := range h.holds {
			if slices.Contains(except, x.what) {
				continue
			}
			h.eventually(x.what+" is evicted", func() bool {
				if x.what == "permit" {
					return h.server.MustDo("EXISTS", h.of(x.what)) == int64(0)
				}
				return !strings.Contains(fmt.Sprint(h.server.MustDo("HGETALL", h.of(x.what))), h.a.ID())
			})
		}
	})
}

// releaseLease: nobody need ask about a hold that is not renewed, until it is
// released.
func (h *household) releaseLease() {
	h.Helper()
	for _, x := range h.holds {
		if x.what == "lease" {
			if err := x.Release(h.ctx); !errors.Is(err, redlatch.ErrLost) {
				h.Errorf("%s: Release of the lost lease: %v", h.name, err)
			}
		}
	}
}
