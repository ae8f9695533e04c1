package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
)

// TestFairLockOnARealServer is what a real server, real connections and real
// time add to the stories told in fake time.
func TestFairLockOnARealServer(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real server")
	}
	stories := []telling{
		{"a crowd is served in order", (*story).fairCrowdIsServedInOrder},
		{"a crowd that leaves at once leaves nothing", (*story).fairCrowdLeavesNothing},
		{"without subscriptions the head polls", (*story).fairHeadPolls},
		{"the waiters of a process that is cut off yield", (*story).fairWaitersCutOffYield},
		{"processes with many goroutines exclude", (*story).fairProcessesExclude},
	}
	for i := range stories {
		tell := stories[i].tell
		stories[i].tell = func(s *story) {
			s.side = "fair"
			tell(s)
		}
	}
	var all []subtest
	for _, a := range adapters {
		all = append(all, subtest{a.name, func(t *testing.T) {
			ar := newArena(t, a)
			ar.tell(stories)
			ar.end()
		}})
	}
	concurrently(t, len(all), all)
}

// A crowd that dies is dropped by one script, for which every other client waits:
// it must not look at the rest of the queue again for each of them.
func TestACrowdOfDeadWaitersIsDroppedInOneGo(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real server")
	}
	const size = 3000
	ar := newArena(t, adapters[0])
	queue, timeouts, _ := fairKeys("orders")
	dead := wire.Owner(wire.NewClientID(), 0)
	until := time.Now().Add(time.Hour).UnixMilli()
	for i := range size {
		id := dead + strconv.Itoa(i)
		ar.server.MustDo("RPUSH", queue, id)
		ar.server.MustDo("ZADD", timeouts, strconv.FormatInt(until+int64(i)*300_000, 10), id)
	}
	ar.server.MustDo("RPUSH", queue, java) // lives
	ar.server.MustDo("ZADD", timeouts, strconv.FormatInt(until+size*300_000, 10), java)
	ar.server.MustDo("CONFIG", "RESETSTAT")
	if _, err := ar.other.FairLock("orders").Try(bg); !errors.Is(err, redlatch.ErrBusy) {
		t.Errorf("Try: %v", err)
	}
	if stats := fmt.Sprint(ar.server.MustDo("INFO", "commandstats")); !strings.Contains(stats, "cmdstat_zadd:calls=1,") {
		t.Errorf("the sweep of %d has changed scores more than once:\n%s", size, stats)
	}
	if got := ar.list("ZRANGE", timeouts, "0", "-1", "WITHSCORES"); !slices.Equal(got, []string{java, strconv.FormatInt(until, 10)}) {
		t.Errorf("left are %q, want Redisson's, until %d", got, until)
	}
}

func (s *story) fairCrowdIsServedInOrder() {
	const size = 100
	f := s.acquireBy(s.other, bg)
	var mu sync.Mutex
	var order []int
	for i := range size {
		s.crowd.Go(func() {
			h := s.acquire(bg)
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			s.release(h)
		})
		s.awaitQueue(i + 1)
	}
	start := time.Now()
	s.release(f)
	s.crowd.Wait()
	if !slices.IsSorted(order) || len(order) != size {
		s.T.Errorf("served in the order %v", order)
	}
	if took := time.Since(start); took > 10*time.Second {
		s.T.Errorf("%d hand-offs took %v", size, took)
	}
	s.wantFree("in the end")
}

func (s *story) fairCrowdLeavesNothing() {
	const size = 200
	f := s.acquireBy(s.other, bg)
	ctx, cancel := context.WithCancel(bg)
	var refused atomic.Int64
	for range size {
		s.crowd.Go(func() {
			if _, err := s.of(s.c).Acquire(ctx); errors.Is(err, context.Canceled) {
				refused.Add(1)
			}
		})
	}
	s.awaitQueue(size)
	cancel()
	s.crowd.Wait()
	if refused.Load() != size {
		s.T.Errorf("%d of %d were refused", refused.Load(), size)
	}
	s.awaitQueue(0)
	s.wantHeld("after the crowd", f, 1)
	s.release(f)
	s.wantFree("in the end")
	if !within(generous, func() bool { return !s.subscribed() }) {
		s.T.Error("a subscription is still there")
	}
}

// A message that does not arrive costs a second, not a TTL.
func (s *story) fairHeadPolls() {
	f := s.acquireBy(s.other, bg)
	got := acquiring(s.of(s.c))
	s.awaitQueue(1)
	s.server.MustDo("DEL", s.lock)
	start := time.Now()
	h := s.got(got)
	if took := time.Since(start); took > 3*time.Second {
		s.T.Errorf("it took %v", took)
	}
	s.release(h)
	if err := f.Release(bg); !errors.Is(err, redlatch.ErrLost) {
		s.T.Errorf("Release of the hold that was deleted: %v", err)
	}
}

// Nothing of that process reaches the server any more; the others are served
// within seconds, and it leaves nothing when it comes back.
func (s *story) fairWaitersCutOffYield() {
	f := s.acquireBy(s.other, bg)
	cut := acquiring(s.of(s.c))
	s.awaitQueue(1)
	got := acquiring(s.of(s.other))
	s.awaitQueue(2)
	s.proxy.Blackhole(true)
	s.release(f)
	start := time.Now()
	h := s.got(got)
	if took := time.Since(start); took > generous-time.Second {
		s.T.Errorf("blocked for %v", took)
	}
	s.proxy.Blackhole(false)
	s.proxy.BreakAll()
	s.release(h)
	switch o := await(s.T, "the one that was cut off", cut); {
	case o.err == nil:
		s.release(o.hold)
	case !errors.Is(o.err, redlatch.ErrUnavailable):
		s.T.Errorf("Acquire: %v", o.err)
	}
	s.wantFree("in the end")
}

func (s *story) fairProcessesExclude() {
	const goroutines, rounds = 8, 20
	clients := []*redlatch.Client{s.c, s.other, s.client(s.direct, redlatch.Config{})}
	var inside, most, n atomic.Int64
	for i := range goroutines * len(clients) {
		s.crowd.Go(func() {
			for range rounds {
				h := s.acquireBy(clients[i%len(clients)], bg)
				most.Store(max(most.Load(), inside.Add(1)))
				n.Add(1)
				inside.Add(-1)
				s.release(h)
			}
		})
	}
	start := time.Now()
	s.crowd.Wait()
	s.T.Logf("%d acquisitions in %v", n.Load(), time.Since(start))
	if most.Load() != 1 || n.Load() != goroutines*rounds*int64(len(clients)) {
		s.T.Errorf("%d inside at once, %d acquisitions", most.Load(), n.Load())
	}
	s.wantFree("in the end")
}
