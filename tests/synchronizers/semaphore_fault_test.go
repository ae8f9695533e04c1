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
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// counted are the requests that change a number, each from 10 permits.
var counted = []struct {
	name, script string
	do           func(s *semaphore.Semaphore) (any, error)
	answer       any
	permits      string
}{
	{"acquire", "semaphore.exchange", func(s *semaphore.Semaphore) (any, error) { return nil, s.Acquire(bg, 2) }, nil, "8"},
	{"try", "semaphore.exchange", func(s *semaphore.Semaphore) (any, error) { return nil, s.TryAcquire(bg, 10, 0) }, nil, "0"},
	{"release", "semaphore.exchange", func(s *semaphore.Semaphore) (any, error) { return nil, s.Release(bg, 3) }, nil, "13"},
	{"release if exists", "semaphore.add", func(s *semaphore.Semaphore) (any, error) { return s.ReleaseIfExists(bg, 3) }, true, "13"},
	{"add", "semaphore.add", func(s *semaphore.Semaphore) (any, error) { return nil, s.AddPermits(bg, -3) }, nil, "7"},
	{"drain", "semaphore.drain", func(s *semaphore.Semaphore) (any, error) { return s.Drain(bg) }, 10, "0"},
	{"delete", "semaphore.delete", func(s *semaphore.Semaphore) (any, error) { return s.Delete(bg) }, true, ""},
	{"set", "semaphore.set", func(s *semaphore.Semaphore) (any, error) {
		_, _ = s.Delete(bg)
		return s.TrySetPermits(bg, 4)
	}, true, "4"},
}

// A lost reply is made good for by the same request once more, which changes
// nothing and has the same answer.
func TestALostReplyCountsNothingTwice(t *testing.T) {
	for _, x := range counted {
		t.Run(x.name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				lost := 0
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					if s == x.script && lost < 2 {
						lost++
						return driver.Reply{}, locktest.ErrReplyLost
					}
					return r, err
				}})
				_ = w.Server.Set(locktest.SemaphoreName, "10")
				answer, err := x.do(semaphore.New(c, locktest.SemaphoreName, 0))
				if err != nil || answer != x.answer || lost != 2 {
					t.Errorf("%v, %v after %d lost replies; want %v", answer, err, lost, x.answer)
				}
				wantSemaphore(w, "after it", x.permits)
			})
		})
	}
}

// A request that comes late finds that it was made good for, and does nothing.
func TestALateRequestCountsNothing(t *testing.T) {
	for _, x := range counted {
		t.Run(x.name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var late func()
				d := &locktest.Tap{}
				d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == x.script && late == nil {
						late = d.Again(s, slices.Clone(args))
						return driver.Reply{}, locktest.ErrReplyLost
					}
					return next()
				}
				s := semaphore.New(w.Tapped(redlatch.Config{}, d), locktest.SemaphoreName, 0)
				_ = w.Server.Set(locktest.SemaphoreName, "10")
				answer, err := x.do(s)
				if err != nil || answer != x.answer || late == nil {
					t.Errorf("%v, %v; want %v", answer, err, x.answer)
				}
				late()
				wantSemaphore(w, "after it", x.permits)

				_ = w.Server.Set(locktest.SemaphoreName, "20") // somebody else
				late()
				wantSemaphore(w, "after others", "20")
				w.OK(s.AddPermits(bg, 1)) // the next one of its session,
				w.OK(s.Acquire(bg, 1))    // and of the other
				late()
				wantSemaphore(w, "later", "20")
				w.OK(s.Release(bg, 1))
				time.Sleep(time.Minute)
				late()
				wantSemaphore(w, "much later", "21")
			})
		})
	}
}

// The caller had left, and a refusal was told to nobody: neither as an error, nor
// as an event.
func TestARefusedReleaseIsToldThoughItsCallerHasLeft(t *testing.T) {
	refused := &driver.RunError{Outcome: driver.Refused, Code: "NOPERM", Err: errors.New("NOPERM no permissions to run it")}
	for _, leaves := range []string{"nobody", "after the request", "one of two", "a waiter that got them too late", "that waiter, beside a release"} {
		t.Run(leaves, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var failed []error
				var refuses atomic.Bool
				d := &locktest.Tap{Timeout: 10 * time.Second, Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					gives := s == "semaphore.exchange" && args[3] != "0"
					if !refuses.Load() || s != "semaphore.exchange" {
						return next()
					}
					time.Sleep(time.Second)
					if gives {
						return driver.Reply{}, refused
					}
					return next()
				}}
				c := w.Tapped(redlatch.Config{}, d, observe.Hooks{ReleaseFailed: func(e observe.ReleaseFailedEvent) { failed = append(failed, e.Err) }})
				s := w.Semaphore(c, 5)
				w.OK(s.Acquire(bg, 3))
				ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
				defer cancel()
				refuses.Store(true)
				release := func() error { return s.Release(bg, 1) }
				switch leaves {
				case "nobody":
					w.WantErr(s.Release(bg, 1), refused)
				case "after the request":
					w.WantErr(s.Release(ctx, 1), context.DeadlineExceeded)
				case "one of two":
					before := locktest.Later(release) // in flight; the next exchange is for both of the others
					synctest.Wait()
					stays := locktest.Later(release)
					w.WantErr(s.Release(ctx, 1), context.DeadlineExceeded)
					w.WantErr(<-before, refused)
					w.WantErr(<-stays, refused)
				case "that waiter, beside a release":
					waits := locktest.Later(func() error { return s.Acquire(ctx, 1) })
					w.WantErr(<-waits, redlatch.ErrUnavailable)
					w.WantErr(s.Release(bg, 1), refused) // in one exchange with what the waiter was granted
				default:
					w.WantErr(s.Acquire(ctx, 1), redlatch.ErrUnavailable)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				want := 1
				if leaves == "nobody" {
					want = 0 // it was told
				}
				if len(failed) != want || want > 0 && !errors.Is(failed[0], refused) {
					t.Errorf("events: %v, want %d", failed, want)
				}
			})
		})
	}
}

// A reply was lost with its connection, and the server takes the client's new ones
// for those of nobody, or of one without rights: the credentials were changed.
// Nobody knows then what became of the request. Its callers are told at once, and
// it is brought to its end when that is possible.
func TestWhatAClientThatIsShutOutHasSentIsBroughtToItsEnd(t *testing.T) {
	for _, refusal := range []string{"WRONGPASS invalid username-password pair or user is disabled.", "NOAUTH Authentication required.", "NOPERM User default has no permissions to run the 'evalsha' command"} {
		for _, x := range []struct {
			name, script string
			call         func(s *semaphore.Semaphore) error
			told         bool // at once; else when it is done
			permits      string
		}{
			{"acquire", "semaphore.exchange", func(s *semaphore.Semaphore) error { return s.Acquire(bg, 2) }, true, "10"},
			{"release", "semaphore.exchange", func(s *semaphore.Semaphore) error { return s.Release(bg, 2) }, false, "12"},
			{"add", "semaphore.add", func(s *semaphore.Semaphore) error { return s.AddPermits(bg, 2) }, true, "12"},
		} {
			for _, executed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/executed=%v", refusal[:6], x.name, executed), func(t *testing.T) {
					locktest.InFakeTime(t, func(w *locktest.World) {
						var requests atomic.Int64
						var back atomic.Bool
						c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
							if s != x.script || back.Load() {
								return next()
							}
							if requests.Add(1) > 1 {
								return driver.Reply{}, driver.ServerError(refusal, errors.New(refusal))
							}
							if executed {
								_, _ = next()
							}
							return driver.Reply{}, locktest.ErrReplyLost
						}})
						s := w.Semaphore(c, 10)
						start := time.Now()
						told := locktest.Later(func() error { return x.call(s) })
						if x.told {
							err := <-told
							if w.WantErr(err, redlatch.ErrUnavailable); !strings.Contains(err.Error(), refusal) || time.Since(start) > time.Second {
								t.Errorf("told %v after %v", err, time.Since(start))
							}
						}
						time.Sleep(5 * time.Second)
						if n := requests.Load(); n > 6 {
							t.Errorf("%d requests in 5 s", n)
						}
						back.Store(true)
						if !x.told {
							w.OK(<-told)
						}
						time.Sleep(5 * time.Second)
						wantSemaphore(w, "then", x.permits)
						w.OK(s.Acquire(bg, 1))
						w.OK(s.Release(bg, 1))
						wantSemaphore(w, "after all", x.permits)
					})
				})
			}
		}
	}
}

// A turn is an exchange too, whether it was kept or taken.
func TestALostReplyToAYieldCountsNothingTwice(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken=%v", taken), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				turns := 0
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					if len(args) > 4 && args[4] == "1" {
						if turns++; turns == 1 {
							return driver.Reply{}, locktest.ErrReplyLost
						}
					}
					return r, err
				}})
				s, other := w.Semaphore(c, 1), semaphore.New(w.Client(redlatch.Config{}), locktest.SemaphoreName, 0)
				w.OK(s.Acquire(bg, 1))
				here := locktest.AcquiringPermits(bg, s, 1)
				var there <-chan error
				if taken {
					there = locktest.AcquiringPermits(bg, other, 1)
				}
				time.Sleep(10 * time.Millisecond) // a quantum
				w.OK(s.Release(bg, 1))
				if taken {
					w.OK(<-there)
					if !locktest.NoneYet(here) {
						t.Error("both have it")
					}
					w.OK(other.Release(bg, 1))
				}
				w.OK(<-here)
				if turns < 2 {
					t.Errorf("%d turns", turns)
				}
				w.OK(s.Release(bg, 1))
				wantSemaphore(w, "in the end", "1")
			})
		})
	}
}

// A silence is a server that executes, or does not, and never answers.
type silence struct {
	*locktest.Tap
	mu       sync.Mutex
	on       bool
	executes bool
	sure     bool // the driver knows that nothing was done
}

func newSilence(w *locktest.World, cfg redlatch.Config) (*silence, *redlatch.Client) {
	x := &silence{Tap: &locktest.Tap{}}
	x.Hook = func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
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
		return driver.Reply{}, locktest.ErrReplyLost
	}
	return x, w.Tapped(cfg, x.Tap)
}

func (x *silence) set(on bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.on = on
}

func TestAnOutageEndsEveryCallAboutPermitsInTime(t *testing.T) {
	for _, kind := range []string{"nothing arrives", "no answer arrives", "the server is not ready"} {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				x, c := newSilence(w, redlatch.Config{})
				x.executes, x.sure = kind == "no answer arrives", kind == "the server is not ready"
				s := w.Semaphore(c, 10)
				w.OK(s.Acquire(bg, 2))
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
						w.WantErr(err, is...)
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
				call(0, "Acquire with Wait", 4*time.Second, func() error { return s.TryAcquire(bg, 1, 4*time.Second) }, redlatch.ErrUnavailable)
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
				wantSemaphore(w, "after it", want)
				w.OK(s.Acquire(bg, 1))
			})
		})
	}
}

// What was asked for when everybody has left goes back.
func TestWhatWasGrantedToNobodyGoesBack(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		x, c := newSilence(w, redlatch.Config{})
		x.executes = true
		s := w.Semaphore(c, 3)
		x.set(true)
		w.WantErr(s.TryAcquire(bg, 2, time.Second), redlatch.ErrUnavailable)
		wantSemaphore(w, "during it", "1")
		x.set(false)
		time.Sleep(5 * time.Second)
		wantSemaphore(w, "after it", "3")
	})
}

// An outage does not double permits and loses none, however long it is, as long as
// Redis remembers the last request. After that what is in doubt is not repeated,
// and reported.
func TestAnOutageNeitherDoublesPermitsNorLosesThem(t *testing.T) {
	const acquire, release = "acquire", "release"
	for _, what := range []string{acquire, release} {
		for _, executed := range []bool{false, true} {
			for _, outage := range []time.Duration{3 * time.Minute, 9 * time.Minute, 11 * time.Minute, time.Hour} {
				t.Run(fmt.Sprintf("%s executed=%v %v", what, executed, outage), func(t *testing.T) {
					locktest.InFakeTime(t, func(w *locktest.World) {
						var failed []error
						x, c := newSilence(w, redlatch.Config{})
						observe.Add(c, observe.Hooks{ReleaseFailed: func(e observe.ReleaseFailedEvent) { failed = append(failed, e.Err) }})
						s := w.Semaphore(c, 1)
						want := "1"
						if what == release {
							w.OK(s.Acquire(bg, 1))
						}
						x.set(true)
						x.executes = executed
						done := locktest.Later(func() error {
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
						w.WantErr(<-done, redlatch.ErrUnavailable)
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
						wantSemaphore(w, "after it", want)
						if forgotten && (len(failed) != 1 || !strings.Contains(failed[0].Error(), "forgotten")) {
							t.Errorf("events %q", failed)
						}
						w.OK(s.Release(bg, 1))
						w.OK(s.Acquire(bg, 1))
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
			locktest.InFakeTime(t, func(w *locktest.World) {
				x, c := newSilence(w, redlatch.Config{})
				x.sure = sure
				s := w.Semaphore(c, 3)
				w.OK(s.Acquire(bg, 3))
				waiting := locktest.AcquiringPermits(bg, s, 1)
				x.set(true)
				w.OK(s.Release(bg, 2)) // one is for who waits, one goes back
				w.OK(<-waiting)
				released := locktest.Later(func() error { return s.Release(bg, 1) })
				synctest.Wait()
				waiting = locktest.AcquiringPermits(bg, s, 9)
				start := time.Now()
				_ = c.Close()
				w.WantErr(<-waiting, redlatch.ErrClosed)
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
	locktest.InFakeTime(t, func(w *locktest.World) {
		var failed []string
		c := w.Client(redlatch.Config{}, observe.Hooks{ReleaseFailed: func(e observe.ReleaseFailedEvent) { failed = append(failed, e.Name) }})
		s := w.Semaphore(c, 0)
		first, second := locktest.AcquiringPermits(bg, s, 2), locktest.AcquiringPermits(bg, s, 1)
		w.Server.Del(locktest.SemaphoreName)
		w.Server.HSet(locktest.SemaphoreName, "field", "1")
		w.OK(s.Release(bg, 1)) // for the first, who needs one more
		for _, got := range []<-chan error{first, second} {
			if err := <-got; err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("got %v", err)
			}
		}
		synctest.Wait()
		if len(failed) != 1 || failed[0] != locktest.SemaphoreName {
			t.Errorf("events %q", failed)
		}
	})
}

// A request whose caller has left goes before the next one: that would make it
// look like one that was executed.
func TestARequestThatNobodyWaitsForIsNotOvertaken(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		adds := 0
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "semaphore.add" {
				if adds++; adds == 1 {
					time.Sleep(50 * time.Millisecond)
					return driver.Reply{}, locktest.ErrReplyLost
				}
			}
			return next()
		}})
		s := w.Semaphore(c, 10)
		ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
		defer cancel()
		w.WantErr(s.AddPermits(ctx, 1), context.DeadlineExceeded)
		w.OK(s.AddPermits(bg, 2))
		time.Sleep(time.Second)
		wantSemaphore(w, "after both", "13")
	})
}
