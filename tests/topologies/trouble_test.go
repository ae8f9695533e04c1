package topologies

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A trouble is something that a server does to those who use it.
type trouble struct {
	name  string
	args  []string      // of the server
	lease time.Duration // 0: longLease
	rate  time.Duration // when who waits for it has it, by itself; 0: 3 s
	story func(s *scene)
}

// A scene is a server in trouble, and a household for each adapter.
type scene struct {
	*testing.T
	server     *testserver.Server
	households []*household
}

func (s *scene) each(f func(h *household)) {
	for _, h := range s.households {
		f(h)
	}
}

// TestTroubles tells what becomes of holders and of those who wait. Each trouble
// has its line in docs/guarantees.md.
func TestTroubles(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for _, x := range troubles {
		for _, kind := range testserver.Kinds() {
			t.Run(x.name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				x.tell(t, kind)
			})
		}
	}
}

func (x *trouble) tell(t *testing.T, kind testserver.Kind) {
	s := &scene{T: t, server: testserver.Start(t, kind, x.args...)}
	where := drivers.Single(s.server.Addr())
	where.Timeout = 500 * time.Millisecond
	lease, rate := cmp.Or(x.lease, longLease), cmp.Or(x.rate, 3*time.Second)
	for _, adapter := range drivers.Adapters {
		open := func() driver.Redis { return adapter.Open(t, where) }
		s.households = append(s.households, setUp(t, s.server, open, adapter.Name, lease, rate))
	}
	x.story(s)
	s.each((*household).leave)
}

// refused checks that a new call fails with that code, when the server has been of
// no use for Config.OutageTimeout and not before, and may be made again. Within
// half a second a busy machine may have heard nothing: then there is more time.
func (h *household) refused(code string) {
	h.Helper()
	var re *driver.RunError
	err := h.failure(500 * time.Millisecond)
	for tries := 0; tries < 10 && (!errors.As(err, &re) || re.Code != code); tries++ {
		err = h.failure(2 * time.Second)
	}
	if !errors.As(err, &re) || re.Code != code {
		h.Errorf("%s: Acquire: %v, want ErrUnavailable by %s", h.name, err, code)
	}
}

func (h *household) failure(patience time.Duration) error {
	h.Helper()
	c := client(h.T, h.open(), redlatch.Config{OutageTimeout: patience})
	start := time.Now()
	_, err := c.Lock(h.of("refused")).Acquire(h.ctx)
	took := time.Since(start)
	if !errors.Is(err, redlatch.ErrUnavailable) || !redlatch.IsRetryable(err) {
		h.Errorf("%s: Acquire: %v, want ErrUnavailable", h.name, err)
	}
	if took < patience {
		h.Errorf("%s: Acquire failed after %v, want it to try for %v", h.name, took, patience)
	}
	return err
}

// calls makes calls that are to wait for the end of the trouble.
func (h *household) calls() (await func()) {
	h.Helper()
	c := make(chan error, 2)
	l := latch.New(h.b, h.of("counted"))
	go func() {
		hold, err := h.a.Lock(h.of("free")).Acquire(h.ctx)
		if err == nil {
			err = hold.Release(h.ctx)
		}
		c <- err
	}()
	go func() {
		_, err := l.TrySetCount(h.ctx, 3)
		for range 2 {
			err = errors.Join(err, l.CountDown(h.ctx))
		}
		c <- err
	}()
	return func() {
		h.Helper()
		for range 2 {
			select {
			case err := <-c:
				if err != nil {
					h.Errorf("%s: a call did not wait for the end: %v", h.name, err)
				}
			case <-time.After(generous):
				h.Fatalf("%s: a call does not return", h.name)
			}
		}
		if n, err := l.Count(h.ctx); err != nil || n != 1 {
			h.Errorf("%s: a latch that was counted down twice from 3 is at %d, %v", h.name, n, err)
		}
		if _, err := l.Delete(h.ctx); err != nil {
			h.Errorf("%s: Delete: %v", h.name, err)
		}
	}
}

// goesOn checks that nothing has happened to anybody, and lets b have everything.
func (h *household) goesOn() {
	h.Helper()
	h.wantHeld()
	h.wantWaiting()
	h.giveUp()
	h.arrive()
	h.wantServed(soon)
}

var troubles = []trouble{
	// Those that last longest come first.
	{name: "writes refused for longer than a lease", args: fileInTheWay, lease: shortLease, story: noWritesForLong},
	{name: "paused for longer than a lease", lease: shortLease, story: pausedForLong},
	{name: "out of memory", lease: shortLease, story: outOfMemory},
	{name: "locks evicted", args: []string{"--maxmemory-policy", "volatile-ttl"}, lease: shortLease, story: locksEvicted},
	{name: "all evicted", args: []string{"--maxmemory-policy", "allkeys-lru"}, lease: shortLease, rate: time.Hour, story: allEvicted},
	{name: "writes refused for want of a disk", args: fileInTheWay, lease: time.Minute, story: noWrites(diskBroken, "MISCONF")},
	{name: "writes refused for want of replicas", lease: time.Minute, story: noWrites(replicasMissing, "NOREPLICAS")},
	{name: "loading", args: slowToLoad, story: whileLoading},
	{name: "restart without data", rate: time.Hour, story: restartWithoutData},
	{name: "restart with data", args: []string{"--appendonly", "yes", "--appendfsync", "always"}, story: restartWithData},
	{name: "restart with older data", story: restartWithOlderData},
	{name: "paused", story: pausedBriefly("ALL")},
	{name: "writes paused", story: pausedBriefly("WRITE")},
	{name: "clients killed", story: clientsKilled("normal")},
	{name: "subscribers killed", story: clientsKilled("pubsub")},
	{name: "scripts forgotten", story: scriptsForgotten},
}
