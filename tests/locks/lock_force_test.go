package locks

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestAForceReleaseRevokesTheHoldBeforeTheLockIsGivenAway(t *testing.T) {
	for _, tt := range []string{"own client", "other client"} {
		t.Run(tt, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				forcer := c
				if tt == "other client" {
					forcer = w.Client(redlatch.Config{})
				}
				h := w.Acquire(bg, c.Lock("orders"))
				synctest.Wait()
				start := time.Now()
				freed, err := admin.ForceRelease(bg, forcer.Lock("orders"))
				if err != nil || !freed {
					t.Fatalf("freed %v, %v", freed, err)
				}
				w.WantErr(h.Err(), redlatch.ErrLost)
				if d := time.Since(start); d > 10*time.Millisecond {
					t.Fatalf("took %v", d)
				}
				synctest.Wait()
				if w.Server.Exists("orders") {
					t.Fatal("still held")
				}
				freed, err = admin.ForceRelease(bg, forcer.Lock("orders"))
				if err != nil || freed {
					t.Fatalf("freed %v, %v", freed, err)
				}
			})
		})
	}
}

// A name that is no UTF-8 came to its holder as another name: the lock was given
// away after a second, and the holder went on.
func TestAHolderIsAskedToLetGoWhateverTheLocksNameIs(t *testing.T) {
	for _, name := range []string{"caf\xe9", "\x00\xff", "\"<&>\u2028", "{\xe9}"} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c, forcer := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
			h := w.Acquire(bg, c.Lock(name))
			synctest.Wait()
			start := time.Now()
			freed, err := admin.ForceRelease(bg, forcer.Lock(name))
			var lost *redlatch.LostError
			if err != nil || !freed || !errors.As(h.Err(), &lost) || lost.Reason != redlatch.LostRevoked || time.Since(start) > 10*time.Millisecond {
				t.Errorf("%q: freed %v, %v, after %v; the holder: %v", name, freed, err, time.Since(start), h.Err())
			}
		})
	}
}

// Whoever may publish on the channels by which clients ask one another, as every
// user of redlatch may, cannot end a hold by that: only who may write the lock
// can. However many messages come, few are looked at, and none that is about
// nothing held here; none of them is answered.
func TestAMessageAloneRevokesNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var looks atomic.Int64
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "control.asked" {
				looks.Add(1)
				time.Sleep(time.Millisecond)
			}
			return next()
		}})
		h := w.Acquire(bg, c.Lock("orders"))
		synctest.Wait()
		published := w.Eavesdrop()
		before := runtime.NumGoroutine()
		const messages = 10000
		for i := range messages {
			owner := h.ID()
			if i%2 == 0 {
				owner += "1" // nobody's
			}
			w.Server.Publish("redlatch_control:"+c.ID(), fmt.Sprintf(`{"op":"revoke","name":"orders","owner":%q,"from":"me","nonce":"1"}`, owner))
		}
		if n := runtime.NumGoroutine() - before; n > 20 {
			t.Errorf("%d goroutines more", n)
		}
		time.Sleep(10 * time.Second)
		w.OK(h.Err())
		if n := looks.Load(); n == 0 || n > messages/10 {
			t.Errorf("looked %d times", n)
		}
		if got := published(); len(got) > messages {
			t.Errorf("%d answers", len(got)-messages)
		}
		if freed, err := admin.ForceRelease(bg, w.Client(redlatch.Config{}).Lock("orders")); err != nil || !freed {
			t.Errorf("freed %v, %v", freed, err)
		}
		w.WantErr(h.Err(), redlatch.ErrLost)
	})
}

// The holder is told although the answer to its look whether it may be asked is
// lost.
func TestALostReplyDoesNotKeepAHolderFromBeingTold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		lost := 0
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "control.asked" {
				if lost++; lost <= 2 {
					return driver.Reply{}, locktest.ErrReplyLost
				}
			}
			return r, err
		}})
		h := w.Acquire(bg, c.Lock("orders"))
		synctest.Wait()
		if freed, err := admin.ForceRelease(bg, w.Client(redlatch.Config{}).Lock("orders")); err != nil || !freed {
			t.Errorf("freed %v, %v", freed, err)
		}
		w.WantErr(h.Err(), redlatch.ErrLost)
	})
}

// A holder that does not answer keeps the lock for a second at most, and many
// together no longer.
func TestDeadHoldersDelayAForceReleaseForASecondAtMost(t *testing.T) {
	for _, dead := range []int{1, 50} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			readers := w.Client(redlatch.Config{}).ReadWriteLock("orders").Read()
			w.Server.HSet("orders", "mode", "read")
			for i := range dead {
				owner := fmt.Sprintf("0f8fad5b-d9cb-869f-a165-70867728950e:%d", i)
				w.Server.HSet("orders", owner, "1")
				w.OK(w.Server.Set("{orders}:"+owner+":rwlock_timeout:1", "1"))
			}
			w.Server.SetTTL("orders", time.Hour)
			start := time.Now()
			if freed, err := admin.ForceRelease(bg, readers); err != nil || !freed || w.Server.Exists("orders") {
				t.Fatalf("freed %v, %v", freed, err)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("%d dead holders: it took %v", dead, took)
			}
		})
	}
}

// A client subscribes to its channel when it has had its first owner id. Who asked
// it before that gave its lock away at once, and the holder went on.
func TestAHolderThatHearsNobodyYetIsToldBeforeAForceRelease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		p := w.Proxy()
		p.SetRule(func(r faultnet.Request) faultnet.Action {
			if r.Args[0] == "SUBSCRIBE" && strings.HasPrefix(r.Args[1], "redlatch_control:") {
				return faultnet.Delay(500 * time.Millisecond)
			}
			return faultnet.Pass
		})
		h := w.Acquire(bg, w.ClientWith(w.DriverBy(p.Dial), redlatch.Config{}).Lock("orders"))
		if freed, err := admin.ForceRelease(bg, w.Client(redlatch.Config{}).Lock("orders")); err != nil || !freed {
			t.Errorf("freed %v, %v", freed, err)
		}
		var lost *redlatch.LostError
		if !errors.As(h.Err(), &lost) || lost.Reason != redlatch.LostRevoked {
			t.Errorf("the lock is free, and its holder was told: %v", h.Err())
		}
	})
}

// A revocation is confirmed although the take it is about is still in flight.
func TestARevocationEndsATakeInFlight(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "lock.take" {
				time.Sleep(2 * time.Second) // a slow reply, in time
			}
			return r, err
		}}
		a, b := w.Tapped(redlatch.Config{}, d), w.Client(redlatch.Config{})
		hc := locktest.Later(func() *redlatch.Hold { h, _ := a.Lock("orders").Acquire(bg); return h })
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		ok, err := admin.ForceRelease(bg, b.Lock("orders"))
		t.Log(ok, err, time.Since(start))
		h2 := w.Acquire(bg, b.Lock("orders"))
		time.Sleep(time.Minute)
		select {
		case h := <-hc:
			t.Errorf("two holders; the revocation was confirmed: %v, %v", h.Err(), h2.Err())
		default:
		}
		w.Release(h2)
		w.Release(<-hc)
	})
}

// A force release that finds nothing, or is executed twice, wakes nobody for
// what it has not done.
func TestAForceReleaseTellsOnlyWhatItFreed(t *testing.T) {
	for name, of := range locktest.TypesOfLock {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				forced := 0
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if strings.HasSuffix(s, ".force") {
						forced++
						_, _ = next()
					}
					return next()
				}})
				published := w.Eavesdrop()
				if ok, err := admin.ForceRelease(bg, of(c, "orders")); ok || err != nil {
					t.Errorf("of a free lock: %v, %v", ok, err)
				}
				if got := published(); len(got) > 0 {
					t.Errorf("of a free lock: published %q", got)
				}
				dead := w.Mortal()
				w.Acquire(bg, of(dead.Client, "orders"))
				dead.Dead.Store(true)
				_, err := admin.ForceRelease(bg, of(c, "orders"))
				want := 1
				if name == "spin" || name == "fair" {
					want = 0 // nobody listens, nobody waits
				}
				if got := published(); err != nil || len(got) != want || forced == 0 {
					t.Errorf("%v: published %q, %d requests", err, got, forced)
				}
				time.Sleep(5 * time.Second) // the word to the holder, which it has not taken
				w.WantNoKeys()
			})
		})
	}
}

// A waiter of Redisson that hears of no release sleeps for as long as the lock
// would have lasted.
func TestWhoFreesALockSaysSo(t *testing.T) {
	for name, of := range locktest.TypesOfLock {
		if name == "spin" {
			continue // nobody listens
		}
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a, b, other := w.Mortal(), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				waiter := of(b, "orders")
				if name == "read" {
					waiter = b.ReadWriteLock("orders").Write()
				}
				for _, dead := range []bool{false, true} {
					h := w.Acquire(bg, of(a.Client, "orders"))
					next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, waiter) })
					time.Sleep(1100 * time.Millisecond)
					start := time.Now()
					if dead {
						a.Dead.Store(true)
						start = start.Add(time.Second) // for its answer
						if ok, err := admin.ForceRelease(bg, of(other, "orders")); !ok || err != nil {
							t.Errorf("%v, %v", ok, err)
						}
					} else {
						w.Release(h)
					}
					w.Release(<-next)
					if took := time.Since(start); took > 5*time.Millisecond {
						t.Errorf("holder dead: %t; the next one had the lock %v later", dead, took)
					}
				}
			})
		})
	}
}
