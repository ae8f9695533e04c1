package redlatch_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

func TestWaitersOfOneProcessGetTheLockInOrder(t *testing.T) {
	for name, handOff := range map[string]redlatch.HandOff{"local": redlatch.HandOffLocal, "none": redlatch.HandOffNone} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				c := w.client(redlatch.Config{HandOff: handOff})
				h := w.acquire(c.Lock("orders"), bg)
				var order []int
				var wg sync.WaitGroup
				for i := range 100 {
					wg.Go(func() {
						h, err := c.Lock("orders").Acquire(bg)
						if err != nil {
							t.Error(err)
							return
						}
						order = append(order, i)
						if err := h.Release(bg); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				w.release(h)
				wg.Wait()
				for i, got := range order {
					if i != got {
						t.Fatalf("order %v", order)
					}
				}
				if w.server.Exists("orders") {
					t.Fatal("still held")
				}
			})
		})
	}
}

func TestAHandOffNeedsNoRoundTripAndShowsOneOwner(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg)
		next := later(func() *redlatch.Hold { return w.acquire(c.Lock("orders"), bg) })
		synctest.Wait()
		w.server.SetError("LOADING a hand-off does not ask")
		w.release(h)
		h2 := <-next
		w.server.SetError("")
		if h2.Owner() != h.Owner() {
			t.Fatalf("owner %s became %s", h.Owner(), h2.Owner())
		}
		w.release(h2)
	})
}

func TestALeaseIsTakenOverWithAnOwnerAndATTLOfItsOwn(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg)
		next := later(func() *redlatch.Hold {
			return w.acquire(c.Lock("orders"), bg, redlatch.Lease(5*time.Second))
		})
		synctest.Wait()
		w.release(h)
		leased := <-next
		if leased.Owner() == h.Owner() || w.count(leased) != "1" {
			t.Fatalf("owner %s, count %s", leased.Owner(), w.count(leased))
		}
		if ttl := w.server.TTL("orders"); ttl > 5*time.Second {
			t.Fatalf("TTL %v, want the lease of 5s", ttl)
		}
		next = later(func() *redlatch.Hold { return w.acquire(c.Lock("orders"), bg) })
		synctest.Wait()
		w.release(leased)
		kept := <-next
		time.Sleep(time.Minute)
		if kept.Err() != nil {
			t.Fatalf("the watchdog did not take over: %v", kept.Err())
		}
		w.release(kept)
	})
}

func TestALostHoldHandsNothingOver(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg)
		next := later(func() error { _, err := c.Lock("orders").Acquire(bg, redlatch.Wait(time.Second)); return err })
		synctest.Wait()
		w.server.Del("orders")
		thief := w.acquire(other.Lock("orders"), bg)
		w.wantErr(<-next, redlatch.ErrBusy) // it does not know yet
		next = later(func() error { _, err := c.Lock("orders").Acquire(bg, redlatch.Wait(15*time.Second)); return err })
		<-h.Context().Done()
		w.wantErr(h.Release(bg), redlatch.ErrLost)
		w.wantErr(<-next, redlatch.ErrBusy)
		w.release(thief)
	})
}

func TestAForceReleaseRevokesTheHoldBeforeTheLockIsGivenAway(t *testing.T) {
	for _, tt := range []string{"own client", "other client"} {
		t.Run(tt, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				c := w.client(redlatch.Config{})
				forcer := c
				if tt == "other client" {
					forcer = w.client(redlatch.Config{})
				}
				h := w.acquire(c.Lock("orders"), bg)
				synctest.Wait()
				start := time.Now()
				freed, err := forcer.Lock("orders").ForceRelease(bg)
				if err != nil || !freed {
					t.Fatalf("freed %v, %v", freed, err)
				}
				w.wantErr(h.Err(), redlatch.ErrLost)
				if d := time.Since(start); d > 10*time.Millisecond {
					t.Fatalf("took %v", d)
				}
				synctest.Wait()
				if w.server.Exists("orders") {
					t.Fatal("still held")
				}
				freed, err = forcer.Lock("orders").ForceRelease(bg)
				if err != nil || freed {
					t.Fatalf("freed %v, %v", freed, err)
				}
			})
		})
	}
}

// Whoever may publish on the channels by which clients ask one another, as every
// user of redlatch may, cannot end a hold by that: only who may write the lock can.
// However many messages come, few are looked at, and none that is about nothing held
// here; none of them is answered.
func TestAMessageAloneRevokesNothing(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var looks atomic.Int64
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "control.asked" {
				looks.Add(1)
				time.Sleep(time.Millisecond)
			}
			return next()
		}})
		h := w.acquire(c.Lock("orders"), bg)
		synctest.Wait()
		published := w.eavesdrop()
		before := runtime.NumGoroutine()
		const messages = 10000
		for i := range messages {
			owner := h.Owner()
			if i%2 == 0 {
				owner += "1" // nobody's
			}
			w.server.Publish("redlatch_control:"+c.ID(), fmt.Sprintf(`{"op":"revoke","name":"orders","owner":%q,"from":"me","nonce":"1"}`, owner))
		}
		if n := runtime.NumGoroutine() - before; n > 20 {
			t.Errorf("%d goroutines more", n)
		}
		time.Sleep(10 * time.Second)
		w.no(h.Err())
		if n := looks.Load(); n == 0 || n > messages/10 {
			t.Errorf("looked %d times", n)
		}
		if got := published(); len(got) > messages {
			t.Errorf("%d answers", len(got)-messages)
		}
		if freed, err := w.client(redlatch.Config{}).Lock("orders").ForceRelease(bg); err != nil || !freed {
			t.Errorf("freed %v, %v", freed, err)
		}
		w.wantErr(h.Err(), redlatch.ErrLost)
	})
}

// The holder is told although the answer to its look whether it may be asked is lost.
func TestALostReplyDoesNotKeepAHolderFromBeingTold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		lost := 0
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "control.asked" {
				if lost++; lost <= 2 {
					return driver.Reply{}, errTapUnknown
				}
			}
			return r, err
		}})
		h := w.acquire(c.Lock("orders"), bg)
		synctest.Wait()
		if freed, err := w.client(redlatch.Config{}).Lock("orders").ForceRelease(bg); err != nil || !freed {
			t.Errorf("freed %v, %v", freed, err)
		}
		w.wantErr(h.Err(), redlatch.ErrLost)
	})
}

// A holder that does not answer keeps the lock for a second at most.
func TestAForceReleaseDoesNotWaitForADeadHolder(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		w.server.HSet("orders", "0f8fad5b-d9cb-869f-a165-70867728950e:7", "1")
		w.server.SetTTL("orders", time.Hour)
		if freed, err := c.Lock("orders").ForceRelease(bg); err != nil || !freed || w.server.Exists("orders") {
			t.Fatalf("freed %v, %v", freed, err)
		}
	})
}

func TestNoHandOffAfterAForceReleaseUnderLocalWaiters(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, forcer := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		var mu sync.Mutex
		old := "" // the owner that was dispossessed
		var forced time.Time
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for ctx.Err() == nil {
					h, err := c.Lock("orders").Acquire(ctx)
					if err != nil {
						return
					}
					mu.Lock()
					if old != "" && h.Owner() == old && time.Since(forced) > 50*time.Millisecond {
						t.Errorf("handed off %v after the force release", time.Since(forced))
					}
					mu.Unlock()
					time.Sleep(time.Millisecond)
					_ = h.Release(bg)
				}
			})
		}
		for range 20 {
			time.Sleep(97 * time.Millisecond)
			info, err := forcer.Lock("orders").Info(bg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := forcer.Lock("orders").ForceRelease(bg); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			forced = time.Now()
			old = ""
			if info.Held() {
				old = info.Holders[0].Owner
			}
			mu.Unlock()
		}
		cancel()
		wg.Wait()
	})
}

// Of several processes that want a lock all the time each gets its share,
// however many goroutines it has.
func TestProcessesTakeTurns(t *testing.T) {
	const processes = 4
	for _, x := range []struct {
		goroutines, turns int
		section           time.Duration
	}{
		{1, 1500, 0},
		{1, 1500, time.Millisecond},
		{8, 4000, 50 * time.Microsecond}, // a quantum ends by the number of hand-offs; in no time it would never
		{8, 4000, time.Millisecond},      // it ends by its time
	} {
		t.Run(fmt.Sprintf("%dx%d/section=%v", processes, x.goroutines, x.section), func(t *testing.T) {
			inFakeTime(t, func(w *world) { w.turns(processes, x.goroutines, x.turns, x.section) })
		})
	}
}

func (w *world) turns(processes, goroutines, turns int, section time.Duration) {
	w.Helper()
	// Written by whoever has the lock.
	shares := make([]int, processes)
	inside, most, total := 0, 0, 0

	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var wg sync.WaitGroup
	for p := range processes {
		c := w.clientOver(200*time.Microsecond, redlatch.Config{})
		for range goroutines {
			wg.Go(func() {
				for ctx.Err() == nil {
					h, err := c.Lock("orders").Acquire(ctx)
					if err != nil {
						if ctx.Err() == nil {
							w.Error(err)
						}
						return
					}
					inside++
					most = max(most, inside)
					shares[p]++
					if total++; total == turns {
						cancel()
					}
					time.Sleep(section)
					inside--
					if err := h.Release(bg); err != nil {
						w.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if most != 1 {
		w.Errorf("%d inside at once", most)
	}
	for _, n := range shares {
		if n < total/5 || n > total*3/10 {
			w.Errorf("shares %v of %d, want between 20 and 30 %% each", shares, total)
			break
		}
	}
}
