package locks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Each release goes through the queue: one for each of many who give up at once
// would cost the server as much as the square of their number.
func TestACrowdThatGivesUpDoesNotLeaveOneByOne(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		const crowd = 10_000
		queue, timeouts, _ := locktest.FairKeys("x")
		length := func() string { return fmt.Sprint(s.MustDo("LLEN", queue), s.MustDo("ZCARD", timeouts)) }
		var releases atomic.Int64
		d := &locktest.Tap{Redis: drivers.Rueidis.Open(t, drivers.Single(s.Addr())), Hook: func(name string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if name == "fairlock.release" {
				releases.Add(1)
			}
			return next()
		}}
		c, other := locktest.ClientOf(t, d, redlatch.Config{}), locktest.ClientOf(t, drivers.Rueidis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		h, err := other.FairLock("x").Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var waiters sync.WaitGroup
		for range crowd {
			waiters.Go(func() {
				if _, err := c.FairLock("x").Acquire(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("Acquire: %v", err)
				}
			})
		}
		if !locktest.Within(locktest.Generous, func() bool { return length() == fmt.Sprint(crowd, crowd) }) {
			t.Fatalf("in the queue: %s", length())
		}
		spent := cpu(s)
		locktest.Commands(t, s)
		cancel()
		waiters.Wait()
		if !locktest.Within(locktest.Generous, func() bool { return length() == "0 0" }) {
			t.Fatalf("in the queue: %s", length())
		}
		n := locktest.Commands(t, s)
		t.Logf("%d requests, %d commands, %.2f s of the server's CPU", releases.Load(), n, cpu(s)-spent)
		if releases.Load() > crowd/20 || n > 120*crowd { // one by one it is 200 to 400 times the crowd; polls count, too: many, if the client is slow
			t.Errorf("%d left the queue by %d requests, which cost %d commands", crowd, releases.Load(), n)
		}
		if err := h.Release(bg); err != nil {
			t.Error(err)
		}
	})
}

// Those who stay stand as if the others had left one by one, whatever replies are
// lost.
func TestWhoLeavesWithOthersTakesHisTimeOffThoseBehind(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		t.Run(fmt.Sprint(lossy), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				const each = 8
				var sent, most atomic.Int64 // requests, and the ids in one of them
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					if s != "fairlock.release" {
						return r, err
					}
					most.Store(max(most.Load(), int64(len(args)-1)))
					time.Sleep(time.Millisecond)
					if n := sent.Add(1); lossy && n%2 == 1 {
						return driver.Reply{}, locktest.ErrReplyLost
					}
					return r, err
				}})
				stays := w.Client(redlatch.Config{})
				h := w.Acquire(bg, stays.FairLock("orders"))
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				var left, stay []<-chan locktest.Outcome
				for range each {
					left = append(left, w.Waiting(ctx, c.FairLock("orders")), w.Waiting(ctx, c.FairLock("orders")))
					stay = append(stay, w.Waiting(bg, stays.FairLock("orders")))
				}
				_, timeouts, _ := locktest.FairKeys("orders")
				was := w.Queue("orders")
				scores, _ := w.Server.SortedSet(timeouts)
				before := maps.Clone(scores) // it is the server's own
				cancel()
				for _, c := range left {
					w.WantErr((<-c).Err, context.Canceled)
				}
				time.Sleep(100 * time.Millisecond)
				now := w.Queue("orders")
				after, _ := w.Server.SortedSet(timeouts)
				if len(now) != each || most.Load() < 2 {
					w.Fatalf("in the queue: %q; at most %d left together", now, most.Load())
				}
				for i, id := range now {
					want := math.Floor(before[was[3*each-1]]) - float64((3*each-1-i)*300_000) // that of the last one, and 16 less, and those behind
					if id != was[3*i+2] || after[id] != want {
						t.Errorf("%d: %s has the score %.0f, want %.0f", i, id, after[id], want)
					}
				}
				w.Release(h)
				for _, c := range stay {
					w.Release(w.Got(c))
				}
				time.Sleep(150 * time.Second) // until the debts are paid
				w.WantNothing()
			})
		})
	}
}

// The lock was given to one of those who leave: it goes on to one who stays.
func TestWhoLeavesWithTheLockAndOthersGivesItOn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var slow atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Late: 50 * time.Millisecond, Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.release" && slow.Load() {
				time.Sleep(5 * time.Millisecond)
			}
			return next()
		}})
		other := w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.FairLock("orders"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var left []<-chan locktest.Outcome
		for range 6 {
			left = append(left, w.Waiting(ctx, c.FairLock("orders")))
		}
		next := w.Waiting(bg, other.FairLock("orders"))
		slow.Store(true)
		w.Release(h) // it is the first one's, who does not know it yet
		cancel()
		for _, c := range left {
			w.WantErr((<-c).Err, context.Canceled)
		}
		w.Release(w.Got(next))
		w.WantNothing()
	})
}

// Whoever may have been put into the queue by a request of unknown outcome leaves
// it again and again; of a crowd that is no more requests than of one.
func TestTheDebtsOfACrowdArePaidTogether(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		const crowd = 200
		var lost atomic.Bool
		var releases atomic.Int64
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "fairlock.release" {
				releases.Add(1)
			}
			r, err := next()
			time.Sleep(time.Millisecond)
			if s == "fairlock.take" && lost.Load() {
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return r, err
		}})
		other := w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.FairLock("orders", redlatch.Lease(time.Hour)))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var left []<-chan locktest.Outcome
		for range crowd {
			left = append(left, w.Waiting(ctx, c.FairLock("orders")))
		}
		lost.Store(true)
		time.Sleep(5 * time.Second) // all have asked
		cancel()
		for _, c := range left {
			w.WantErr((<-c).Err, context.Canceled)
		}
		time.Sleep(150 * time.Second)
		if n := releases.Load(); n > crowd/2 {
			t.Errorf("%d requests for %d who left", n, crowd)
		}
		w.Release(h)
		w.WantNothing()
	})
}

// cpu returns how many seconds a server has worked.
func cpu(s *testserver.Server) (sum float64) {
	info, _ := s.MustDo("INFO", "cpu").(string)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			f, _ := strconv.ParseFloat(value, 64)
			sum += f
		}
	}
	return sum
}
