package synchronizers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func newCounting(w *locktest.World, cfg redlatch.Config, decide func(s string, try int) locktest.Fate) *locktest.Counting {
	w.Helper()
	c := &locktest.Counting{Tap: &locktest.Tap{}}
	c.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if !strings.HasPrefix(s, "latch.") || s == "latch.count" {
			return next()
		}
		c.Mu.Lock()
		number := strings.TrimPrefix(args[0], "-") // if it is sent again
		if n := len(c.Numbers); n == 0 || c.Numbers[n-1] != number {
			c.Numbers = append(c.Numbers, number)
		}
		c.Tries++
		what := decide(s, c.Tries)
		if what == locktest.Late {
			c.Held = append(c.Held, func() { _, _ = next() })
		}
		c.Mu.Unlock()
		return what.Of(next)
	}
	c.Client = w.Tapped(cfg, c.Tap)
	return c
}

func countDown(w *locktest.World, l *latch.Latch) {
	w.Helper()
	if err := l.CountDown(bg); err != nil {
		w.Fatalf("CountDown: %v", err)
	}
}

func wantCount(w *locktest.World, l *latch.Latch, want int) {
	w.Helper()
	if n, err := l.Count(bg); n != want || err != nil {
		w.Fatalf("count %d, %v; want %d", n, err, want)
	}
}

func TestALostReplyIsGivenAgain(t *testing.T) {
	for losses := 1; losses <= 3; losses++ {
		t.Run(fmt.Sprint(losses), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var lose atomic.Int64
				c := newCounting(w, redlatch.Config{}, func(string, int) locktest.Fate {
					if lose.Add(-1) >= 0 {
						return locktest.ReplyLost
					}
					return locktest.Good
				})
				l := latch.New(c.Client, "orders")
				published := w.Eavesdrop()
				for _, step := range []struct {
					name  string
					do    func() (bool, error)
					want  bool
					count int
					says  string
				}{
					{"set", func() (bool, error) { return l.TrySetCount(bg, 3) }, true, 3, "1"},
					{"set again", func() (bool, error) { return l.TrySetCount(bg, 2) }, false, 3, ""},
					{"down", func() (bool, error) { return false, l.CountDown(bg) }, false, 2, ""},
					{"down to 1", func() (bool, error) { return false, l.CountDown(bg) }, false, 1, ""},
					{"down to 0", func() (bool, error) { return false, l.CountDown(bg) }, false, 0, "0"},
					{"down from 0", func() (bool, error) { return false, l.CountDown(bg) }, false, 0, ""},
					{"set anew", func() (bool, error) { return l.TrySetCount(bg, 1) }, true, 1, "1"},
					{"delete", func() (bool, error) { return l.Delete(bg) }, true, 0, "0"},
					{"delete again", func() (bool, error) { return l.Delete(bg) }, false, 0, ""},
				} {
					lose.Store(int64(losses))
					got, err := step.do()
					if got != step.want || err != nil {
						t.Errorf("%s: %v, %v; want %v", step.name, got, err, step.want)
					}
					wantCount(w, l, step.count)
					if got := strings.TrimPrefix(strings.Join(published(), ","), "redisson_countdownlatch__channel__{orders} "); got != step.says {
						t.Errorf("%s: published %q, want %q", step.name, got, step.says)
					}
				}
			})
		})
	}
}

// A request that is executed long after it was given up, in a life of the latch
// that it knows nothing of.
func TestARequestThatComesLateCountsNothing(t *testing.T) {
	for _, script := range []string{"latch.set", "latch.down", "latch.delete"} {
		t.Run(script, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var first atomic.Bool
				first.Store(true)
				c := newCounting(w, redlatch.Config{}, func(s string, _ int) locktest.Fate {
					if s == script && first.CompareAndSwap(true, false) {
						return locktest.Late
					}
					return locktest.Good
				})
				l := w.Latch(latch.New(c.Client, "orders"), 5)
				countDown(w, l)
				_, _ = l.Delete(bg)
				if script != "latch.set" {
					w.Latch(l, 3)
				}
				before, _ := l.Count(bg)
				time.Sleep(5 * time.Minute)
				published := w.Eavesdrop()
				c.Arrive()
				wantCount(w, l, before)
				if got := published(); len(got) > 0 {
					t.Errorf("it has published %q", got)
				}
			})
		})
	}
}

// The next request waits until it is known what became of the one before, also if
// that one's caller has left, or the first request could overtake the second.
func TestACallerThatLeavesIsFollowedNotOvertaken(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var slow atomic.Bool
		var order []string
		d := &locktest.Tap{}
		d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s != "latch.down" {
				return next()
			}
			if slow.CompareAndSwap(true, false) {
				time.Sleep(2 * time.Second) // on its way to the server
			}
			order = append(order, args[0])
			return next()
		}
		c := w.Tapped(redlatch.Config{}, d)
		l := w.Latch(latch.New(c, "orders"), 5)
		slow.Store(true)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		start := time.Now()
		w.WantErr(l.CountDown(ctx), context.DeadlineExceeded)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the caller had to wait for %v", took)
		}
		countDown(w, l)
		if len(order) != 2 || order[0] >= order[1] {
			t.Errorf("executed in the order %q", order)
		}
		wantCount(w, l, 3)

		w.WantErr(l.CountDown(ctx), context.DeadlineExceeded) // never sent
		synctest.Wait()
		wantCount(w, l, 3)
	})
}

func TestACountOutlivesAnOutage(t *testing.T) {
	for _, executed := range []bool{false, true} {
		t.Run(fmt.Sprint("executed ", executed), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var down, once atomic.Bool
				c := newCounting(w, redlatch.Config{}, func(string, int) locktest.Fate {
					switch {
					case once.CompareAndSwap(true, false):
						return locktest.ReplyLost
					case down.Load():
						return locktest.NotSent
					}
					return locktest.Good
				})
				l := w.Latch(latch.New(c.Client, "orders"), 5)
				once.Store(executed)
				down.Store(true)
				start := time.Now()
				err := l.CountDown(bg)
				w.WantErr(err, redlatch.ErrUnavailable)
				if took := time.Since(start); took < 10*time.Second || took > 12*time.Second || !redlatch.IsRetryable(err) {
					t.Errorf("after %v: %v", took, err)
				}
				err = l.CountDown(bg) // waits for the first, and is never sent
				w.WantErr(err, redlatch.ErrUnavailable)
				ctx, cancel := context.WithTimeout(bg, time.Second)
				defer cancel()
				w.WantErr(l.CountDown(ctx), context.DeadlineExceeded)
				time.Sleep(time.Minute)
				down.Store(false)
				time.Sleep(2 * time.Second)
				wantCount(w, l, 4)
				countDown(w, l)
				wantCount(w, l, 3)
				if got := c.Sent(); len(got) != 3 {
					t.Errorf("sent are the numbers %q", got)
				}
			})
		})
	}
}

// Redis remembers a session for ten minutes after its last request. One that is
// sent again after that would be executed again.
func TestARequestIsNotSentAgainWhenRedisMayHaveForgottenIt(t *testing.T) {
	for _, outage := range []time.Duration{10 * time.Second, time.Hour} {
		t.Run(fmt.Sprint(outage), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var down, once atomic.Bool
				c := newCounting(w, redlatch.Config{OutageTimeout: outage}, func(string, int) locktest.Fate {
					switch {
					case once.CompareAndSwap(true, false):
						return locktest.ReplyLost
					case down.Load():
						return locktest.NotSent
					}
					return locktest.Good
				})
				l := w.Latch(latch.New(c.Client, "orders"), 5)
				once.Store(true)
				down.Store(true)
				w.WantErr(l.CountDown(bg), redlatch.ErrUnavailable)
				time.Sleep(11 * time.Minute)
				down.Store(false)
				time.Sleep(time.Minute)
				wantCount(w, l, 4)
				countDown(w, l)
				wantCount(w, l, 3)
			})
		})
	}
}

// A request that has never come to the server is sent once more under a new number
// as soon as the server says so; the first one changes nothing if it comes at
// last.
func TestARequestThatWasNeverExecutedIsExecutedOnce(t *testing.T) {
	for _, arrives := range []string{"before the new one", "after it"} {
		t.Run(arrives, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var c *locktest.Counting
				c = newCounting(w, redlatch.Config{}, func(_ string, try int) locktest.Fate {
					switch {
					case try == 1:
						return locktest.Late
					case try == 3 && arrives == "before the new one":
						c.Held[0]()
					}
					return locktest.Good
				})
				w.Latch(latch.New(w.Client(redlatch.Config{}), "orders"), 5) // in another session
				l := latch.New(c.Client, "orders")
				countDown(w, l)
				wantCount(w, l, 4)
				c.Arrive()
				wantCount(w, l, 4)
				countDown(w, l)
				wantCount(w, l, 3)
				if got := c.Sent(); len(got) != 3 {
					t.Errorf("sent are the numbers %q", got)
				}
			})
		})
	}
}

// An attempt that comes to a server that was stopped for so long that the session
// has ended meanwhile is not executed, though it was sent in time.
func TestAnAttemptThatOutlivesItsSessionCountsNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var stopped, executed atomic.Bool
		c := newCounting(w, redlatch.Config{}, func(string, int) locktest.Fate {
			switch {
			case !stopped.Load():
				return locktest.Good
			case executed.CompareAndSwap(false, true):
				return locktest.ReplyLost
			}
			return locktest.Late
		})
		l := w.Latch(latch.New(c.Client, "orders"), 5)
		stopped.Store(true)
		w.WantErr(l.CountDown(bg), redlatch.ErrUnavailable)
		time.Sleep(11 * time.Minute)
		c.Arrive()
		stopped.Store(false)
		time.Sleep(time.Minute)
		wantCount(w, l, 4)
		countDown(w, l)
		wantCount(w, l, 3)
	})
}

// A server that has lost the session cannot say whether a request was executed. It
// is not repeated, and its caller learns that.
func TestARequestThatIsForgottenIsNotRepeated(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var forget []int // before which attempts
		var lose int     // the answer to which
		c := newCounting(w, redlatch.Config{}, func(_ string, try int) locktest.Fate {
			if slices.Contains(forget, try) {
				forgetAll(w)
			}
			time.Sleep(time.Millisecond)
			if try == lose {
				return locktest.ReplyLost
			}
			return locktest.Good
		})
		l := w.Latch(latch.New(c.Client, "orders"), 5)
		forget = []int{2, 4}
		lose = 3
		first := locktest.Later(func() error { return l.CountDown(bg) }) // never sent before, so it begins a session
		synctest.Wait()
		second := locktest.Later(func() error { return l.CountDown(bg) })
		w.OK(<-first)
		err := <-second
		w.WantErr(err, redlatch.ErrUnavailable)
		if !strings.Contains(err.Error(), "forgotten") {
			t.Errorf("got %v", err)
		}
		wantCount(w, l, 3)
		countDown(w, l)
		wantCount(w, l, 2)
	})
}

// forgetAll has the server lose all sessions.
func forgetAll(w *locktest.World) {
	for _, key := range w.Keys() {
		if strings.HasPrefix(key, wire.Sessions) {
			w.Server.Del(key)
		}
	}
}

// Callers that count down at the same time share requests. Each counts once,
// whatever replies are lost; but for those who leave before theirs is sent.
func TestCallersThatCountDownTogetherShareRequests(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := newCounting(w, redlatch.Config{}, func(_ string, try int) locktest.Fate {
			time.Sleep(time.Millisecond)
			if try%2 == 0 {
				return locktest.ReplyLost
			}
			return locktest.Good
		})
		l := w.Latch(latch.New(c.Client, "orders"), 1000)
		ctx, cancel := context.WithCancel(bg)
		var stay, leave []<-chan error
		stay = append(stay, locktest.Later(func() error { return l.CountDown(bg) }))
		synctest.Wait() // that is in flight, the others stand in line
		for range 300 {
			stay = append(stay, locktest.Later(func() error { return l.CountDown(bg) }))
			leave = append(leave, locktest.Later(func() error { return l.CountDown(ctx) }))
		}
		synctest.Wait()
		cancel()
		for _, left := range leave {
			w.WantErr(<-left, context.Canceled)
		}
		for _, counted := range stay {
			w.OK(<-counted)
		}
		wantCount(w, l, 1000-301)
		if got := c.Sent(); len(got) != 3 {
			t.Errorf("sent are the numbers %q", got)
		}
	})
}

// Many that wait for their turn, on a slow way to a server that lives, are no
// outage.
func TestWaitingForOthersIsNoOutage(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(250 * time.Millisecond)
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		l := w.Latch(latch.New(c, "orders"), 200)
		var wg sync.WaitGroup
		for range 150 {
			wg.Go(func() {
				if err := l.CountDown(bg); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantCount(w, l, 50)
	})
}

// What is in flight when the client is closed is brought to its end, what waits
// is not sent, and every caller is told at once.
func TestCloseWhileSomethingIsBeingCounted(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var losses atomic.Int64
		c := newCounting(w, redlatch.Config{}, func(string, int) locktest.Fate {
			if losses.Add(-1) >= 0 {
				return locktest.ReplyLost
			}
			return locktest.Good
		})
		other := w.Client(redlatch.Config{})
		l := w.Latch(latch.New(c.Client, "orders"), 5)
		losses.Store(5)
		var waits []<-chan error
		for range 3 {
			waits = append(waits, locktest.Later(func() error { return l.CountDown(bg) }))
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, x := range waits {
			if err := <-x; !errors.Is(err, redlatch.ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("Close took %v", took)
		}
		w.WantErr(l.CountDown(bg), redlatch.ErrClosed)
		wantCount(w, latch.New(other, "orders"), 4)
		if got := c.Sent(); len(got) != 2 {
			t.Errorf("sent are the numbers %q", got)
		}
		for _, key := range w.Keys() {
			if ttl := w.Server.TTL(key); strings.HasPrefix(key, "redlatch") && (ttl <= 0 || ttl > 10*time.Minute) {
				t.Errorf("%s is left for %v", key, ttl)
			}
		}
	})
}

// A server that refuses a request has said all there is to say.
func TestARefusedCountIsNotSentAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := newCounting(w, redlatch.Config{}, func(string, int) locktest.Fate { return locktest.Good })
		w.Server.HSet("orders", "a", "1")
		l := latch.New(c.Client, "orders")
		for range 2 {
			var re *driver.RunError
			if err := l.CountDown(bg); !errors.As(err, &re) || re.Code != "WRONGTYPE" {
				t.Errorf("got %v", err)
			}
		}
		if got := c.Sent(); len(got) != 2 {
			t.Errorf("sent are the numbers %q", got)
		}
	})
}

// Whether a change is made does not depend on who is faster, its caller that sees
// that its context has ended, or the worker that sends it.
func TestAChangeWhoseContextHasEndedIsNeverSent(t *testing.T) {
	ended, cancel := context.WithCancel(bg)
	cancel()
	rate := ratelimit.Rate{Permits: 5, Interval: time.Second}
	locktest.InFakeTime(t, func(w *locktest.World) {
		var sent atomic.Int64
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			sent.Add(1)
			return next()
		}})
		l, s, p, r := latch.New(c, "latch"), semaphore.New(c, "counted", 0), semaphore.NewExpirable(c, "permits", 0), ratelimit.New(c, "rate", ratelimit.Rate{})
		for range 2000 {
			for name, call := range map[string]func() error{
				"count down":  func() error { return l.CountDown(ended) },
				"add":         func() error { return s.AddPermits(ended, 1) },
				"add permits": func() error { return p.AddPermits(ended, 1) },
				"delete":      func() error { _, err := p.Delete(ended); return err },
				"set a rate":  func() error { return r.SetRate(ended, rate) },
				"give back":   func() error { return r.Release(ended, 1) },
			} {
				if err := call(); !errors.Is(err, context.Canceled) {
					w.Fatalf("%s: %v", name, err)
				}
			}
		}
		locktest.Settled()
		if n := sent.Load(); n > 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}
