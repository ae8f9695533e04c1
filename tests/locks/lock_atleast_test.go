package locks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A job that was over in a second was run again by a replica whose clock was two
// seconds late.
func TestAReplicaWhoseClockIsLateDoesNotRunAShortJobAgain(t *testing.T) {
	for kind, lock := range map[string]func(c *redlatch.Client, name string) *redlatch.Lock{
		"lock": func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name) }, "spin": locktest.TypesOfLock["spin"], "fenced": func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name, redlatch.Fenced()) },
		"striped": func(c *redlatch.Client, name string) *redlatch.Lock { return c.StripedLock(name, 3).For("a") },
	} {
		for _, d := range []time.Duration{10 * time.Second, time.Minute} { // within the lease, and beyond it
			t.Run(fmt.Sprintf("%s/%v", kind, d), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
					start := time.Now()
					h := w.Acquire(bg, locktest.With(lock(c, "job"), redlatch.MinHold(d)))
					waiters := map[string]<-chan *redlatch.Hold{}
					for name, client := range map[string]*redlatch.Client{"here": c, "elsewhere": other} {
						waiters[name] = locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, lock(client, "job")) })
					}
					time.Sleep(time.Second)
					w.Release(h)
					w.WantErr(context.Cause(h.Context()), redlatch.ErrNotHeld)
					w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
					time.Sleep(d - time.Since(start) - 10*time.Millisecond)
					for name, client := range map[string]*redlatch.Client{"here": c, "elsewhere": other} {
						_, err := lock(client, "job").TryAcquire(bg, 0)
						w.WantErr(err, redlatch.ErrBusy)
						select {
						case <-waiters[name]:
							t.Fatalf("%s: somebody had it %v after its acquisition", name, time.Since(start))
						default:
						}
					}
					time.Sleep(20 * time.Millisecond)
					if kind == "spin" {
						time.Sleep(3 * time.Second)
					}
					if kind == "striped" || kind == "fenced" {
						synctest.Wait()
					}
					var first *redlatch.Hold
					select {
					case first = <-waiters["here"]:
						delete(waiters, "here")
					case first = <-waiters["elsewhere"]:
						delete(waiters, "elsewhere")
					default:
						t.Fatalf("nobody has it %v after its acquisition", time.Since(start))
					}
					if first.ID() == h.ID() {
						t.Error("it was passed on")
					}
					w.Release(first)
					for _, last := range waiters {
						w.Release(<-last)
					}
				})
			})
		}
	}
}

// Redisson's waiters sleep for the TTL that they have seen, unless they hear a
// message.
func TestRedissonHearsThatALockIsFreeSooner(t *testing.T) {
	for _, d := range []time.Duration{10 * time.Second, time.Minute} { // the lease is 30 s
		for kind, lock := range map[string]func(c *redlatch.Client, name string) *redlatch.Lock{"lock": func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name) }, "spin": locktest.TypesOfLock["spin"]} {
			locktest.InFakeTime(t, func(w *locktest.World) {
				heard := w.Messages("redisson_lock__channel:{job}")
				c := w.Client(redlatch.Config{})
				w.Release(w.Acquire(bg, locktest.With(lock(c, "job"), redlatch.MinHold(d))))
				got := heard()
				var want []string
				if kind == "lock" {
					want = []string{"0"}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, %v: heard %q, want %q", kind, d, got, want)
				}
			})
		}
	}
}

// What has lasted long enough is released as ever, and passed on.
func TestALongJobIsReleasedAtOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var scripts []string
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			scripts = append(scripts, s)
			return next()
		}})
		h := w.Acquire(bg, c.Lock("job", redlatch.MinHold(5*time.Second)))
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, c.Lock("job")) })
		time.Sleep(5 * time.Second)
		w.Release(h)
		n := <-next
		w.Release(n)
		synctest.Wait()
		if w.Server.Exists("job") || slices.Contains(scripts, "lock.keep") {
			t.Errorf("%v", scripts)
		}
	})
}

// The request that had the lock stay was lost, or its reply, or an earlier one
// came late: nobody releases the id before its time, and it does not stay for
// ever.
func TestALateRequestDoesNotFreeWhatIsToStay(t *testing.T) {
	for _, lost := range []string{"lock.take", "lock.keep", "lock.keep not executed"} {
		t.Run(lost, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var times atomic.Int32
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if !strings.HasPrefix(lost, s) || times.Add(1) > 1 {
						return next()
					}
					if s == lost {
						_, _ = next()
					}
					return driver.Reply{}, locktest.ErrReplyLost
				}})
				other := w.Client(redlatch.Config{})
				start := time.Now()
				h := w.Acquire(bg, c.Lock("job", redlatch.MinHold(time.Minute)))
				time.Sleep(time.Second)
				w.Release(h)
				got := make(chan *redlatch.Hold)
				for _, client := range []*redlatch.Client{c, other} {
					go func() { got <- w.Acquire(bg, client.Lock("job")) }()
				}
				first := <-got
				if d := time.Since(start); d < time.Minute || d > 64*time.Second {
					t.Errorf("the lock was held for %v, want a minute", d)
				}
				w.Release(first)
				w.Release(<-got)
			})
		})
	}
}

// A renewal or an extension that was in flight at the release lengthened what was
// to stay by a whole lease.
func TestALateRenewalDoesNotLengthenWhatIsToStay(t *testing.T) {
	for name, opts := range map[string][]redlatch.PlainOption{"renewal": nil, "extension": {redlatch.Lease(25 * time.Second)}} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var arrive func()
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s != "lock.renew" {
						return next()
					}
					arrive = func() { _, _ = next() }
					return driver.Reply{}, locktest.ErrReplyLost
				}})
				h := w.Acquire(bg, c.Lock("job", append(opts, redlatch.MinHold(20*time.Second))...))
				time.Sleep(10*time.Second + time.Millisecond)
				if opts != nil {
					ended, cancel := context.WithTimeout(bg, time.Millisecond)
					defer cancel()
					_ = h.Extend(ended, time.Hour)
				}
				w.Release(h)
				arrive()
				if left := w.Server.TTL("job"); left < 9*time.Second || left > 10*time.Second {
					t.Errorf("it stays for %v", left)
				}
				start := time.Now()
				w.Release(w.Acquire(bg, c.Lock("job")))
				if d := time.Since(start); d < 9*time.Second || d > 10*time.Second {
					t.Errorf("the next one had it after %v", d)
				}
				w.WantLocksGone()
			})
		})
	}
}

// The client that has let it stay is closed: what is to stay stays.
func TestWhatIsToStayOutlastsItsClient(t *testing.T) {
	for _, uncertain := range []bool{false, true} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			var times atomic.Int32
			c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				r, err := next()
				if uncertain && s == "lock.take" && times.Add(1) == 1 {
					return driver.Reply{}, locktest.ErrReplyLost
				}
				return r, err
			}})
			h := w.Acquire(bg, c.Lock("job", redlatch.MinHold(time.Minute)))
			down := locktest.Later(func() error { return c.Shutdown(bg) })
			synctest.Wait()
			w.Release(h)
			w.OK(<-down)
			synctest.Wait()
			if left := w.Server.TTL("job"); left < 59*time.Second || left > time.Minute {
				t.Errorf("it stays for %v", left)
			}
		})
	}
}

func TestEveryWayToLetGoLetsItStay(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{MaxHold: 10 * time.Second})
		stays := func(name string, d time.Duration) {
			t.Helper()
			if left := w.Server.TTL(name); left < d-time.Second || left > d {
				t.Errorf("%s stays for %v, want %v", name, left, d)
			}
		}
		w.OK(c.Lock("do", redlatch.MinHold(time.Minute)).Do(bg, func(context.Context) error { return nil }))
		stays("do", time.Minute)

		outer := w.Acquire(bg, c.Lock("nest"))
		inner := w.Acquire(outer.Context(), c.Lock("nest", redlatch.MinHold(time.Minute)))
		w.Release(inner)
		w.Release(outer)
		stays("nest", time.Minute)

		lost := w.Acquire(bg, c.Lock("lost", redlatch.MinHold(time.Minute)))
		time.Sleep(11 * time.Second)
		w.WantErr(lost.Release(bg), redlatch.ErrLost)
		synctest.Wait()
		stays("lost", 49*time.Second)

		if was, err := admin.ForceRelease(bg, c.Lock("lost")); !was || err != nil || w.Server.Exists("lost") {
			t.Errorf("ForceRelease: %t, %v", was, err)
		}
	})
}

// wantStays wants to be told at once that so long a wait is in vain, and for how
// long the lock stays.
func wantStays(w *locktest.World, l *redlatch.Lock, wait, after time.Duration) {
	w.Helper()
	start := time.Now()
	_, err := l.TryAcquire(bg, wait)
	var busy *redlatch.BusyError
	if !isBusy(err, &busy) || (busy.RetryAfter-after).Abs() > time.Millisecond || busy.TTL != busy.RetryAfter || !redlatch.IsRetryable(err) {
		w.Errorf("got %v, want to be told to retry after %v", err, after)
	}
	if d := time.Since(start); d != 0 {
		w.Errorf("it was told after %v", d)
	}
}

// trying acquires on a goroutine, and returns when that waits.
func trying(l *redlatch.Lock, wait time.Duration) <-chan locktest.Outcome {
	c := locktest.Later(func() locktest.Outcome {
		h, err := l.TryAcquire(bg, wait)
		return locktest.Outcome{Hold: h, Err: err}
	})
	synctest.Wait()
	return c
}

// staying are the locks that can stay.
var staying = map[string]func(c *redlatch.Client, name string) *redlatch.Lock{
	"lock": func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name) },
	"spin": locktest.TypesOfLock["spin"],
}

// A caller slept for its whole wait for a lock of which everybody knew until when
// it stays.
func TestAWaitForALockThatStaysIsNotSleptThroughInVain(t *testing.T) {
	for kind, lock := range staying {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				for i, c := range []*redlatch.Client{w.Client(redlatch.Config{}), w.Client(redlatch.Config{})} { // the holder's own, and another
					h := w.Acquire(bg, locktest.With(lock(c, "job"), redlatch.MinHold(10*time.Second)))
					other := c
					if i == 1 {
						other = w.Client(redlatch.Config{})
					}
					held, start := trying(lock(other, "job"), 3*time.Second), time.Now() // a lease says nothing
					time.Sleep(time.Second)
					if !locktest.NoneYet(held) {
						t.Fatal("a wait for a holder has ended at once")
					}
					w.Release(h)
					if o := <-held; !errors.Is(o.Err, redlatch.ErrBusy) || kind == "lock" && time.Since(start) != time.Second {
						t.Errorf("who waited already: %v, after %v", o.Err, time.Since(start))
					}
					left := 10*time.Second - time.Since(start)
					for _, wait := range []time.Duration{0, time.Second, left - 2*time.Millisecond} {
						wantStays(w, lock(other, "job"), wait, left)
					}
					w.Release(w.AcquireWithin(bg, lock(other, "job"), left+5*time.Second))
					if d := time.Since(start); d < 10*time.Second || kind == "lock" && d > 10100*time.Millisecond {
						t.Errorf("a wait that is long enough got it after %v", d)
					}
				}
			})
		})
	}
}

// Those behind one that waits for as long as the lock stays slept in vain.
func TestThoseInLineBehindALongWaitLearnThatTheLockStays(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, w.Client(redlatch.Config{}).Lock("job", redlatch.MinHold(time.Minute)))
		start := time.Now()
		first := trying(c.Lock("job"), 2*time.Minute)
		short, long := trying(c.Lock("job"), 10*time.Second), trying(c.Lock("job"), 2*time.Minute)
		time.Sleep(time.Second)
		w.Release(h)
		o := <-short
		var busy *redlatch.BusyError
		if !isBusy(o.Err, &busy) || busy.RetryAfter != 59*time.Second || time.Since(start) != time.Second {
			t.Errorf("%v, after %v", o.Err, time.Since(start))
		}
		wantStays(w, c.Lock("job"), 10*time.Second, 59*time.Second)
		w.Release(w.Got(first))
		w.Release(w.Got(long))
		if d := time.Since(start); d < time.Minute || d > 61*time.Second {
			t.Errorf("they had it after %v", d)
		}
	})
}

// Those in line believed whoever is before them, however long ago that one had
// asked: the lock was free.
func TestAWaitIsNotRefusedForALockThatHasBeenFreed(t *testing.T) {
	for kind, lock := range staying {
		for name, free := range map[string]func(w *locktest.World, l *redlatch.Lock){
			"ForceRelease": func(w *locktest.World, l *redlatch.Lock) {
				if was, err := admin.ForceRelease(bg, l); !was || err != nil {
					w.Errorf("%t, %v", was, err)
				}
			},
			"DEL": func(w *locktest.World, _ *redlatch.Lock) { w.Server.Del("job") },
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
					w.Release(w.Acquire(bg, locktest.With(lock(a, "job"), redlatch.MinHold(10*time.Minute))))
					first := trying(lock(b, "job"), time.Hour)
					time.Sleep(10 * time.Second)
					free(w, lock(a, "job"))
					second := trying(lock(b, "job"), 30*time.Second)
					time.Sleep(time.Second)
					w.Release(w.Got(first))
					w.Release(w.Got(second))
				})
			})
		}
	}
}

// A reader, a fair lock's caller and a RedLock slept for their whole wait, and
// were told of a lease.
func TestAWaitOfAnyKindForANameThatStaysIsNotSleptThroughInVain(t *testing.T) {
	kinds := map[string]func(c *redlatch.Client) *redlatch.Lock{"red": func(c *redlatch.Client) *redlatch.Lock { return redlatch.RedLock(c.Lock("job")) }}
	for kind, of := range locktest.TypesOfLock {
		if kind != "group" { // which is of values
			kinds[kind] = func(c *redlatch.Client) *redlatch.Lock { return of(c, "job") }
		}
	}
	for kind, lock := range kinds {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				h := w.Acquire(bg, w.Client(redlatch.Config{}).Lock("job", redlatch.MinHold(time.Minute)))
				start := time.Now()
				waits := trying(lock(c), 30*time.Second)
				time.Sleep(time.Second)
				w.Release(h)
				if o := <-waits; !errors.Is(o.Err, redlatch.ErrBusy) || time.Since(start) > 10*time.Second {
					t.Errorf("who waited already: %v, after %v", o.Err, time.Since(start))
				}
				left := time.Minute - time.Since(start)
				wantStays(w, lock(c), time.Second, left)
				long := trying(lock(c), 2*time.Minute)
				wait, asked := trying(lock(c), 5*time.Second), time.Now()
				if o := <-wait; !errors.Is(o.Err, redlatch.ErrBusy) || time.Since(asked) > time.Second && kind != "red" {
					t.Errorf("behind one that waits for longer: %v, after %v", o.Err, time.Since(asked))
				}
				w.Release(w.Got(long))
				if d := time.Since(start); d < time.Minute || d > 63*time.Second {
					t.Errorf("a wait that is long enough got it after %v", d)
				}
				w.WantLocksGone()
			})
		})
	}
}

// Several locks as one do not wait for a member that stays for longer than they
// wait.
func TestSeveralLocksDoNotWaitInVainForOneThatStays(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		w.Release(w.Acquire(bg, w.Client(redlatch.Config{}).Lock("b", redlatch.MinHold(time.Minute))))
		several := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
		start := time.Now()
		_, err := several.TryAcquire(bg, 30*time.Second)
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) || busy.Name != "b" || time.Since(start) > time.Second || busy.RetryAfter.Round(time.Second) != time.Minute {
			t.Errorf("%v, after %v", err, time.Since(start))
		}
		w.Release(w.AcquireWithin(bg, several, 2*time.Minute))
		if d := time.Since(start); d < time.Minute || d > 62*time.Second {
			t.Errorf("a wait that is long enough got it after %v", d)
		}
	})
}

// What stays can be freed by whoever runs the server: those who wait for it hear
// that.
func TestALockThatStaysIsFreedForThoseWhoWait(t *testing.T) {
	for name, free := range map[string]func(l *redlatch.Lock, owner string) error{
		"ForceRelease": func(l *redlatch.Lock, _ string) error {
			_, err := admin.ForceRelease(bg, l)
			return err
		},
		"ReleaseID": func(l *redlatch.Lock, owner string) error { return l.ReleaseID(bg, owner) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				w.Release(w.Acquire(bg, w.Client(redlatch.Config{}).Lock("job", redlatch.MinHold(time.Hour))))
				c := w.Client(redlatch.Config{})
				info, err := admin.LockInfo(bg, c.Lock("job"))
				w.OK(err)
				waiter := trying(c.Lock("job"), 2*time.Hour)
				start := time.Now()
				w.OK(free(w.Client(redlatch.Config{}).Lock("job"), info.Holders[0].Owner))
				h := w.Got(waiter)
				if d := time.Since(start); d != 0 {
					t.Errorf("it had it after %v", d)
				}
				w.Release(h)
				w.WantLocksGone()
			})
		})
	}
}

// An extension of the id that keeps a lock locked all out for as long. Nobody
// could free it sooner from the client that had it, which said that the Hold was
// to be used: that is over.
func TestTheIDThatKeepsALockIsReleasedAndNotExtended(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		for _, by := range []*redlatch.Lock{c.Lock("job"), other.Lock("job")} {
			h := w.Acquire(bg, c.Lock("job", redlatch.MinHold(time.Minute)))
			w.WantErr(c.Lock("job").ReleaseID(bg, h.ID()), redlatch.ErrInvalid)
			w.Release(h)
			_, err := other.Lock("job").TryAcquire(bg, 0)
			var busy *redlatch.BusyError
			if !isBusy(err, &busy) || strings.Contains(err.Error(), "is held by") || !strings.Contains(err.Error(), "was released, and MinHold keeps it for another 1m0s") {
				t.Errorf("%v", err)
			}
			w.WantErr(by.ReleaseID(bg, h.ID()), redlatch.ErrNotHeld)
			w.WantErr(by.ExtendID(bg, h.ID(), time.Hour), redlatch.ErrNotHeld)
			w.WantErr(by.ExtendID(bg, busy.Owner, time.Hour), redlatch.ErrNotHeld)
			if left := w.Server.TTL("job"); left != time.Minute {
				t.Errorf("it stays for %v", left)
			}
			w.OK(by.ReleaseID(bg, busy.Owner))
			w.WantLocksGone()
			w.WantErr(by.ReleaseID(bg, busy.Owner), redlatch.ErrNotHeld)
		}
	})
}

func TestADroppedHoldStaysAsOneThatIsReleased(t *testing.T) {
	dropped := make(chan struct{}, 1)
	w := locktest.InRealTime(t)
	c := w.Client(redlatch.Config{}, observe.Hooks{Dropped: func(observe.DroppedEvent) { dropped <- struct{}{} }})
	w.Acquire(bg, c.Lock("job", redlatch.MinHold(time.Hour)))
	for gone := false; !gone; {
		runtime.GC()
		select {
		case <-dropped:
			gone = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	if !locktest.Within(locktest.Generous, func() bool { return w.Server.TTL("job") > 30*time.Minute }) {
		t.Errorf("it stays for %v", w.Server.TTL("job"))
	}
}

func TestMinHoldIsRefusedWhereNothingStays(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		stay := redlatch.MinHold(time.Second)
		for what, call := range map[string]func() error{
			"multi": func() error {
				_, err := redlatch.MultiLock(c.Lock("a", stay), c.Lock("b", stay)).Acquire(bg)
				return err
			},
			"red": func() error {
				_, err := redlatch.RedLock(c.Lock("a", stay), other.Lock("a", stay)).Acquire(bg)
				return err
			},
			"negative": func() error { _, err := c.Lock("a", redlatch.MinHold(-time.Second)).Acquire(bg); return err },
			"striped": func() error {
				return c.StripedLock("a", 2, redlatch.MinHold(1<<62)).For("x").ReleaseID(bg, c.ID()+":1")
			},
			"lease": func() error { _, err := c.Lock("a", stay, redlatch.Lease(time.Second/2)).Acquire(bg); return err },
			"spin": func() error {
				_, err := redisson.SpinLock(c, "a", nil, redlatch.Lease(time.Second/2), stay).TryAcquire(bg, 0)
				return err
			},
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), "MinHold") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if w.Server.Exists("a") {
			t.Error("something was acquired")
		}
	})
}

// A lock that was acquired as a fair one and re-entered as a plain one ended the
// program when it was released.
func TestMinHoldIsRefusedInsideALockOfATypeThatCannotStay(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l, stay := c.Lock("job"), redlatch.MinHold(time.Minute)
		outer := w.Acquire(bg, c.FairLock("job"))
		_, err := locktest.With(l, stay).Acquire(outer.Context())
		w.WantErr(err, redlatch.ErrInvalid)
		owner := redlatch.WithOwner(outer.Context())
		inner := w.Acquire(owner, l)
		_, err = locktest.With(l, stay).Acquire(owner)
		w.WantErr(err, redlatch.ErrInvalid)
		w.Release(inner)
		w.Release(outer)
		w.WantLocksGone()
	})
}

func TestMinHoldOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		for _, d := range []time.Duration{28 * time.Second, time.Hour} { // less and more than the lease
			h, err := c.Lock("job", redlatch.MinHold(d)).Acquire(bg)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Release(bg); err != nil {
				t.Fatal(err)
			}
			left, ok := s.MustDo("PTTL", "job").(int64)
			if ms := time.Duration(left) * time.Millisecond; !ok || ms > d || ms < d-locktest.Generous {
				t.Errorf("it stays for %v, want %v", ms, d)
			}
			_, err = c.Lock("job").TryAcquire(bg, 0)
			var busy *redlatch.BusyError
			if !isBusy(err, &busy) || !strings.HasPrefix(busy.Owner, c.ID()+":") {
				t.Errorf("Try: %v", err)
			}
			start := time.Now()
			_, err = locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{}).Lock("job").TryAcquire(bg, d/2)
			if !isBusy(err, &busy) || busy.RetryAfter <= d/2 || busy.RetryAfter > d || time.Since(start) > d/2-time.Second {
				t.Errorf("a shorter wait: %v, after %v", err, time.Since(start))
			}
			s.MustDo("DEL", "job")
		}
	})
}

func isBusy(err error, busy **redlatch.BusyError) bool {
	b, ok := err.(*redlatch.BusyError) //nolint:errorlint // that is what Try returns
	*busy = b
	return ok
}
