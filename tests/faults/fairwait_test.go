package faults

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
	"github.com/redlatch/redlatch/internal/standstill"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestFairLock(t *testing.T) { together(t, fairStories()...) }

func TestFairLockOfTheDead(t *testing.T) {
	apart(t, telling{"a crowd of dead waiters is dropped a thousand at a time", (*story).deadWaitersAreDroppedAThousandAtATime})
}

// fairStories are what a real server, real connections and real time add to the
// stories of fair locks that are told in fake time.
func fairStories() []telling {
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
	return stories
}

// A crowd that dies is dropped by few scripts, for which every other client waits:
// they must not look at the rest of the queue again for each of the dead.
func (s *story) deadWaitersAreDroppedAThousandAtATime() {
	const (
		size = 3000
		java = "285475da-9152-4c83-822a-67ee2f116a79:52" // lives
	)
	queue, timeouts := wire.Prefix(wire.LockQueue, s.lock), wire.Prefix(wire.LockTimeout, s.lock)
	dead := wire.Owner(wire.NewClientID(), 0)
	until := time.Now().Add(time.Hour).UnixMilli()
	waiters, scores := []string{"RPUSH", queue}, []string{"ZADD", timeouts}
	for i := range int64(size + 1) {
		id := java
		if i < size {
			id = dead + strconv.FormatInt(i, 10)
		}
		waiters, scores = append(waiters, id), append(scores, strconv.FormatInt(until+i*300_000, 10), id)
	}
	s.server.MustDo(waiters...)
	s.server.MustDo(scores...)
	s.server.MustDo("CONFIG", "RESETSTAT")
	for range size / 1000 {
		if _, err := s.other.FairLock(s.lock).TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			s.T.Errorf("Try: %v", err)
		}
	}
	// Each call changes the scores of those who are left once, by 500 at a time.
	if stats := fmt.Sprint(s.server.MustDo("INFO", "commandstats")); !strings.Contains(stats, "cmdstat_zadd:calls=9,") {
		s.T.Errorf("the sweep of %d has changed scores more often than it should:\n%s", size, stats)
	}
	if got := s.list("ZRANGE", timeouts, "0", "-1", "WITHSCORES"); !slices.Equal(got, []string{java, strconv.FormatInt(until, 10)}) {
		s.T.Errorf("left are %q, want Redisson's, until %d", got, until)
	}
	s.server.MustDo("DEL", queue, timeouts)
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
	s.release(f)
	s.awaitCrowd()
	if !slices.IsSorted(order) || len(order) != size {
		s.T.Errorf("served in the order %v", order)
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
	s.awaitCrowd()
	if refused.Load() != size {
		s.T.Errorf("%d of %d were refused", refused.Load(), size)
	}
	s.awaitQueue(0)
	s.wantHeld("after the crowd", f, 1)
	s.release(f)
	s.wantFree("in the end")
	if !locktest.Within(locktest.Generous, func() bool { return !s.subscribed() }) {
		s.T.Error("a subscription is still there")
	}
}

// A message that does not arrive costs a second, not a TTL.
func (s *story) fairHeadPolls() {
	f := s.acquireBy(s.other, bg)
	got := locktest.Acquiring(s.of(s.c))
	s.awaitQueue(1)
	s.server.MustDo("DEL", s.lock)
	h := s.got(got)
	s.release(h)
	if err := f.Release(bg); !errors.Is(err, redlatch.ErrLost) {
		s.T.Errorf("Release of the hold that was deleted: %v", err)
	}
}

// Nothing of that process reaches the server any more; the others are served
// within seconds, and it leaves nothing when it comes back.
func (s *story) fairWaitersCutOffYield() {
	f := s.acquireBy(s.other, bg)
	cut := locktest.Acquiring(s.of(s.c))
	s.awaitQueue(1)
	got := locktest.Acquiring(s.of(s.other))
	s.awaitQueue(2)
	s.proxy.Blackhole(true)
	s.release(f)
	h := s.got(got)
	s.proxy.Blackhole(false)
	s.proxy.BreakAll()
	s.release(h)
	switch o := await(s.T, "the one that was cut off", cut); {
	case o.Err == nil:
		s.release(o.Hold)
	case !errors.Is(o.Err, redlatch.ErrUnavailable):
		s.T.Errorf("Acquire: %v", o.Err)
	}
	s.wantFree("in the end")
}

// givenFor is for how long a waiter has a lock that it is given, from its last
// request on, unless it renews it: see docs/protocol.md.
const givenFor = 6 * time.Second

// Who is given the lock has seconds to renew or to release it. On a machine that
// gives the process or the server nothing for so long, the lock goes to the next
// one, as it should.
func (s *story) fairProcessesExclude() {
	const goroutines, rounds = 8, 20
	clients := []*redlatch.Client{s.c, s.other, s.client(s.direct, redlatch.Config{})}
	var inside, most, n, late atomic.Int64
	for i := range goroutines * len(clients) {
		s.crowd.Go(func() {
			for range rounds {
				h := s.acquireBy(clients[i%len(clients)], bg)
				most.Store(max(most.Load(), inside.Add(1)))
				n.Add(1)
				inside.Add(-1)
				var lost *redlatch.LostError
				switch err := h.Release(bg); {
				case errors.As(err, &lost) && time.Since(lost.Confirmed) >= givenFor:
					late.Add(1)
				case lost != nil:
					s.T.Errorf("Release: %v, %v after it was confirmed", err, time.Since(lost.Confirmed))
					return
				case err != nil:
					s.T.Errorf("Release: %v", err)
					return
				}
			}
		})
	}
	s.awaitCrowd()
	if most.Load() != 1 && late.Load() == 0 || n.Load() != goroutines*rounds*int64(len(clients)) {
		s.T.Errorf("%d inside at once, %d acquisitions, %d of them lost", most.Load(), n.Load(), late.Load())
	}
	if late.Load() > 0 {
		standstill.NotProven(s.T, "%d of %d holds were not released within %v", late.Load(), n.Load(), givenFor)
	}
	s.wantFree("in the end")
}
