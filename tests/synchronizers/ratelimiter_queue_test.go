package synchronizers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Goroutines of one process are served in order, also those that want many.
func TestRateLimiterServesAProcessInOrder(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(10, 100*time.Millisecond)
		var wg sync.WaitGroup
		at := make([]time.Time, 300)
		for i := range at {
			wg.Go(func() {
				if err := l.Acquire(bg, 1+9*(i%10/9)); err != nil {
					t.Error(err)
				}
				at[i] = time.Now()
			})
			synctest.Wait()
		}
		wg.Wait()
		for i := 1; i < len(at); i++ {
			if at[i].Before(at[i-1]) {
				t.Fatalf("%d was served %v before %d", i, at[i-1].Sub(at[i]), i-1)
			}
		}
	})
}

// However many wait, they ask as one.
func TestTenThousandWaitForPermitsWithFewRequests(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var requests atomic.Int64
		l := ratelimit.New(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			requests.Add(1)
			time.Sleep(time.Millisecond)
			return next()
		}}), "api", ratelimit.Rate{})
		w.SetRate(l, ratelimit.Rate{Permits: 2500, Interval: time.Second})
		requests.Store(0)
		start := time.Now()
		var wg sync.WaitGroup
		for range 10000 {
			wg.Go(func() {
				if err := l.Acquire(bg, 1); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if d := time.Since(start); d < 3*time.Second || d > 3300*time.Millisecond {
			t.Errorf("took %v", d)
		}
		if n := requests.Load(); n > 10000/256+4*12 {
			t.Errorf("%d requests", n)
		}
		// They wait for an hour, and leave.
		w.SetRate(l, ratelimit.Rate{Permits: 1, Interval: time.Hour})
		w.TakeRate(l, 1)
		requests.Store(0)
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		for range 10000 {
			wg.Go(func() { w.WantErr(l.Acquire(ctx, 1), context.DeadlineExceeded, redlatch.ErrBusy) })
		}
		wg.Wait()
		if n := requests.Load(); n > 60/2*5/4+2 {
			t.Errorf("%d requests in a minute of waiting", n)
		}
	})
}

func TestRateLimiterTryOvertakesNobody(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, time.Minute)
		w.TakeRate(l, 3)
		ctx, cancel := context.WithCancel(bg)
		waiter := locktest.Later(func() error { return l.Acquire(ctx, 5) })
		synctest.Wait()
		time.Sleep(time.Second)
		w.WantBusy(l, 1, 59*time.Second) // though there are two
		err := l.TryAcquire(bg, 1, 0)
		w.WantErr(err, redlatch.ErrBusy)
		// Nor does one that waits, until the one before it leaves.
		other := locktest.Later(func() error { return l.Acquire(bg, 2) })
		synctest.Wait()
		start := time.Now()
		cancel()
		w.WantErr(<-waiter, context.Canceled, redlatch.ErrBusy)
		if err := <-other; err != nil || time.Since(start) != 0 {
			t.Errorf("%v, after %v", err, time.Since(start))
		}
	})
}

func TestRateLimiterWaitEnds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := ratelimit.New(c, "api", ratelimit.Rate{})
		w.SetRate(l, ratelimit.Rate{Permits: 1, Interval: time.Minute})
		w.TakeRate(l, 1)
		wantVain(w, l, 1, 3*time.Second, time.Minute)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(bg)
		cancel(cause)
		w.WantErr(l.Acquire(ctx, 1), context.Canceled, cause, redlatch.ErrBusy)
		closed := locktest.Later(func() error { return l.Acquire(bg, 1) })
		time.Sleep(time.Second)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		w.WantErr(<-closed, redlatch.ErrClosed)
	})
}

// wantVain wants to be told at once that so long a wait is in vain, and how long
// the shortest one is that is not.
func wantVain(w *locktest.World, l *ratelimit.Limiter, n int, wait, after time.Duration) {
	w.Helper()
	start := time.Now()
	err := l.TryAcquire(bg, n, wait)
	var busy *redlatch.BusyError
	if !errors.As(err, &busy) || busy.RetryAfter != after || busy.Cause != nil || !redlatch.IsRetryable(err) {
		w.Errorf("got %v, want to be told to retry after %v", err, after)
	}
	if d := time.Since(start); d != 0 {
		w.Errorf("it was told after %v", d)
	}
}

// A caller slept for its whole wait, though the server had said that there would
// be no permit.
func TestRateLimiterWaitIsNotSleptThroughInVain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, time.Minute)
		w.TakeRate(l, 5)
		time.Sleep(10 * time.Second)
		wantVain(w, l, 1, 49*time.Second, 50*time.Second) // the first in line
		start := time.Now()
		long := locktest.Later(func() error { return l.TryAcquire(bg, 5, 51*time.Second) })
		synctest.Wait()
		wantVain(w, l, 5, 49*time.Second, 50*time.Second) // behind one that waits
		if err := <-long; err != nil || time.Since(start) < 50*time.Second {
			t.Errorf("a wait that is long enough: %v, after %v", err, time.Since(start))
		}
	})
}

// What the server says of the time until then was counted from when its reply
// came.
func TestRateLimiterWaitIsNotRefusedBecauseAReplyIsLate(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var late atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "ratelimiter.take" && late.CompareAndSwap(true, false) {
				time.Sleep(2500 * time.Millisecond)
			}
			return r, err
		}})
		l := ratelimit.New(c, "api", ratelimit.Rate{Permits: 1, Interval: 10 * time.Second})
		w.TakeRate(l, 1)
		late.Store(true)
		start := time.Now()
		w.OK(l.TryAcquire(bg, 1, 11*time.Second))
		if d := time.Since(start); d < 10*time.Second || d > 10100*time.Millisecond {
			t.Errorf("it had the permit after %v", d)
		}
	})
}

// Fewer permits may be there as soon as the one leaves that wants more: that is
// worth a wait.
func TestRateLimiterWaitBehindOneThatWantsMoreIsNotInVain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, time.Minute)
		w.TakeRate(l, 3)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		first := locktest.Later(func() error { return l.Acquire(ctx, 5) })
		synctest.Wait()
		start := time.Now()
		if err := l.TryAcquire(bg, 2, 3*time.Second); err != nil || time.Since(start) != time.Second {
			t.Errorf("%v, after %v", err, time.Since(start))
		}
		w.WantErr(<-first, redlatch.ErrBusy, context.DeadlineExceeded)
		// One that leaves because its own wait is in vain is in nobody's way.
		w.OK(l.Release(bg, 1))
		var wg sync.WaitGroup
		for n, vain := range map[int]bool{5: true, 1: false} {
			wg.Go(func() {
				if err := l.TryAcquire(bg, n, 3*time.Second); errors.Is(err, redlatch.ErrBusy) != vain || time.Since(start) != time.Second {
					t.Errorf("%d permits: %v, after %v", n, err, time.Since(start))
				}
			})
		}
		wg.Wait()
	})
}

// Those in line learn it, too, when what they wait for has moved on: others have
// taken the permits.
func TestRateLimiterWaitEndsWhenOthersHaveTakenThePermits(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(1, time.Second)
		other := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
		w.TakeRate(l, 1)
		start := time.Now()
		waiter := locktest.Later(func() error { return l.TryAcquire(bg, 1, 10*time.Second) })
		synctest.Wait()
		w.SetRate(other, ratelimit.Rate{Permits: 1, Interval: time.Minute})
		w.TakeRate(other, 1)
		err := <-waiter
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) || busy.RetryAfter < 57*time.Second || time.Since(start) > 3*time.Second {
			t.Errorf("%v, after %v", err, time.Since(start))
		}
	})
}

func TestRateLimiterOutageEndsInTime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, time.Second)
		w.Server.SetError("LOADING Redis is loading the dataset in memory")
		start := time.Now()
		waiting := locktest.Later(func() error { return l.Acquire(bg, 1) })
		w.WantErr(l.TryAcquire(bg, 1, 0), redlatch.ErrUnavailable)
		w.WantErr(<-waiting, redlatch.ErrUnavailable)
		if d := time.Since(start); d < 10*time.Second || d > 12*time.Second {
			t.Errorf("took %v, want OutageTimeout", d)
		}
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		w.WantErr(l.Acquire(ctx, 1), context.DeadlineExceeded, redlatch.ErrUnavailable)
		w.Server.SetError("")
		if err := l.Acquire(bg, 1); err != nil {
			t.Error(err)
		}
		wantAvailable(w, l, 4)
	})
}

// Nobody knows whether the request was executed, so no other may be sent; but
// nobody waits for longer than OutageTimeout, and what it took is given back.
func TestRateLimiterOutageLeavesNothingTaken(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down atomic.Bool
		l := ratelimit.New(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			reply, err := next()
			if down.Load() {
				time.Sleep(100 * time.Millisecond)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return reply, err
		}}), "api", ratelimit.Rate{})
		w.SetRate(l, ratelimit.Rate{Permits: 5, Interval: time.Hour})
		down.Store(true)
		start := time.Now()
		first := locktest.Later(func() error { return l.Acquire(bg, 3) })
		time.Sleep(12 * time.Second)
		w.WantErr(<-first, redlatch.ErrUnavailable)
		w.WantErr(l.Acquire(bg, 1), redlatch.ErrUnavailable)
		if d := time.Since(start); d < 20*time.Second || d > 24*time.Second {
			t.Errorf("the second had its answer after %v", d)
		}
		w.WantErr(l.Release(bg, 1), redlatch.ErrUnavailable)
		third := locktest.Later(func() (err error) {
			for err = redlatch.ErrUnavailable; errors.Is(err, redlatch.ErrUnavailable); {
				err = l.Acquire(bg, 5)
			}
			return err
		})
		time.Sleep(time.Second)
		down.Store(false)
		if err := <-third; err != nil {
			t.Error(err)
		}
	})
}

// A reply is lost, and the server refuses the next request by its credentials: the
// caller is told that, and what it was given comes back when the client is let in
// again.
func TestRateLimiterGivesBackWhatOneThatIsShutOutHasTaken(t *testing.T) {
	const refusal = "WRONGPASS invalid username-password pair or user is disabled."
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lost, shut atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if shut.Load() {
				return driver.Reply{}, driver.ServerError(refusal, errors.New(refusal))
			}
			r, err := next()
			if s == "ratelimiter.take" && lost.CompareAndSwap(false, true) {
				shut.Store(true)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return r, err
		}})
		l := ratelimit.New(c, "api", ratelimit.Rate{})
		w.SetRate(l, ratelimit.Rate{Permits: 5, Interval: time.Hour})
		for range 2 { // the second comes when the request of the first is not done
			start := time.Now()
			if err := l.Acquire(bg, 3); err == nil || !strings.Contains(err.Error(), refusal) || time.Since(start) > 3*time.Second {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		}
		other := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
		wantAvailable(w, other, 2)
		time.Sleep(time.Second)
		shut.Store(false)
		time.Sleep(5 * time.Second)
		wantAvailable(w, other, 5)
		w.TakeRate(l, 5)
	})
}

// Requests that change something reach the server in the order of their numbers,
// also when the caller of one has left before it was answered.
func TestRateLimiterRequestsAreSentOneAtATime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var order []string
		var held atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "ratelimiter.release" && held.CompareAndSwap(false, true) {
				time.Sleep(2 * time.Second)
			}
			order = append(order, strings.TrimPrefix(s, "ratelimiter."))
			return next()
		}})
		l := ratelimit.New(c, "api", ratelimit.Rate{})
		w.SetRate(l, ratelimit.Rate{Permits: 5, Interval: time.Hour})
		w.TakeRate(l, 5)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		w.WantErr(l.Release(ctx, 1), context.DeadlineExceeded)
		if err := errors.Join(l.Release(bg, 2), l.Acquire(bg, 3), c.Close()); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(order); got != "[set take release release take]" {
			t.Errorf("sent: %s", got)
		}
	})
}

// What was in flight when the client was closed is given back.
func TestRateLimiterCloseGivesBack(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			reply, err := next()
			if s == "ratelimiter.take" {
				time.Sleep(time.Second)
			}
			return reply, err
		}})
		l := w.Limiter(5, time.Hour)
		got := locktest.Later(func() error { return ratelimit.New(c, "api", ratelimit.Rate{}).Acquire(bg, 3) })
		synctest.Wait()
		wantAvailable(w, l, 2)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		w.WantErr(<-got, redlatch.ErrClosed)
		wantAvailable(w, l, 5)
	})
}

// A mishap is what happens to the first attempt of a script, once.
type mishap struct {
	script string
	do     func(next func() (driver.Reply, error)) (driver.Reply, error)
	done   atomic.Bool
}

func (m *mishap) hook(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	if s == m.script && m.done.CompareAndSwap(false, true) {
		return m.do(next)
	}
	return next()
}

// Whether the reply is lost, or the request comes a second time, half a minute
// late: it is done once, and the caller learns of it.
func TestALostReplyOrALateRequestOfARateLimiterIsDoneOnce(t *testing.T) {
	rate := ratelimit.Rate{Permits: 10, Interval: time.Hour}
	for script, story := range map[string]struct {
		do   func(l *ratelimit.Limiter) error
		want string // value, and records
	}{
		"take":    {func(l *ratelimit.Limiter) error { return l.Acquire(bg, 3) }, "4 [10+16=03000000 10+16=03000000]"},
		"release": {func(l *ratelimit.Limiter) error { return l.Release(bg, 1) }, "8 [10+16=02000000]"},
		"set":     {func(l *ratelimit.Limiter) error { return l.SetRate(bg, rate) }, " []"},
		"delete": {func(l *ratelimit.Limiter) error {
			if was, err := l.Delete(bg); err != nil || !was {
				return fmt.Errorf("%v, %w", was, err)
			}
			return nil
		}, " []"},
		"tryset": {func(l *ratelimit.Limiter) error {
			_, _ = l.Delete(bg)
			if set, err := l.TrySetRate(bg, rate); err != nil || !set {
				return fmt.Errorf("%v, %w", set, err)
			}
			return nil
		}, " []"},
	} {
		for how, late := range map[string]bool{"lost": false, "late": true} {
			t.Run(script+" "+how, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					m := &mishap{script: "ratelimiter." + script}
					m.do = func(next func() (driver.Reply, error)) (driver.Reply, error) {
						if late {
							go func() {
								time.Sleep(30 * time.Second)
								_, _ = next()
							}()
						} else {
							_, _ = next()
						}
						return driver.Reply{}, locktest.ErrReplyLost
					}
					m.done.Store(true)
					l := ratelimit.New(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: m.hook}), "api", ratelimit.Rate{})
					w.SetRate(l, rate)
					w.TakeRate(l, 3)
					m.done.Store(false)
					if err := story.do(l); err != nil || !m.done.Load() {
						t.Fatal(err)
					}
					look := func(when, want string) {
						t.Helper()
						value, _ := w.Server.Get("{api}:value")
						records := records(w, "{api}:permits")
						for i := range records {
							records[i], _, _ = strings.Cut(records[i], "@")
						}
						if got := fmt.Sprintf("%s %v", value, records); got != want {
							t.Errorf("%s: %s, want %s", when, got, want)
						}
					}
					look("after", story.want)
					if !late {
						return
					}
					want := story.want
					if script == "set" || script == "delete" { // what comes later stays
						if err := l.SetRate(bg, rate); err != nil {
							t.Fatal(err)
						}
						w.TakeRate(l, 1)
						want = "9 [10+16=01000000]"
					}
					time.Sleep(time.Minute)
					look("later", want)
				})
			})
		}
	}
}

// A caller that leaves while its request is in flight takes nothing: not when the
// answer comes after it has left, nor when the request does.
func TestRateLimiterGivesBackWhatNobodyWaitsFor(t *testing.T) {
	for _, how := range []string{"slow reply", "slow request", "lost reply", "late request", "lost undo", "late undo"} {
		t.Run(how, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				m := &mishap{script: "ratelimiter.take"}
				undo := &mishap{script: "ratelimiter.undo"}
				afterwards := func(next func() (driver.Reply, error)) {
					time.Sleep(10 * time.Second)
					_, _ = next()
				}
				m.do = func(next func() (driver.Reply, error)) (driver.Reply, error) {
					if how == "slow request" {
						time.Sleep(2 * time.Second)
						return next()
					}
					if how == "late request" {
						go afterwards(next)
						time.Sleep(2 * time.Second)
						return driver.Reply{}, locktest.ErrReplyLost
					}
					reply, err := next()
					time.Sleep(2 * time.Second)
					if how == "lost reply" {
						return driver.Reply{}, locktest.ErrReplyLost
					}
					return reply, err
				}
				undo.done.Store(!strings.HasSuffix(how, "undo"))
				undo.do = func(next func() (driver.Reply, error)) (driver.Reply, error) {
					if how == "late undo" {
						go afterwards(next)
					} else {
						_, _ = next()
					}
					return driver.Reply{}, locktest.ErrReplyLost
				}
				m.done.Store(true)
				l := ratelimit.New(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					return m.hook(s, args, func() (driver.Reply, error) { return undo.hook(s, args, next) })
				}}), "api", ratelimit.Rate{})
				w.SetRate(l, ratelimit.Rate{Permits: 10, Interval: time.Hour})
				w.TakeRate(l, 1)
				m.done.Store(false)
				// Of three who are asked for with one request, one stays. It has to wait
				// for what is in flight, as does another that comes then.
				ctx, cancel := context.WithTimeout(bg, time.Second)
				defer cancel()
				start := time.Now()
				first := locktest.Later(func() error { return l.Acquire(ctx, 2) })
				synctest.Wait()
				second := locktest.Later(func() error { return l.Acquire(bg, 3) })
				w.WantErr(<-first, context.DeadlineExceeded, redlatch.ErrUnavailable)
				if d := time.Since(start); d != time.Second {
					t.Errorf("left after %v", d)
				}
				if err := <-second; err != nil {
					t.Error(err)
				}
				if d := time.Since(start); d > 3*time.Second {
					t.Errorf("the other got in after %v", d)
				}
				time.Sleep(time.Minute)
				wantAvailable(w, l, 6)
				left := records(w, "{api}:permits")
				left = slices.DeleteFunc(left, func(r string) bool { return strings.Contains(r, "=00000000@") }) // of what was undone
				if len(left) != 2 {
					t.Errorf("records: %q", left)
				}
			})
		})
	}
}

// One of several in a request leaves: only its part is given back.
func TestRateLimiterGivesBackAPartOfARecord(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var slow atomic.Bool
		l := ratelimit.New(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if slow.Load() && s == "ratelimiter.take" {
				time.Sleep(time.Second)
			}
			return next()
		}}), "api", ratelimit.Rate{})
		w.SetRate(l, ratelimit.Rate{Permits: 10, Interval: time.Hour})
		slow.Store(true)
		holdUp := locktest.Later(func() error { return l.TryAcquire(bg, 1, 0) }) // those behind it are asked for together
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, 1500*time.Millisecond)
		defer cancel()
		leaver := locktest.Later(func() error { return l.Acquire(ctx, 2) })
		stayer := locktest.Later(func() error { return l.Acquire(bg, 4) })
		if err := errors.Join(<-holdUp, <-stayer); err != nil {
			t.Fatal(err)
		}
		w.WantErr(<-leaver, context.DeadlineExceeded, redlatch.ErrUnavailable)
		synctest.Wait()
		wantAvailable(w, l, 5)
		if got := fmt.Sprint(records(w, "{api}:permits")); !strings.Contains(got, "=01000000") || !strings.Contains(got, "=04000000") {
			t.Errorf("records %s", got)
		}
	})
}

// A caller who learns of its permits only when the window has moved on gets
// others: it is going to use them now.
func TestRateLimiterGivesNoPermitsOfAWindowThatIsOver(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		m := &mishap{script: "ratelimiter.take"}
		var down atomic.Bool
		m.do = func(next func() (driver.Reply, error)) (driver.Reply, error) {
			_, _ = next()
			down.Store(true)
			return driver.Reply{}, locktest.ErrReplyLost
		}
		m.done.Store(true)
		l := ratelimit.New(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if down.Load() {
				return driver.Reply{}, &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("no connection")}
			}
			return m.hook(s, args, next)
		}}), "api", ratelimit.Rate{})
		other := w.Limiter(5, time.Second)
		m.done.Store(false)
		start := time.Now()
		got := locktest.Later(func() error { return l.Acquire(bg, 5) })
		time.Sleep(1100 * time.Millisecond)
		w.TakeRate(other, 5)
		down.Store(false)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 2100*time.Millisecond || d > 3*time.Second {
			t.Errorf("got them after %v", d)
		}
		// Within the window they count from when they are known.
		m.done.Store(false)
		got = locktest.Later(func() error { return l.Acquire(bg, 5) })
		time.Sleep(1500 * time.Millisecond)
		down.Store(false)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		var busy *redlatch.BusyError
		if err := other.TryAcquire(bg, 1, 0); !errors.As(err, &busy) || busy.RetryAfter < time.Second || busy.RetryAfter > 1002*time.Millisecond {
			t.Errorf("got %v", err)
		}
	})
}

// However many requests and replies are lost or late, and whoever leaves: what is
// missing in the end is what was acknowledged.
func TestRateLimiterLosesNoPermits(t *testing.T) {
	locktest.WithSeeds(t, 2, func(w *locktest.World, seed uint64) {
		const rate = 100000
		r := &locktest.LockedRand{R: rand.New(rand.NewPCG(seed, 1))}
		var taken atomic.Int64
		hook := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(time.Duration(r.N(2000)) * time.Microsecond)
			switch r.N(8) {
			case 0:
				_, _ = next()
				return driver.Reply{}, locktest.ErrReplyLost
			case 1:
				after := time.Duration(r.N(5000)) * time.Millisecond
				go func() {
					time.Sleep(after)
					_, _ = next()
				}()
				return driver.Reply{}, locktest.ErrReplyLost
			}
			reply, err := next()
			time.Sleep(time.Duration(r.N(2000)) * time.Microsecond)
			return reply, err
		}
		w.TakeRate(w.Limiter(rate, time.Hour), 10000) // which Release takes off first
		taken.Store(10000)
		var wg sync.WaitGroup
		for range 3 {
			l := ratelimit.New(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: hook}), "api", ratelimit.Rate{})
			for range 10 {
				wg.Go(func() {
					for range 20 {
						ctx, cancel := context.WithTimeout(bg, time.Duration(r.N(30))*time.Millisecond)
						n := 1 + r.N(9)
						if l.Acquire(ctx, n) == nil {
							taken.Add(int64(n))
							if r.N(4) == 0 && l.Release(bg, 1) == nil {
								taken.Add(-1)
							}
						}
						cancel()
					}
				})
			}
		}
		wg.Wait()
		time.Sleep(time.Minute)
		l := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
		if taken.Load() < 10500 {
			t.Fatalf("only %d were taken", taken.Load())
		}
		wantAvailable(w, l, rate-int(taken.Load()))
		w.Server.Del("{api}:value") // and the records say the same
		wantAvailable(w, l, rate-int(taken.Load()))
	})
}

// Another process may have raised the rate while callers of this one wait.
func TestARateThatWasRaisedElsewhereRefusesNobody(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		here, there := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{}), ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
		w.OK(here.SetRate(bg, ratelimit.Rate{Permits: 3, Interval: time.Minute}))
		w.OK(here.Acquire(bg, 3))
		waits := locktest.Later(func() error { return here.Acquire(bg, 1) })
		synctest.Wait()
		w.WantErr(here.Acquire(bg, 50), redlatch.ErrInvalid)
		w.WantErr(here.TryAcquire(bg, 50, 0), redlatch.ErrInvalid)
		w.OK(there.UpdateRate(bg, ratelimit.Rate{Permits: 100, Interval: time.Minute}))
		w.OK(here.Acquire(bg, 50))
		w.OK(<-waits)
	})
}

// Whoever asks for permits when the rate has been raised is not told what the
// server said before.
func TestAnAnswerFromBeforeARaiseRefusesNobodyWhoCameLater(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		for name, elsewhere := range map[string]bool{"here": false, "elsewhere": true} {
			slow := true
			c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				reply, err := next()
				if s == "ratelimiter.take" && slow {
					slow = false
					time.Sleep(time.Second)
				}
				return reply, err
			}})
			l := ratelimit.New(c, name, ratelimit.Rate{})
			raiser := l
			if elsewhere {
				raiser = ratelimit.New(w.Client(redlatch.Config{}), name, ratelimit.Rate{})
			}
			w.OK(raiser.SetRate(bg, ratelimit.Rate{Permits: 5, Interval: time.Hour}))
			first := locktest.Later(func() error { return l.Acquire(bg, 1) })
			synctest.Wait() // its answer is in flight
			w.OK(raiser.SetRate(bg, ratelimit.Rate{Permits: 10, Interval: time.Hour}))
			for what, err := range map[string]error{"Acquire": l.Acquire(bg, 8), "the first": <-first} {
				if err != nil {
					t.Errorf("raised %s: %s: %v", name, what, err)
				}
			}
			w.WantErr(l.Acquire(bg, 11), redlatch.ErrInvalid)
		}
	})
}

// Others can store a rate of nothing, or of less. Whoever asks is refused at once,
// as by any rate that is too low, and so is whoever waits: a rate of 0 is not one
// that is not known.
func TestARateOfNothingKeepsNobodyWaiting(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		for _, rate := range []string{"0", "0.5", "-3"} {
			l := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
			w.SetRate(l, ratelimit.Rate{Permits: 5, Interval: time.Hour})
			w.TakeRate(l, 5)
			waits := locktest.Later(func() error { return l.Acquire(bg, 1) })
			synctest.Wait()
			w.Server.HSet("api", "rate", rate)
			start := time.Now()
			other := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
			for range 20 { // the next caller finds the client's queue as the one before has left it
				w.WantErr(other.TryAcquire(bg, 1, 0), redlatch.ErrInvalid)
				ctx, cancel := context.WithTimeout(bg, time.Minute)
				w.WantErr(other.Acquire(ctx, 1), redlatch.ErrInvalid)
				cancel()
			}
			if d := time.Since(start); d > 10*time.Millisecond {
				t.Errorf("a rate of %s: refused after %v", rate, d)
			}
			w.WantErr(<-waits, redlatch.ErrInvalid)
			w.Server.FlushAll()
		}
	})
}

// A server that is slow first, and then silent, has permits that nobody wants any
// more. Those who come then do not wait for them to be given back before they ask;
// and that is done when the server is there again.
func TestWhatIsGivenBackInAnOutageKeepsNobodyWaiting(t *testing.T) {
	for _, outage := range []time.Duration{7 * time.Second, time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var slow, down atomic.Bool
				l := ratelimit.New(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if down.Load() {
						time.Sleep(100 * time.Millisecond)
						return driver.Reply{}, locktest.ErrReplyLost
					}
					reply, err := next()
					if s == "ratelimiter.take" && slow.CompareAndSwap(true, false) {
						time.Sleep(time.Second)
						down.Store(true)
						time.AfterFunc(outage, func() { down.Store(false) })
					}
					return reply, err
				}}), "api", ratelimit.Rate{})
				w.SetRate(l, ratelimit.Rate{Permits: 5, Interval: time.Hour})
				slow.Store(true)
				ctx, cancel := context.WithTimeout(bg, time.Second/2)
				defer cancel()
				w.WantErr(l.Acquire(ctx, 3), context.DeadlineExceeded)
				time.Sleep(time.Second)
				start := time.Now()
				err := l.Acquire(bg, 2)
				switch d := time.Since(start); {
				case outage < 10*time.Second:
					w.OK(err)
					time.Sleep(5 * time.Second)
					wantAvailable(w, l, 3)
				case !errors.Is(err, redlatch.ErrUnavailable) || d > 15*time.Second:
					t.Errorf("%v, after %v", err, d)
				}
				time.Sleep(outage) // or Close would find requests in flight
			})
		})
	}
}
