package redlatch_test

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
)

// Requests that count, told of a latch: a count-down that is executed twice, or
// late, shows in its count.

// A counting client notes the numbers of its requests in the order in which they
// are sent. fate decides what becomes of an attempt: of which script, and the how
// manyth it is.
type counting struct {
	*redlatch.Client
	*tap

	mu      sync.Mutex
	numbers []string
	tries   int
	held    []func() // attempts that come late
}

type fate int

const (
	good      fate = iota
	replyLost      // executed, and nobody learns it
	notSent        // nobody learns that either
	late           // given up, and executed by arrive
)

// of lets an attempt meet its fate.
func (f fate) of(next func() (driver.Reply, error)) (driver.Reply, error) {
	switch f {
	case replyLost:
		_, _ = next()
	case good:
		return next()
	}
	return driver.Reply{}, errTapUnknown
}

func (w *world) counting(cfg redlatch.Config, decide func(s string, try int) fate) *counting {
	w.Helper()
	c := &counting{tap: &tap{}}
	c.hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if !strings.HasPrefix(s, "latch.") || s == "latch.count" {
			return next()
		}
		c.mu.Lock()
		number := strings.TrimPrefix(args[0], "-") // if it is sent again
		if n := len(c.numbers); n == 0 || c.numbers[n-1] != number {
			c.numbers = append(c.numbers, number)
		}
		c.tries++
		what := decide(s, c.tries)
		if what == late {
			c.held = append(c.held, func() { _, _ = next() })
		}
		c.mu.Unlock()
		return what.of(next)
	}
	c.Client = w.tapped(cfg, c.tap)
	return c
}

// arrive lets what was held back come to the server.
func (c *counting) arrive() {
	c.mu.Lock()
	held := c.held
	c.held = nil
	c.mu.Unlock()
	for _, f := range held {
		f()
	}
}

func (c *counting) sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.numbers)
}

func (w *world) latch(l *redlatch.CountDownLatch, n int) *redlatch.CountDownLatch {
	w.Helper()
	if set, err := l.TrySetCount(bg, n); !set || err != nil {
		w.Fatalf("TrySetCount(%d): %v, %v", n, set, err)
	}
	return l
}

func (w *world) down(l *redlatch.CountDownLatch) {
	w.Helper()
	if err := l.CountDown(bg); err != nil {
		w.Fatalf("CountDown: %v", err)
	}
}

func (w *world) wantCount(l *redlatch.CountDownLatch, want int) {
	w.Helper()
	if n, err := l.Count(bg); n != want || err != nil {
		w.Fatalf("count %d, %v; want %d", n, err, want)
	}
}

func TestAnAnswerThatGotLostIsGivenAgain(t *testing.T) {
	for losses := 1; losses <= 3; losses++ {
		t.Run(fmt.Sprint(losses), func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				var lose atomic.Int64
				c := w.counting(redlatch.Config{}, func(string, int) fate {
					if lose.Add(-1) >= 0 {
						return replyLost
					}
					return good
				})
				l := c.CountDownLatch("orders")
				published := w.eavesdrop()
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
					w.wantCount(l, step.count)
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
			inFakeTime(t, func(w *world) {
				var first atomic.Bool
				first.Store(true)
				c := w.counting(redlatch.Config{}, func(s string, _ int) fate {
					if s == script && first.CompareAndSwap(true, false) {
						return late
					}
					return good
				})
				l := w.latch(c.CountDownLatch("orders"), 5)
				w.down(l)
				_, _ = l.Delete(bg)
				if script != "latch.set" {
					w.latch(l, 3)
				}
				before, _ := l.Count(bg)
				time.Sleep(5 * time.Minute)
				published := w.eavesdrop()
				c.arrive()
				w.wantCount(l, before)
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
	inFakeTime(t, func(w *world) {
		var slow atomic.Bool
		var order []string
		d := &tap{}
		d.hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s != "latch.down" {
				return next()
			}
			if slow.CompareAndSwap(true, false) {
				time.Sleep(2 * time.Second) // on its way to the server
			}
			order = append(order, args[0])
			return next()
		}
		c := w.tapped(redlatch.Config{}, d)
		l := w.latch(c.CountDownLatch("orders"), 5)
		slow.Store(true)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		start := time.Now()
		w.wantErr(l.CountDown(ctx), context.DeadlineExceeded)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the caller had to wait for %v", took)
		}
		w.down(l)
		if len(order) != 2 || order[0] >= order[1] {
			t.Errorf("executed in the order %q", order)
		}
		w.wantCount(l, 3)

		w.wantErr(l.CountDown(ctx), context.DeadlineExceeded) // never sent
		synctest.Wait()
		w.wantCount(l, 3)
	})
}

func TestACountOutlivesAnOutage(t *testing.T) {
	for _, executed := range []bool{false, true} {
		t.Run(fmt.Sprint("executed ", executed), func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				var down, once atomic.Bool
				c := w.counting(redlatch.Config{}, func(string, int) fate {
					switch {
					case once.CompareAndSwap(true, false):
						return replyLost
					case down.Load():
						return notSent
					}
					return good
				})
				l := w.latch(c.CountDownLatch("orders"), 5)
				once.Store(executed)
				down.Store(true)
				start := time.Now()
				err := l.CountDown(bg)
				w.wantErr(err, redlatch.ErrUnavailable)
				if took := time.Since(start); took < 10*time.Second || took > 12*time.Second || !redlatch.IsRetryable(err) {
					t.Errorf("after %v: %v", took, err)
				}
				err = l.CountDown(bg) // waits for the first, and is never sent
				w.wantErr(err, redlatch.ErrUnavailable)
				ctx, cancel := context.WithTimeout(bg, time.Second)
				defer cancel()
				w.wantErr(l.CountDown(ctx), context.DeadlineExceeded)
				time.Sleep(time.Minute)
				down.Store(false)
				time.Sleep(2 * time.Second)
				w.wantCount(l, 4)
				w.down(l)
				w.wantCount(l, 3)
				if got := c.sent(); len(got) != 3 {
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
			inFakeTime(t, func(w *world) {
				var down, once atomic.Bool
				c := w.counting(redlatch.Config{OutageTimeout: outage}, func(string, int) fate {
					switch {
					case once.CompareAndSwap(true, false):
						return replyLost
					case down.Load():
						return notSent
					}
					return good
				})
				l := w.latch(c.CountDownLatch("orders"), 5)
				once.Store(true)
				down.Store(true)
				w.wantErr(l.CountDown(bg), redlatch.ErrUnavailable)
				time.Sleep(11 * time.Minute)
				down.Store(false)
				time.Sleep(time.Minute)
				w.wantCount(l, 4)
				w.down(l)
				w.wantCount(l, 3)
			})
		})
	}
}

// A request that has never come to the server is sent once more under a new number
// as soon as the server says so; the first one changes nothing if it comes at last.
func TestARequestThatWasNeverExecutedIsExecutedOnce(t *testing.T) {
	for _, arrives := range []string{"before the new one", "after it"} {
		t.Run(arrives, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				var c *counting
				c = w.counting(redlatch.Config{}, func(_ string, try int) fate {
					switch {
					case try == 1:
						return late
					case try == 3 && arrives == "before the new one":
						c.held[0]()
					}
					return good
				})
				w.latch(w.client(redlatch.Config{}).CountDownLatch("orders"), 5) // in another session
				l := c.CountDownLatch("orders")
				w.down(l)
				w.wantCount(l, 4)
				c.arrive()
				w.wantCount(l, 4)
				w.down(l)
				w.wantCount(l, 3)
				if got := c.sent(); len(got) != 3 {
					t.Errorf("sent are the numbers %q", got)
				}
			})
		})
	}
}

// An attempt that comes to a server that was stopped for so long that the session
// has ended meanwhile is not executed, though it was sent in time.
func TestAnAttemptThatOutlivesItsSessionCountsNothing(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var stopped, executed atomic.Bool
		c := w.counting(redlatch.Config{}, func(string, int) fate {
			switch {
			case !stopped.Load():
				return good
			case executed.CompareAndSwap(false, true):
				return replyLost
			}
			return late
		})
		l := w.latch(c.CountDownLatch("orders"), 5)
		stopped.Store(true)
		w.wantErr(l.CountDown(bg), redlatch.ErrUnavailable)
		time.Sleep(11 * time.Minute)
		c.arrive()
		stopped.Store(false)
		time.Sleep(time.Minute)
		w.wantCount(l, 4)
		w.down(l)
		w.wantCount(l, 3)
	})
}

// A server that has lost the session cannot say whether a request was executed. It
// is not repeated, and its caller learns that.
func TestARequestThatIsForgottenIsNotRepeated(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var forget []int // before which attempts
		var lose int     // the answer to which
		c := w.counting(redlatch.Config{}, func(_ string, try int) fate {
			if slices.Contains(forget, try) {
				w.forget()
			}
			time.Sleep(time.Millisecond)
			if try == lose {
				return replyLost
			}
			return good
		})
		l := w.latch(c.CountDownLatch("orders"), 5)
		forget = []int{2, 4}
		lose = 3
		first := later(func() error { return l.CountDown(bg) }) // never sent before, so it begins a session
		synctest.Wait()
		second := later(func() error { return l.CountDown(bg) })
		w.no(<-first)
		err := <-second
		w.wantErr(err, redlatch.ErrUnavailable)
		if !strings.Contains(err.Error(), "forgotten") {
			t.Errorf("got %v", err)
		}
		w.wantCount(l, 3)
		w.down(l)
		w.wantCount(l, 2)
	})
}

// forget has the server lose all sessions.
func (w *world) forget() {
	for _, key := range w.server.Keys() {
		if strings.HasPrefix(key, wire.Sessions) {
			w.server.Del(key)
		}
	}
}

// Callers that count down at the same time share requests. Each counts once,
// whatever replies are lost; but for those who leave before theirs is sent.
func TestCallersThatCountDownTogetherShareRequests(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.counting(redlatch.Config{}, func(_ string, try int) fate {
			time.Sleep(time.Millisecond)
			if try%2 == 0 {
				return replyLost
			}
			return good
		})
		l := w.latch(c.CountDownLatch("orders"), 1000)
		ctx, cancel := context.WithCancel(bg)
		var stay, leave []<-chan error
		stay = append(stay, later(func() error { return l.CountDown(bg) }))
		synctest.Wait() // that is under way, the others stand in line
		for range 300 {
			stay = append(stay, later(func() error { return l.CountDown(bg) }))
			leave = append(leave, later(func() error { return l.CountDown(ctx) }))
		}
		synctest.Wait()
		cancel()
		for _, left := range leave {
			w.wantErr(<-left, context.Canceled)
		}
		for _, counted := range stay {
			w.no(<-counted)
		}
		w.wantCount(l, 1000-301)
		if got := c.sent(); len(got) != 3 {
			t.Errorf("sent are the numbers %q", got)
		}
	})
}

// Many that wait for their turn, on a slow way to a server that lives, are no
// outage.
func TestWaitingForOthersIsNoOutage(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(250 * time.Millisecond)
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		l := w.latch(c.CountDownLatch("orders"), 200)
		var wg sync.WaitGroup
		for range 150 {
			wg.Go(func() {
				if err := l.CountDown(bg); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		w.wantCount(l, 50)
	})
}

// What is under way when the client is closed is brought to its end, what waits
// is not sent, and every caller is told at once.
func TestCloseWhileSomethingIsBeingCounted(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var losses atomic.Int64
		c := w.counting(redlatch.Config{}, func(string, int) fate {
			if losses.Add(-1) >= 0 {
				return replyLost
			}
			return good
		})
		other := w.client(redlatch.Config{})
		l := w.latch(c.CountDownLatch("orders"), 5)
		losses.Store(5)
		var waits []<-chan error
		for range 3 {
			waits = append(waits, later(func() error { return l.CountDown(bg) }))
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
		w.wantErr(l.CountDown(bg), redlatch.ErrClosed)
		w.wantCount(other.CountDownLatch("orders"), 4)
		if got := c.sent(); len(got) != 2 {
			t.Errorf("sent are the numbers %q", got)
		}
		for _, key := range w.server.Keys() {
			if ttl := w.server.TTL(key); strings.HasPrefix(key, "redlatch") && (ttl <= 0 || ttl > 10*time.Minute) {
				t.Errorf("%s is left for %v", key, ttl)
			}
		}
	})
}

// A server that refuses a request has said all there is to say.
func TestARefusedCountIsNotSentAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.counting(redlatch.Config{}, func(string, int) fate { return good })
		w.server.HSet("orders", "a", "1")
		l := c.CountDownLatch("orders")
		for range 2 {
			var re *driver.RunError
			if err := l.CountDown(bg); !errors.As(err, &re) || re.Code != "WRONGTYPE" {
				t.Errorf("got %v", err)
			}
		}
		if got := c.sent(); len(got) != 2 {
			t.Errorf("sent are the numbers %q", got)
		}
	})
}
