package synchronizers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A caller that has left cannot say so for as long as its client is cut off. When
// the client is back, another caller of it must not make up the number with it.
func TestABarrierDoesNotTripWithOneThatLeftInALongOutage(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var cut, cannotLeave atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if cut.Load() || s == "barrier.leave" && cannotLeave.Load() {
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}})
		b := barrier.New(c, "orders", 2)
		ghost := arriving(b, bg)
		cut.Store(true)
		cannotLeave.Store(true)
		w.WantErr((<-ghost).err, redlatch.ErrUnavailable)
		time.Sleep(5 * time.Minute)
		cut.Store(false)
		x := arriving(b, bg)
		time.Sleep(10 * time.Second)
		wantStill(w, x)
		cannotLeave.Store(false)
		time.Sleep(10 * time.Second)
		wantStill(w, x) // the ghost has left its own generation
		wantTogether(w, x, arriving(b, bg))
	})
}

// A client that is heard keeps alive all that it has in the generation, so one of
// them that has left counts until that has been told.
func TestLeavingABarrierIsToldHoweverLongThatTakes(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var cannotLeave atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "barrier.leave" && cannotLeave.Load() {
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}})
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		b, other := barrier.New(c, "orders", 5), barrier.New(w.Client(redlatch.Config{}), "orders", 5)
		limit, stop := context.WithTimeout(bg, time.Hour)
		defer stop()
		x, y, leaving, later := arriving(other, limit), arriving(b, limit), arriving(b, ctx), arriving(b, ctx)
		cannotLeave.Store(true)
		cancel()
		w.WantErr((<-leaving).err, context.Canceled)
		w.WantErr((<-later).err, context.Canceled)
		time.Sleep(5 * time.Minute)
		wantStill(w, x, y)
		cannotLeave.Store(false)
		start := time.Now()
		for _, waiting := range []<-chan arrived{x, y} {
			if a := wantBroken(w, waiting, barrier.BrokenLeft, c.ID()); a.at.Sub(start) > 5*time.Second {
				t.Errorf("told after %v", a.at.Sub(start))
			}
		}
	})
}

// An arrival that was counted in a generation of which nobody knows any more is
// not counted in another one.
func TestAnArrivalIsNotCountedAgainWhenItsGenerationIsForgotten(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lost atomic.Bool
		c := w.Tapped(redlatch.Config{OutageTimeout: time.Hour}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "barrier.arrive" && lost.Load() {
				_, _ = next()
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}})
		b, other := barrier.New(c, "orders", 2), barrier.New(w.Client(redlatch.Config{}), "orders", 2)
		wantTogether(w, arriving(other, bg), arriving(b, bg))
		lost.Store(true)
		limit, stop := context.WithTimeout(bg, time.Hour)
		defer stop()
		x := arriving(b, limit)
		if i, err := other.Await(bg); i != 0 || err != nil {
			t.Fatalf("the other one got %d, %v", i, err)
		}
		for _, key := range w.Keys() { // as if the server had to make room
			if strings.HasSuffix(key, ":ended") || strings.HasSuffix(key, ":2") {
				w.Server.Del(key)
			}
		}
		lost.Store(false)
		y := arriving(other, limit)
		wantBroken(w, x, barrier.BrokenGone, "")
		time.Sleep(5 * time.Second)
		wantStill(w, y)
	})
}

// How generations have ended is one key, of a hundred fields.
func TestEndedGenerationsAreOneBoundedRecord(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := barrier.New(w.Client(redlatch.Config{}), "orders", 2), barrier.New(w.Client(redlatch.Config{}), "orders", 2)
		for range 250 {
			wantTogether(w, arriving(a, bg), arriving(b, bg))
		}
		if keys := w.Keys(); len(keys) > 4 {
			t.Errorf("there are %d keys", len(keys))
		}
		if slots, _ := w.Server.HKeys("redlatch_barrier:{orders}:ended"); len(slots) != 100 {
			t.Errorf("%d generations are remembered", len(slots))
		}
	})
}

// A reset whose answer is lost breaks one generation, however long ago that was
// when it is sent again, and whoever has reset the barrier since: not the next
// one, too.
func TestAResetWithALostReplyIsDoneOnce(t *testing.T) {
	for name, since := range map[string]func(w *locktest.World, other *barrier.Barrier){
		"forgotten after a minute": func(*locktest.World, *barrier.Barrier) { time.Sleep(2 * time.Minute) },
		"forgotten after many others": func(w *locktest.World, other *barrier.Barrier) {
			for range 150 {
				wantTogether(w, arriving(other, bg), arriving(other, bg))
			}
		},
		"reset by another": func(w *locktest.World, other *barrier.Barrier) {
			w.OK(other.Reset(bg))
			time.Sleep(2 * time.Minute)
		},
		"made anew": func(w *locktest.World, other *barrier.Barrier) {
			w.Server.FlushAll()
			wantTogether(w, arriving(other, bg), arriving(other, bg))
		},
	} {
		for _, executed := range []locktest.Fate{locktest.ReplyLost, locktest.NotSent, locktest.Late} {
			if executed != locktest.ReplyLost && name != "reset by another" && name != "made anew" {
				continue // it has still to be done, then
			}
			t.Run(fmt.Sprint(name, " ", executed), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					what := locktest.Good // guarded by x.mu
					x := &locktest.Counting{}
					set := func(f locktest.Fate) { x.Mu.Lock(); defer x.Mu.Unlock(); what = f }
					c := w.Tapped(redlatch.Config{OutageTimeout: time.Hour}, &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						if s != "barrier.reset" || args[0] == "" {
							return next()
						}
						x.Mu.Lock()
						fate := what
						switch what {
						case locktest.Late:
							x.Held = append(x.Held, func() { _, _ = next() })
							what = locktest.NotSent
						case locktest.ReplyLost:
							what = locktest.NotSent
						}
						x.Mu.Unlock()
						return fate.Of(next)
					}})
					other := barrier.New(w.Client(redlatch.Config{}), "orders", 2)
					y := arriving(other, bg)
					set(executed)
					reset := locktest.Later(func() error { return barrier.New(c, "orders", 2).Reset(bg) })
					synctest.Wait()
					since(w, other)
					if y := <-y; !errors.Is(y.err, barrier.ErrBroken) {
						t.Fatalf("the generation of before: %v", y.err)
					}
					y = arriving(other, bg)
					set(locktest.Good)
					w.OK(<-reset)
					x.Arrive()
					time.Sleep(5 * time.Second)
					wantStill(w, y)
					wantTogether(w, y, arriving(other, bg))
				})
			})
		}
	}
}

// Who waited in a generation that was reset knows which one gathers then: it asks
// once for its place in that.
func TestWhoWasResetNeedNotAskWhichGenerationGathers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var arrivals atomic.Int64
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "barrier.arrive" {
				arrivals.Add(1)
			}
			return next()
		}})
		b, other := barrier.New(c, "orders", 2), barrier.New(w.Client(redlatch.Config{}), "orders", 2)
		x := arriving(b, bg)
		w.OK(other.Reset(bg))
		wantBroken(w, x, barrier.BrokenReset, "")
		arrivals.Store(0)
		wantTogether(w, arriving(b, bg), arriving(other, bg))
		if n := arrivals.Load(); n != 1 {
			t.Errorf("it asked %d times", n)
		}
	})
}
