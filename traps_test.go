package redlatch_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// Redisson's read unlock cuts the lock's TTL down to that of the longest read
// hold, also below the lease of a writer who reads.
func TestTheEndOfAReadInsideAWriteLeavesTheWriterItsTTL(t *testing.T) {
	for _, how := range []string{"released", "expired"} {
		inFakeTime(t, func(w *world) {
			rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
			wr := w.acquire(rw.Write(), bg, redlatch.Lease(time.Hour))
			rd := w.acquire(rw.Read(), wr.Context(), redlatch.Lease(time.Second))
			if how == "released" {
				w.release(rd)
			}
			time.Sleep(2 * time.Second)
			w.wantFields(how, "orders", map[string]string{"mode": "write", wr.Owner() + ":write": "1", wr.Owner(): "1"})
			if ttl := w.server.TTL("orders"); time.Now().Add(ttl).Before(wr.Expires()) || wr.Err() != nil {
				t.Errorf("%s: Redis keeps the lock for %v, the writer trusts it for %v (%v)", how, ttl, time.Until(wr.Expires()), wr.Err())
			}
			if how == "expired" {
				w.wantErr(rd.Release(bg), redlatch.ErrLost)
			}
			w.release(wr)
			w.wantNoKeys()
		})
	}
}

// Redisson waits without limit for a lock without a TTL. Nobody says so when it
// goes.
func TestALockWithoutATTLIsPolled(t *testing.T) {
	for name, of := range typesOfLock {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				c := w.client(redlatch.Config{})
				w.server.HSet("orders", java, "1")
				if name == "read" || name == "write" {
					w.server.HSet("orders", "mode", "write")
				}
				got := later(func() *redlatch.Hold { return w.acquire(of(c, "orders"), bg) })
				time.Sleep(time.Minute)
				if !none(got) {
					t.Fatal("two holders")
				}
				w.server.Del("orders")
				start := time.Now()
				w.release(<-got)
				if took := time.Since(start); took > 2500*time.Millisecond {
					t.Errorf("found out after %v", took)
				}
				synctest.Wait()
				w.wantNoKeys()
			})
		})
	}
}

// A key of another type blocks Redisson's callers for good, or its scripts fail
// in the middle.
func TestAKeyThatIsNoLockIsRefusedAtOnceAndLeftAlone(t *testing.T) {
	queue, timeouts, alive := fairKeys("orders")
	for name, of := range typesOfLock {
		keys := []string{"orders"}
		if name == "fair" {
			keys = append(keys, queue, timeouts, alive)
		}
		for _, key := range keys {
			t.Run(name+" "+key, func(t *testing.T) {
				inFakeTime(t, func(w *world) {
					c := w.client(redlatch.Config{})
					if err := w.server.Set(key, "text"); err != nil {
						t.Fatal(err)
					}
					if key != "orders" && key != queue { // or nobody looks at it
						w.server.HSet("orders", java, "1")
						w.java("orders", 1, time.Hour)
					}
					start := time.Now()
					_, err := of(c, "orders").Acquire(bg)
					var re *driver.RunError
					if !errors.As(err, &re) || re.Code != "WRONGTYPE" || time.Since(start) > 0 {
						t.Errorf("after %v: %v", time.Since(start), err)
					}
					time.Sleep(time.Minute)
					if text, _ := w.server.Get(key); text != "text" {
						t.Errorf("the key has %q", text)
					}
				})
			})
		}
	}
}

// Redisson's delete() of a fair lock drops the queue and wakes nobody.
func TestTheWaitersOfADeletedFairLockLineUpAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.mortal()
		h := w.acquire(a.FairLock("orders"), bg)
		var waits []<-chan outcome
		for range 3 {
			waits = append(waits, w.waiting(b.FairLock("orders"), bg))
		}
		queue, timeouts, _ := fairKeys("orders")
		for _, key := range []string{"orders", queue, timeouts} {
			w.server.Del(key)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for _, c := range waits {
			wg.Go(func() { w.release(w.got(c)) })
		}
		wg.Wait()
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		w.wantErr(h.Release(bg), redlatch.ErrLost)
		w.wantNothing()
	})
}

// The first attempt of a take comes late, when the hold has been extended.
func TestALateTakeDoesNotCutWhatAnExtensionHasGiven(t *testing.T) {
	for name, of := range typesOfLock {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				var take string
				var taken []string
				d := &tap{}
				d.hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if strings.HasSuffix(s, ".take") {
						take, taken = s, slices.Clone(args)
					}
					return next()
				}
				h := w.acquire(of(w.tapped(redlatch.Config{}, d), "orders"), bg, redlatch.Lease(5*time.Second))
				if err := h.Extend(bg, time.Hour); err != nil {
					t.Fatal(err)
				}
				d.again(take, taken)()
				for _, key := range w.server.Keys() {
					if ttl := w.server.TTL(key); time.Now().Add(ttl).Before(h.Expires()) {
						t.Errorf("%s lasts for %v, the hold is trusted for %v", key, ttl, time.Until(h.Expires()))
					}
				}
				w.release(h)
				w.wantNoKeys()
			})
		})
	}
}

// In Redisson a re-entry, and the unlock that ends it, set the TTL, also to a
// shorter one.
func TestAReentryCutsNothingShort(t *testing.T) {
	for name, of := range typesOfLock {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				l := of(w.client(redlatch.Config{}), "orders")
				outer := w.acquire(l, bg, redlatch.Lease(time.Hour))
				want := func(when string) {
					t.Helper()
					if ttl := w.server.TTL("orders"); time.Now().Add(ttl).Before(outer.Expires()) {
						t.Errorf("%s: the lock lasts for %v, the outer hold is trusted for %v", when, ttl, time.Until(outer.Expires()))
					}
				}
				for _, opts := range [][]redlatch.Option{{redlatch.Lease(time.Second)}, nil} {
					inner := w.acquire(l, outer.Context(), opts...)
					want("re-entered")
					w.release(inner)
					want("left again")
				}
				w.release(outer)
				w.wantNoKeys()
			})
		})
	}
}

// For Redisson's scripts no answer means that the lock is the caller's.
func TestAnAnswerThatSaysNothingIsNoLock(t *testing.T) {
	for name, of := range typesOfLock {
		for _, answer := range []driver.Reply{{}, {Kind: driver.ReplyString, Str: "OK"}, {Kind: driver.ReplyList}} {
			t.Run(fmt.Sprint(name, " ", answer.Kind), func(t *testing.T) {
				inFakeTime(t, func(w *world) {
					c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						if strings.HasSuffix(s, ".take") {
							return answer, nil
						}
						return next()
					}})
					if h, err := of(c, "orders").Acquire(bg); err == nil || h != nil || errors.Is(err, redlatch.ErrBusy) {
						t.Errorf("%v, %v", h, err)
					}
					if h, err := of(c, "orders").Try(bg); err == nil || h != nil {
						t.Errorf("Try: %v, %v", h, err)
					}
				})
			})
		}
	}
}

// A force release that finds nothing, or is executed twice, wakes nobody for
// what it has not done.
func TestAForceReleaseTellsOnlyWhatItFreed(t *testing.T) {
	for name, of := range typesOfLock {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				forced := 0
				c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if strings.HasSuffix(s, ".force") {
						forced++
						_, _ = next()
					}
					return next()
				}})
				published := w.eavesdrop()
				if ok, err := of(c, "orders").ForceRelease(bg); ok || err != nil {
					t.Errorf("of a free lock: %v, %v", ok, err)
				}
				if got := published(); len(got) > 0 {
					t.Errorf("of a free lock: published %q", got)
				}
				dead := w.mortal()
				w.acquire(of(dead.Client, "orders"), bg)
				dead.dead.Store(true)
				_, err := of(c, "orders").ForceRelease(bg)
				want := 1
				if name == "spin" || name == "fair" {
					want = 0 // nobody listens, nobody waits
				}
				if got := published(); err != nil || len(got) != want || forced == 0 {
					t.Errorf("%v: published %q, %d requests", err, got, forced)
				}
				time.Sleep(5 * time.Second) // the word to the holder, which it has not taken
				w.wantNoKeys()
			})
		})
	}
}

// In Redisson everybody's unlock of a fair lock that is gone succeeds, and until
// 3.43 that of a read-write lock.
func TestTheReleaseOfALockThatIsGoneIsNoSuccess(t *testing.T) {
	for name, of := range typesOfLock {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				l := of(w.client(redlatch.Config{}), "orders")
				h := w.acquire(l, bg)
				published := w.eavesdrop()
				for _, key := range w.server.Keys() {
					w.server.Del(key)
				}
				w.wantErr(h.Release(bg), redlatch.ErrLost)
				if got := published(); len(got) > 0 {
					t.Errorf("published %q", got)
				}
				w.wantNoKeys()
			})
		})
	}
}

// A waiter of Redisson that hears of no release sleeps for as long as the lock
// would have lasted.
func TestWhoFreesALockSaysSo(t *testing.T) {
	for name, of := range typesOfLock {
		if name == "spin" {
			continue // nobody listens
		}
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				a, b, other := w.mortal(), w.client(redlatch.Config{}), w.client(redlatch.Config{})
				waiter := of(b, "orders")
				if name == "read" {
					waiter = b.ReadWriteLock("orders").Write()
				}
				for _, dead := range []bool{false, true} {
					h := w.acquire(of(a.Client, "orders"), bg)
					next := later(func() *redlatch.Hold { return w.acquire(waiter, bg) })
					time.Sleep(1100 * time.Millisecond)
					start := time.Now()
					if dead {
						a.dead.Store(true)
						start = start.Add(time.Second) // for its answer
						if ok, err := of(other, "orders").ForceRelease(bg); !ok || err != nil {
							t.Errorf("%v, %v", ok, err)
						}
					} else {
						w.release(h)
					}
					w.release(<-next)
					if took := time.Since(start); took > 5*time.Millisecond {
						t.Errorf("holder dead: %t; the next one had the lock %v later", dead, took)
					}
				}
			})
		})
	}
}

// Redisson takes a lease of Integer.MAX_VALUE hours, which is more than Go's
// durations can be.
func TestALeaseOfAQuarterOfAMillionYearsIsWaitedForAsAnyOther(t *testing.T) {
	const hours = math.MaxInt32
	for name, of := range typesOfLock {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				takes := 0
				c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					if strings.HasSuffix(s, ".take") && len(r.List) > 1 {
						takes++
						r.List[0].Int = hours * time.Hour.Milliseconds()
					}
					return r, err
				}})
				w.foreigner("orders", java).read(time.Hour)
				l := of(c, "orders")
				if name == "read" {
					w.server.HSet("orders", "mode", "write")
				}
				_, err := l.Try(bg)
				var busy *redlatch.BusyError
				if !errors.As(err, &busy) || busy.TTL < 100*365*24*time.Hour {
					t.Errorf("%v", err)
				}
				_, err = l.Acquire(bg, redlatch.Wait(time.Minute))
				if w.wantErr(err, redlatch.ErrBusy); name != "spin" && takes > 120 {
					t.Errorf("%d tries in a minute", takes)
				}
			})
		})
	}
}
