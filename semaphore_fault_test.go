package redlatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// counted are the requests that change a number, each from 10 permits.
var counted = []struct {
	name, script string
	do           func(s *redlatch.Semaphore) (any, error)
	answer       any
	permits      string
}{
	{"acquire", "semaphore.exchange", func(s *redlatch.Semaphore) (any, error) { return nil, s.Acquire(bg, 2) }, nil, "8"},
	{"try", "semaphore.exchange", func(s *redlatch.Semaphore) (any, error) { return nil, s.Try(bg, 10) }, nil, "0"},
	{"release", "semaphore.exchange", func(s *redlatch.Semaphore) (any, error) { return nil, s.Release(bg, 3) }, nil, "13"},
	{"release if exists", "semaphore.add", func(s *redlatch.Semaphore) (any, error) { return s.ReleaseIfExists(bg, 3) }, true, "13"},
	{"add", "semaphore.add", func(s *redlatch.Semaphore) (any, error) { return nil, s.AddPermits(bg, -3) }, nil, "7"},
	{"drain", "semaphore.drain", func(s *redlatch.Semaphore) (any, error) { return s.Drain(bg) }, 10, "0"},
	{"delete", "semaphore.delete", func(s *redlatch.Semaphore) (any, error) { return s.Delete(bg) }, true, ""},
	{"set", "semaphore.set", func(s *redlatch.Semaphore) (any, error) {
		_, _ = s.Delete(bg)
		return s.TrySetPermits(bg, 4, 0)
	}, true, "4"},
}

// A lost reply is made good for by the same request once more, which changes
// nothing and has the same answer.
func TestALostReplyCountsNothingTwice(t *testing.T) {
	for _, x := range counted {
		t.Run(x.name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				lost := 0
				c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					if s == x.script && lost < 2 {
						lost++
						return driver.Reply{}, errTapUnknown
					}
					return r, err
				}})
				_ = w.server.Set(semaphoreName, "10")
				answer, err := x.do(c.Semaphore(semaphoreName))
				if err != nil || answer != x.answer || lost != 2 {
					t.Errorf("%v, %v after %d lost replies; want %v", answer, err, lost, x.answer)
				}
				w.wantSemaphore("after it", x.permits)
			})
		})
	}
}

// A request that comes late finds that it was made good for, and does nothing.
func TestALateRequestCountsNothing(t *testing.T) {
	for _, x := range counted {
		t.Run(x.name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				var late func()
				d := &tap{}
				d.hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == x.script && late == nil {
						late = d.again(s, slices.Clone(args))
						return driver.Reply{}, errTapUnknown
					}
					return next()
				}
				s := w.tapped(redlatch.Config{}, d).Semaphore(semaphoreName)
				_ = w.server.Set(semaphoreName, "10")
				answer, err := x.do(s)
				if err != nil || answer != x.answer || late == nil {
					t.Errorf("%v, %v; want %v", answer, err, x.answer)
				}
				late()
				w.wantSemaphore("after it", x.permits)

				_ = w.server.Set(semaphoreName, "20") // somebody else
				late()
				w.wantSemaphore("after others", "20")
				w.no(s.AddPermits(bg, 1)) // the next one of its session,
				w.no(s.Acquire(bg, 1))    // and of the other
				late()
				w.wantSemaphore("later", "20")
				w.no(s.Release(bg, 1))
				time.Sleep(time.Minute)
				late()
				w.wantSemaphore("much later", "21")
			})
		})
	}
}

// A turn is an exchange too, whether it was kept or taken.
func TestALostTurnCountsNothingTwice(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken=%v", taken), func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				turns := 0
				c := w.tapped(redlatch.Config{}, &tap{hook: func(_ string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					if len(args) > 4 && args[4] == "1" {
						if turns++; turns == 1 {
							return driver.Reply{}, errTapUnknown
						}
					}
					return r, err
				}})
				s, other := w.semaphore(c, 1), w.client(redlatch.Config{}).Semaphore(semaphoreName)
				w.no(s.Acquire(bg, 1))
				here := acquiringPermits(s, bg, 1)
				var there <-chan error
				if taken {
					there = acquiringPermits(other, bg, 1)
				}
				time.Sleep(10 * time.Millisecond) // a quantum
				w.no(s.Release(bg, 1))
				if taken {
					w.no(<-there)
					if !pending(here) {
						t.Error("both have it")
					}
					w.no(other.Release(bg, 1))
				}
				w.no(<-here)
				if turns < 2 {
					t.Errorf("%d turns", turns)
				}
				w.no(s.Release(bg, 1))
				w.wantSemaphore("in the end", "1")
			})
		})
	}
}

// A silence is a server that executes, or does not, and never answers.
type silence struct {
	*tap
	mu       sync.Mutex
	on       bool
	executes bool
	sure     bool // the driver knows that nothing was done
}

func (w *world) silence(cfg redlatch.Config) (*silence, *redlatch.Client) {
	x := &silence{tap: &tap{}}
	x.hook = func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		x.mu.Lock()
		on, executes, sure := x.on, x.executes, x.sure
		x.mu.Unlock()
		switch {
		case !on:
			return next()
		case sure:
			return driver.Reply{}, driver.ServerError("LOADING", fmt.Errorf("loading"))
		case executes:
			_, _ = next()
		}
		return driver.Reply{}, errTapUnknown
	}
	return x, w.tapped(cfg, x.tap)
}

func (x *silence) set(on bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.on = on
}

func TestAnOutageEndsEveryCallAboutPermitsInTime(t *testing.T) {
	for _, kind := range []string{"nothing arrives", "no answer arrives", "the server is not ready"} {
		t.Run(kind, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				x, c := w.silence(redlatch.Config{})
				x.executes, x.sure = kind == "no answer arrives", kind == "the server is not ready"
				s := w.semaphore(c, 10)
				w.no(s.Acquire(bg, 2))
				x.set(true)

				var wg sync.WaitGroup
				call := func(after time.Duration, name string, lasts time.Duration, f func() error, is ...error) {
					wg.Go(func() {
						time.Sleep(after)
						start := time.Now()
						err := f()
						if d := time.Since(start); d < lasts || d > lasts+1500*time.Millisecond {
							t.Errorf("%s took %v, want %v (%v)", name, d, lasts, err)
						}
						w.wantErr(err, is...)
					})
				}
				timeout := func(d time.Duration, f func(ctx context.Context) error) func() error {
					return func() error {
						ctx, cancel := context.WithTimeout(bg, d)
						defer cancel()
						return f(ctx)
					}
				}
				outage := 10 * time.Second
				call(0, "Acquire", outage, func() error { return s.Acquire(bg, 1) }, redlatch.ErrUnavailable)
				call(time.Second, "a later Acquire", outage, func() error { return s.Acquire(bg, 1) }, redlatch.ErrUnavailable)
				call(25*time.Second, "an even later Acquire", outage, func() error { return s.Acquire(bg, 1) }, redlatch.ErrUnavailable)
				call(0, "Acquire with Wait", 4*time.Second, func() error { return s.Acquire(bg, 1, redlatch.Wait(4*time.Second)) }, redlatch.ErrUnavailable)
				call(0, "Acquire with a time-out", 3*time.Second, timeout(3*time.Second, func(ctx context.Context) error { return s.Acquire(ctx, 1) }),
					redlatch.ErrUnavailable, context.DeadlineExceeded)
				call(13*time.Second, "Release", outage, func() error { return s.Release(bg, 1) }, redlatch.ErrUnavailable)
				call(13*time.Second, "Release with a time-out", time.Second, timeout(time.Second, func(ctx context.Context) error { return s.Release(ctx, 1) }),
					redlatch.ErrUnavailable, context.DeadlineExceeded)
				call(0, "AddPermits", outage, func() error { return s.AddPermits(bg, 1) }, redlatch.ErrUnavailable)
				wg.Wait()
				x.set(false)
				time.Sleep(30 * time.Second)
				want := "11" // what was released is there, what was asked for has gone back
				if kind == "the server is not ready" {
					want = "10" // nothing more was added
				}
				w.wantSemaphore("after it", want)
				w.no(s.Acquire(bg, 1))
			})
		})
	}
}

// What was asked for when everybody has left goes back.
func TestWhatWasGrantedToNobodyGoesBack(t *testing.T) {
	inFakeTime(t, func(w *world) {
		x, c := w.silence(redlatch.Config{})
		x.executes = true
		s := w.semaphore(c, 3)
		x.set(true)
		w.wantErr(s.Acquire(bg, 2, redlatch.Wait(time.Second)), redlatch.ErrUnavailable)
		w.wantSemaphore("during it", "1")
		x.set(false)
		time.Sleep(5 * time.Second)
		w.wantSemaphore("after it", "3")
	})
}

// An outage does not double permits and loses none, however long it is, as long as
// Redis remembers the last request. After that what is in doubt is not repeated, and
// reported.
func TestAnOutageNeitherDoublesPermitsNorLosesThem(t *testing.T) {
	const acquire, release = "acquire", "release"
	for _, what := range []string{acquire, release} {
		for _, executed := range []bool{false, true} {
			for _, outage := range []time.Duration{3 * time.Minute, 9 * time.Minute, 11 * time.Minute, time.Hour} {
				t.Run(fmt.Sprintf("%s executed=%v %v", what, executed, outage), func(t *testing.T) {
					inFakeTime(t, func(w *world) {
						var failed []error
						x, c := w.silence(redlatch.Config{Events: redlatch.Events{
							ReleaseFailed: func(e redlatch.ReleaseFailedEvent) { failed = append(failed, e.Err) },
						}})
						s := w.semaphore(c, 1)
						want := "1"
						if what == release {
							w.no(s.Acquire(bg, 1))
						}
						x.set(true)
						x.executes = executed
						done := later(func() error {
							if what == release {
								return s.Release(bg, 1)
							}
							return s.Acquire(bg, 1)
						})
						synctest.Wait()
						x.mu.Lock()
						x.executes = false
						x.mu.Unlock()
						time.Sleep(outage)
						w.wantErr(<-done, redlatch.ErrUnavailable)
						x.set(false)
						time.Sleep(time.Minute)
						synctest.Wait()
						forgotten := outage > 10*time.Minute
						switch {
						case forgotten && (what == acquire) == executed:
							want = "0" // what was taken and what was never given back
						case !forgotten && len(failed) > 0:
							t.Errorf("events %q", failed)
						}
						w.wantSemaphore("after it", want)
						if forgotten && (len(failed) != 1 || !strings.Contains(failed[0].Error(), "forgotten")) {
							t.Errorf("events %q", failed)
						}
						w.no(s.Release(bg, 1))
						w.no(s.Acquire(bg, 1))
					})
				})
			}
		}
	}
}

// Close gives up what it cannot bring to its end, and says so.
func TestCloseDuringAnOutageEnds(t *testing.T) {
	for _, sure := range []bool{false, true} {
		t.Run(fmt.Sprintf("sure=%v", sure), func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				x, c := w.silence(redlatch.Config{})
				x.sure = sure
				s := w.semaphore(c, 3)
				w.no(s.Acquire(bg, 3))
				waiting := acquiringPermits(s, bg, 1)
				x.set(true)
				w.no(s.Release(bg, 2)) // one is for who waits, one goes back
				w.no(<-waiting)
				released := later(func() error { return s.Release(bg, 1) })
				synctest.Wait()
				waiting = acquiringPermits(s, bg, 9)
				start := time.Now()
				_ = c.Close()
				w.wantErr(<-waiting, redlatch.ErrClosed)
				if err := <-released; err == nil {
					t.Error("released without a server")
				}
				if d := time.Since(start); d > 15*time.Second {
					t.Errorf("Close took %v", d)
				}
				time.Sleep(20 * time.Second) // everything ends, or the bubble does not
			})
		})
	}
}

// A semaphore that becomes something else fails those who wait for it.
func TestARefusalReachesAllWhoWait(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var failed []string
		c := w.client(redlatch.Config{Events: redlatch.Events{ReleaseFailed: func(e redlatch.ReleaseFailedEvent) { failed = append(failed, e.Name) }}})
		s := w.semaphore(c, 0)
		first, second := acquiringPermits(s, bg, 2), acquiringPermits(s, bg, 1)
		w.server.Del(semaphoreName)
		w.server.HSet(semaphoreName, "field", "1")
		w.no(s.Release(bg, 1)) // for the first, who needs one more
		for _, got := range []<-chan error{first, second} {
			if err := <-got; err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("got %v", err)
			}
		}
		synctest.Wait()
		if len(failed) != 1 || failed[0] != semaphoreName {
			t.Errorf("events %q", failed)
		}
	})
}

// A request whose caller has left goes before the next one: that would make it
// look like one that was executed.
func TestARequestThatNobodyWaitsForIsNotOvertaken(t *testing.T) {
	inFakeTime(t, func(w *world) {
		adds := 0
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "semaphore.add" {
				if adds++; adds == 1 {
					time.Sleep(50 * time.Millisecond)
					return driver.Reply{}, errTapUnknown
				}
			}
			return next()
		}})
		s := w.semaphore(c, 10)
		ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
		defer cancel()
		w.wantErr(s.AddPermits(ctx, 1), context.DeadlineExceeded)
		w.no(s.AddPermits(bg, 2))
		time.Sleep(time.Second)
		w.wantSemaphore("after both", "13")
	})
}
