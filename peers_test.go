package redlatch_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	goredisclient "github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/goredis"
	"github.com/redlatch/redlatch/rueidis"
)

// What users of other lock libraries have complained about, where no other
// test is about it. The numbers are those of public issues.

// A counter counts a client's requests by script.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) hook(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	c.mu.Lock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[s]++
	c.mu.Unlock()
	return next()
}

func (c *counter) of(s string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[s]
}

// redisson #4178: what was locked next passed for a re-entry.
func TestAReleaseOfUnknownOutcomeIsNeverReentered(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var down atomic.Bool
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if down.Load() {
				return driver.Reply{}, errTapUnknown // it was never executed
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		h := w.acquire(c.Lock("orders"), bg)
		down.Store(true)
		w.wantErr(h.Release(bg), redlatch.ErrUnavailable)
		down.Store(false)
		start := time.Now()
		next := w.acquire(c.Lock("orders"), bg)
		if next.Owner() == h.Owner() || w.count(next) != "1" {
			t.Errorf("owner %s after %s, count %s", next.Owner(), h.Owner(), w.count(next))
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("the client waited %v for itself", d)
		}
		time.Sleep(5 * time.Minute) // the late releases of the old id
		if got := w.count(next); next.Err() != nil || got != "1" {
			t.Errorf("%v, count %s", next.Err(), got)
		}
		w.release(next)
	})
}

// A take that arrives when its hold is over takes the lock for nobody.
func TestALateTakeBlocksNobodyForLong(t *testing.T) {
	for name, limit := range map[string]time.Duration{"its own client": 10 * time.Millisecond, "another client": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				var n atomic.Int64
				var late func()
				d := &tap{}
				d.hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == "lock.take" && n.Add(1) == 1 {
						late = d.again(s, args)
						return driver.Reply{}, errTapUnknown
					}
					return next()
				}
				c := w.tapped(redlatch.Config{}, d)
				w.release(w.acquire(c.Lock("orders"), bg))
				late()
				if !w.server.Exists("orders") {
					t.Fatal("the late take took nothing: nothing is tested")
				}
				if name != "its own client" {
					c = w.client(redlatch.Config{})
				}
				start := time.Now()
				h := w.acquire(c.Lock("orders"), bg)
				if d := time.Since(start); d > limit {
					t.Errorf("the lock was blocked for %v", d)
				}
				w.release(h)
			})
		})
	}
}

// redisson #7238: the whole script went over the wire each time.
func TestScriptsAreSentOnce(t *testing.T) {
	inFakeTime(t, func(w *world) {
		p := w.proxy()
		p.Record(true)
		c := w.clientWith(w.driverBy(p.Dial), redlatch.Config{})
		for range 50 {
			outer := w.acquire(c.Lock("orders"), bg)
			w.release(w.acquire(c.Lock("orders"), outer.Context()))
			w.release(outer)
		}
		bodies, hashes := map[string]int{}, 0
		for _, r := range p.Requests() {
			switch r.Args[0] {
			case "EVAL":
				bodies[r.Script()]++
			case "EVALSHA":
				hashes++
			}
		}
		if hashes < 150 || len(bodies) != 3 {
			t.Errorf("%d requests by hash, of %d scripts: not what this test is about", hashes, len(bodies))
		}
		for sha, n := range bodies {
			if n > 1 {
				t.Errorf("the body of %s was sent %d times", sha, n)
			}
		}
	})
}

// subscribesSlowly is a driver that does something before it subscribes.
type subscribesSlowly struct {
	driver.Redis
	before func(channel string)
}

func (d *subscribesSlowly) Subscribe(ch string, sharded bool, h func(driver.Notice)) func() {
	d.before(ch)
	return d.Redis.Subscribe(ch, sharded, h)
}

// redisson #5761, #1763, #763: a release between the first try and the
// subscription was missed, and the waiter slept on beside a free lock.
func TestAReleaseBeforeTheSubscriptionIsNotMissed(t *testing.T) {
	inFakeTime(t, func(w *world) {
		other := w.client(redlatch.Config{})
		h := w.acquire(other.Lock("orders"), bg)
		var once sync.Once
		d := &subscribesSlowly{before: func(channel string) {
			if channel == "redisson_lock__channel:{orders}" {
				once.Do(func() { w.release(h) })
			}
		}}
		d.Redis = w.driver()
		c := w.clientWith(d, redlatch.Config{})
		start := time.Now()
		next := w.acquire(c.Lock("orders"), bg)
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("the waiter slept for %v beside a free lock", d)
		}
		w.release(next)
	})
}

// rueidislock #372, #602: a loop without a pause.
func TestAnOutageIsNotHammered(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(string, []string, func() (driver.Reply, error)) (driver.Reply, error) {
			n.Add(1)
			return driver.Reply{}, &driver.RunError{Outcome: driver.NotExecuted, Code: "LOADING", Err: errors.New("LOADING")}
		}}
		c := w.tapped(redlatch.Config{OutageTimeout: time.Hour}, d)
		ctx, cancel := context.WithTimeout(bg, 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := c.Lock("orders").Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := n.Load(); got < 300 || got > 1300 {
			t.Errorf("%d requests in ten minutes of an outage, want one or two a second", got)
		}
	})
}

// consul #7523: each release woke every waiter.
func TestAReleaseWakesOneWaiterOfAProcess(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var count counter
		c, other := w.tapped(redlatch.Config{}, &tap{hook: count.hook}), w.client(redlatch.Config{})
		h := w.acquire(other.Lock("orders"), bg)
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		got := make(chan *redlatch.Hold, 100)
		for range 100 {
			wg.Go(func() {
				if h, err := c.Lock("orders").Acquire(ctx); err == nil {
					got <- h
				}
			})
		}
		synctest.Wait()
		if n := count.of("lock.take"); n > 2 {
			t.Errorf("100 waiters asked %d times, want twice: before and after they subscribed", n)
		}
		before := count.of("lock.take")
		time.Sleep(10 * time.Minute)
		if n := count.of("lock.take") - before; n > 400 {
			t.Errorf("they asked %d times in ten minutes, want once in about 2 s", n)
		}
		before = count.of("lock.take")
		w.release(h)
		first := <-got
		synctest.Wait()
		if n := count.of("lock.take") - before; n != 1 {
			t.Errorf("the release woke %d waiters", n)
		}
		cancel()
		wg.Wait()
		w.release(first)
	})
}

// rueidislock #630, redsync #83: a time-out inside that nobody had asked for.
func TestASlowLinkNeedsNoSettings(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(1200 * time.Millisecond)
			defer time.Sleep(1200 * time.Millisecond)
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		outer := w.acquire(c.Lock("orders"), bg)
		inner := w.acquire(c.Lock("orders"), outer.Context())
		time.Sleep(5 * time.Minute)
		if err := inner.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		w.release(inner)
		w.release(outer)
	})
}

// redislock #21, #28, #74: without a deadline the wait was as long as the lease.
func TestAWaitWithoutADeadlineHasNoCap(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(other.Lock("orders"), bg)
		var got [3]<-chan *redlatch.Hold // the head of the queue, and some behind it
		for i := range got {
			got[i] = later(func() *redlatch.Hold { return w.acquire(c.Lock("orders"), bg, redlatch.Lease(time.Second)) })
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		w.release(h)
		for _, next := range got {
			w.release(<-next)
		}
	})
}

// portalocker #136: a lost lock was a signal to its waiters.
func TestAWaiterHearsNothingOfAnothersLoss(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg)
		waiting := later(func() *redlatch.Hold { return w.acquire(c.Lock("orders"), bg) })
		synctest.Wait()
		w.server.Del("orders")
		<-h.Context().Done()
		w.wantErr(h.Release(bg), redlatch.ErrLost)
		w.release(<-waiting)
	})
}

// redisson #2734: a server without scripting.
func TestAServerThatRefusesScriptsIsSaidAtOnce(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		start := time.Now()
		for _, reply := range []string{
			"ERR unknown command 'EVALSHA', with args beginning with:",
			"NOPERM User default has no permissions to run the 'evalsha' command",
		} {
			w.server.SetError(reply)
			_, err := c.Lock("orders").Acquire(bg)
			var re *driver.RunError
			if !errors.As(err, &re) || re.Outcome != driver.Refused || errors.Is(err, redlatch.ErrUnavailable) || redlatch.IsRetryable(err) {
				t.Errorf("%s: %v, want a refusal", reply, err)
			}
		}
		w.server.SetError("")
		if d := time.Since(start); d != 0 {
			t.Errorf("told after %v", d)
		}
	})
}

// rueidislock #244, #261: where RESP3 was missing there was polling, or nothing.
func TestRESP2IsEnough(t *testing.T) {
	for name, connect := range map[string]func(w *world) driver.Redis{
		"goredis": func(w *world) driver.Redis {
			rdb := goredisclient.NewClient(&goredisclient.Options{
				Addr: "127.0.0.1:1", Protocol: 2, DisableIdentity: true,
				Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dial(ctx) },
			})
			w.Cleanup(func() { _ = rdb.Close() })
			return goredis.Use(rdb)
		},
		"rueidis": func(w *world) driver.Redis {
			p := w.proxy()
			d, err := rueidis.New(rueidisclient.ClientOption{
				InitAddress: []string{"embedded"}, ForceSingleClient: true, AlwaysRESP2: true, DisableCache: true,
				DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
					return p.Dial(ctx)
				},
			})
			if err != nil {
				w.Fatal(err)
			}
			w.Cleanup(d.Close)
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				holder, waiter := w.clientWith(connect(w), redlatch.Config{}), w.clientWith(connect(w), redlatch.Config{})
				for range 20 {
					h := w.acquire(holder.Lock("orders"), bg)
					waiting := later(func() *redlatch.Hold { return w.acquire(waiter.Lock("orders"), bg) })
					time.Sleep(100 * time.Millisecond) // it has looked, and subscribed, and looked
					w.release(h)
					start := time.Now()
					next := <-waiting
					if d := time.Since(start); d > 10*time.Millisecond {
						t.Fatalf("woken after %v", d)
					}
					w.release(next)
				}
			})
		})
	}
}
