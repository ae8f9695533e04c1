package locks

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A fairWorld is a real server and those who want its fair lock.
type fairWorld struct {
	*testing.T
	s *testserver.Server
}

// counted waits until so many waiters stand in the queue that the server has
// counted among those who listen.
func (w *fairWorld) counted(n int) {
	w.Helper()
	if !locktest.Within(locktest.Generous, func() bool { return w.countedNow() == n }) {
		w.Fatalf("counted are %d, want %d", w.countedNow(), n)
	}
}

// countedNow returns how many they are.
func (w *fairWorld) countedNow() (n int) {
	all, _ := w.s.MustDo("ZRANGEBYSCORE", wire.Prefix(wire.LockAlive, "orders"), fmt.Sprint(1<<51), "inf", "WITHSCORES").([]any)
	for i := 1; i < len(all); i += 2 {
		if score, err := strconv.ParseFloat(fmt.Sprint(all[i]), 64); err == nil && score != float64(int64(score)) {
			n++
		}
	}
	return n
}

func (w *fairWorld) acquire(c *redlatch.Client) *redlatch.Hold {
	w.Helper()
	h, err := c.FairLock("orders").Acquire(bg)
	if err != nil {
		w.Fatal(err)
	}
	return h
}

func (w *fairWorld) release(h *redlatch.Hold) {
	w.Helper()
	if err := h.Release(bg); err != nil {
		w.Fatal(err)
	}
}

// The connections of a process that is killed are closed by its system. A busy
// machine may make anybody late, but who waits for the killed ones is late each
// time.
func TestAKilledWaiterStopsNobodyOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		for _, a := range drivers.Adapters {
			t.Run(a.Name, func(t *testing.T) {
				took := time.Duration(math.MaxInt64)
				for tries := 0; took > 2500*time.Millisecond && tries < 3; tries++ { // and not after six seconds
					took = afterTheKilled(t, s, a)
				}
				if took > 2500*time.Millisecond {
					t.Errorf("the next one got the lock after %v", took)
				}
			})
		}
	})
}

// afterTheKilled returns how long the next one waits for the lock that was
// released when those before it had been killed.
func afterTheKilled(t *testing.T, s *testserver.Server, a drivers.Adapter) time.Duration {
	w := fairWorld{t, s}
	p := faultnet.New(s.Dial)
	defer p.Close()
	addr, err := p.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	killed := locktest.ClientOf(t, a.Open(t, drivers.Single(addr)), redlatch.Config{CloseTimeout: time.Millisecond})
	c := locktest.ClientOf(t, a.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
	h := w.acquire(c)
	for range 3 {
		go func() { _, _ = killed.FairLock("orders").Acquire(ctx) }()
	}
	w.counted(3)
	next := locktest.Later(func() *redlatch.Hold { return w.acquire(c) })
	w.counted(4)
	p.Close()
	if !locktest.Within(locktest.Generous, func() bool { // the server notices at once, but not in no time
		channels, _ := s.MustDo("PUBSUB", "CHANNELS", "redisson_lock__channel:{orders}:*").([]any)
		return len(channels) == 1
	}) {
		t.Fatal("the server does not notice that connections were closed")
	}
	start := time.Now()
	w.release(h)
	h = <-next
	took := time.Since(start)
	t.Logf("the next one had the lock after %v", took)
	w.release(h)
	s.MustDo("FLUSHALL")
	return took
}

// A hand-off asks once who listens, and does nothing else that it did not do
// before. On a busy machine a renewal or a poll comes in between and adds its own
// commands, so that the one with the fewest counts.
func TestAFairHandOffAsksOnceWhoListens(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		w := fairWorld{t, s}
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		h := w.acquire(c)
		const want = 14
		var counts map[string]int
		fewest := math.MaxInt
		for tries := 0; fewest > want && tries < 20; tries++ {
			next := locktest.Later(func() *redlatch.Hold { return w.acquire(c) })
			w.counted(1)
			s.MustDo("CONFIG", "RESETSTAT")
			w.release(h)
			h = <-next
			if commands, all := executed(s); all < fewest {
				counts, fewest = commands, all
			}
		}
		if fewest != want || counts["pubsub|numsub"]+counts["pubsub"] != 1 {
			t.Errorf("a hand-off takes %d commands, want %d: %v", fewest, want, counts)
		}
		w.release(h)
	})
}

// executed returns how often a server has executed each command that scripts send,
// and all of these.
func executed(s *testserver.Server) (counts map[string]int, all int) {
	counts = map[string]int{}
	for _, m := range regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`).FindAllStringSubmatch(fmt.Sprint(s.MustDo("INFO", "commandstats")), -1) {
		n, _ := strconv.Atoi(m[2])
		switch m[1] {
		case "config", "config|resetstat", "subscribe", "unsubscribe", "info", "client|setinfo", "hello", "eval", "evalsha":
		default:
			counts[m[1]] += n
			all += n
		}
	}
	return counts, all
}
