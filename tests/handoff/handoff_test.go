package handoff

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestWaitersOfOneProcessGetTheLockInOrder(t *testing.T) {
	for name, noHandOff := range map[string]bool{"local": false, "none": true} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{NoHandOff: noHandOff})
				h := w.Acquire(bg, c.Lock("orders"))
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
				w.Release(h)
				wg.Wait()
				for i, got := range order {
					if i != got {
						t.Fatalf("order %v", order)
					}
				}
				if w.Server.Exists("orders") {
					t.Fatal("still held")
				}
			})
		})
	}
}

func TestAHandOffNeedsNoRoundTripAndShowsOneOwner(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, c.Lock("orders")) })
		synctest.Wait()
		w.Server.SetError("LOADING a hand-off does not ask")
		w.Release(h)
		h2 := <-next
		w.Server.SetError("")
		if h2.ID() != h.ID() {
			t.Fatalf("owner %s became %s", h.ID(), h2.ID())
		}
		w.Release(h2)
	})
}

func TestALeaseIsTakenOverWithAnOwnerAndATTLOfItsOwn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		next := locktest.Later(func() *redlatch.Hold {
			return w.Acquire(bg, c.Lock("orders", redlatch.Lease(5*time.Second)))
		})
		synctest.Wait()
		w.Release(h)
		leased := <-next
		if leased.ID() == h.ID() || w.Count(leased) != "1" {
			t.Fatalf("owner %s, count %s", leased.ID(), w.Count(leased))
		}
		if ttl := w.Server.TTL("orders"); ttl > 5*time.Second {
			t.Fatalf("TTL %v, want the lease of 5s", ttl)
		}
		next = locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, c.Lock("orders")) })
		synctest.Wait()
		w.Release(leased)
		kept := <-next
		time.Sleep(time.Minute)
		if kept.Err() != nil {
			t.Fatalf("the watchdog did not take over: %v", kept.Err())
		}
		w.Release(kept)
	})
}

func TestALostHoldHandsNothingOver(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		next := locktest.Later(func() error { _, err := c.Lock("orders").TryAcquire(bg, time.Second); return err })
		synctest.Wait()
		w.Server.Del("orders")
		thief := w.Acquire(bg, other.Lock("orders"))
		w.WantErr(<-next, redlatch.ErrBusy) // it does not know yet
		next = locktest.Later(func() error { _, err := c.Lock("orders").TryAcquire(bg, 15*time.Second); return err })
		<-h.Context().Done()
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.WantErr(<-next, redlatch.ErrBusy)
		w.Release(thief)
	})
}

func TestNoHandOffAfterAForceReleaseUnderLocalWaiters(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, forcer := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
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
					if old != "" && h.ID() == old && time.Since(forced) > 50*time.Millisecond {
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
			info, err := admin.LockInfo(bg, forcer.Lock("orders"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := admin.ForceRelease(bg, forcer.Lock("orders")); err != nil {
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
		opts              []redlatch.PlainOption
	}{
		{1, 1500, 0, nil},
		{1, 1500, time.Millisecond, nil},
		{8, 4000, 50 * time.Microsecond, nil},                                  // a quantum ends by the number of hand-offs; in no time it would never
		{8, 4000, time.Millisecond, nil},                                       // it ends by its time
		{8, 1500, time.Millisecond, []redlatch.PlainOption{redlatch.Fenced()}}, // each hand-off has a round trip of its own
	} {
		t.Run(fmt.Sprintf("%dx%d/section=%v/%d options", processes, x.goroutines, x.section, len(x.opts)), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) { turns(w, processes, x.goroutines, x.turns, x.section, x.opts) })
		})
	}
}

func turns(w *locktest.World, processes, goroutines, turns int, section time.Duration, opts []redlatch.PlainOption) {
	w.Helper()
	// Written by whoever has the lock.
	shares := make([]int, processes)
	inside, most, total := 0, 0, 0

	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var wg sync.WaitGroup
	for p := range processes {
		c := w.ClientOver(200*time.Microsecond, redlatch.Config{})
		for range goroutines {
			wg.Go(func() {
				for ctx.Err() == nil {
					h, err := c.Lock("orders", opts...).Acquire(ctx)
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

// Redis may keep the lock for an hour, after an extension or a re-entry that
// nobody waited for: the next holder's watchdog must not have that.
func TestALongTTLThatMayComeIsNotPassedOn(t *testing.T) {
	const hour = "3600000"
	for _, how := range []string{"extension in flight", "re-entry without answer"} {
		t.Run(how, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				d := &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					switch {
					case s != "lock.renew" || args[1] != hour:
						return next()
					case how == "extension in flight":
						time.Sleep(50 * time.Millisecond)
						return next()
					}
					_, _ = next()
					return driver.Reply{}, locktest.ErrReplyLost
				}}
				l := w.Tapped(redlatch.Config{OutageTimeout: time.Second}, d).Lock("orders")
				outer := w.Acquire(bg, l)
				if how == "extension in flight" {
					inner := w.Acquire(outer.Context(), locktest.With(l, redlatch.Lease(10*time.Second)))
					go func() { _ = inner.Extend(bg, time.Hour) }()
					time.Sleep(time.Millisecond)
					w.Release(inner)
				} else if _, err := locktest.With(l, redlatch.Lease(time.Hour)).Acquire(outer.Context()); err == nil {
					t.Error("the re-entry was answered")
				}
				next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
				synctest.Wait()
				w.Release(outer)
				h := <-next
				time.Sleep(time.Second)
				if ttl := w.Server.TTL("orders"); ttl > 30*time.Second {
					t.Errorf("if this process dies, the watchdog hold of the next lasts %v", ttl)
				}
				w.Release(h)
			})
		})
	}
}

func TestALongTTLIsNotPassedOn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.Acquire(bg, l)
		inner := w.Acquire(outer.Context(), locktest.With(l, redlatch.Lease(time.Hour)))
		hc := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
		synctest.Wait()
		w.Release(inner)
		w.Release(outer)
		h := <-hc
		if ttl := w.Server.TTL("orders"); ttl > 30*time.Second {
			t.Errorf("if this process dies, the watchdog hold of the next lasts %v", ttl)
		}
		w.Release(h)
	})
}
