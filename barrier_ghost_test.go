package redlatch_test

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
	"github.com/redlatch/redlatch/driver"
)

// A caller that has left cannot say so for as long as its client is cut off. When
// the client is back, another caller of it must not make up the number with it.
func TestABarrierDoesNotTripWithOneThatLeftInALongOutage(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var cut, cannotLeave atomic.Bool
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if cut.Load() || s == "barrier.leave" && cannotLeave.Load() {
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}})
		b := c.Barrier("orders", 2)
		ghost := arriving(b, bg)
		cut.Store(true)
		cannotLeave.Store(true)
		w.wantErr((<-ghost).err, redlatch.ErrUnavailable)
		time.Sleep(5 * time.Minute)
		cut.Store(false)
		x := arriving(b, bg)
		time.Sleep(10 * time.Second)
		w.wantStill(x)
		cannotLeave.Store(false)
		time.Sleep(10 * time.Second)
		w.wantStill(x) // the ghost has left its own generation
		w.wantTogether(x, arriving(b, bg))
	})
}

// A client that is heard keeps alive all that it has in the generation, so one of
// them that has left counts until that has been told.
func TestLeavingABarrierIsToldHoweverLongThatTakes(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var cannotLeave atomic.Bool
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "barrier.leave" && cannotLeave.Load() {
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}})
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		b, other := c.Barrier("orders", 5), w.client(redlatch.Config{}).Barrier("orders", 5)
		limit, stop := context.WithTimeout(bg, time.Hour)
		defer stop()
		x, y, leaving, later := arriving(other, limit), arriving(b, limit), arriving(b, ctx), arriving(b, ctx)
		cannotLeave.Store(true)
		cancel()
		w.wantErr((<-leaving).err, context.Canceled)
		w.wantErr((<-later).err, context.Canceled)
		time.Sleep(5 * time.Minute)
		w.wantStill(x, y)
		cannotLeave.Store(false)
		start := time.Now()
		for _, waiting := range []<-chan arrived{x, y} {
			if a := w.wantBroken(waiting, redlatch.BrokenLeft, c.ID()); a.at.Sub(start) > 5*time.Second {
				t.Errorf("told after %v", a.at.Sub(start))
			}
		}
	})
}

// An arrival that was counted in a generation of which nobody knows any more is
// not counted in another one.
func TestAnArrivalIsNotCountedAgainWhenItsGenerationIsForgotten(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var lost atomic.Bool
		c := w.tapped(redlatch.Config{OutageTimeout: time.Hour}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "barrier.arrive" && lost.Load() {
				_, _ = next()
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}})
		b, other := c.Barrier("orders", 2), w.client(redlatch.Config{}).Barrier("orders", 2)
		w.wantTogether(arriving(other, bg), arriving(b, bg))
		lost.Store(true)
		limit, stop := context.WithTimeout(bg, time.Hour)
		defer stop()
		x := arriving(b, limit)
		if i, err := other.Await(bg); i != 0 || err != nil {
			t.Fatalf("the other one got %d, %v", i, err)
		}
		for _, key := range w.server.Keys() { // as if the server had to make room
			if strings.HasSuffix(key, ":ended") || strings.HasSuffix(key, ":2") {
				w.server.Del(key)
			}
		}
		lost.Store(false)
		y := arriving(other, limit)
		w.wantBroken(x, redlatch.BrokenGone, "")
		time.Sleep(5 * time.Second)
		w.wantStill(y)
	})
}

// How generations have ended is one key, of a hundred fields.
func TestEndedGenerationsAreOneBoundedRecord(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}).Barrier("orders", 2), w.client(redlatch.Config{}).Barrier("orders", 2)
		for range 250 {
			w.wantTogether(arriving(a, bg), arriving(b, bg))
		}
		if keys := w.server.Keys(); len(keys) > 4 {
			t.Errorf("there are %d keys", len(keys))
		}
		if slots, _ := w.server.HKeys("redlatch_barrier:{orders}:ended"); len(slots) != 100 {
			t.Errorf("%d generations are remembered", len(slots))
		}
	})
}

// A reset whose answer is lost breaks one generation, however long ago that was when
// it is sent again, and whoever has reset the barrier since: not the next one, too.
func TestAResetWhoseAnswerIsLostIsDoneOnce(t *testing.T) {
	for name, since := range map[string]func(w *world, other *redlatch.Barrier){
		"forgotten after a minute": func(*world, *redlatch.Barrier) { time.Sleep(2 * time.Minute) },
		"forgotten after many others": func(w *world, other *redlatch.Barrier) {
			for range 150 {
				w.wantTogether(arriving(other, bg), arriving(other, bg))
			}
		},
		"reset by another": func(w *world, other *redlatch.Barrier) {
			w.no(other.Reset(bg))
			time.Sleep(2 * time.Minute)
		},
		"made anew": func(w *world, other *redlatch.Barrier) {
			w.server.FlushAll()
			w.wantTogether(arriving(other, bg), arriving(other, bg))
		},
	} {
		for _, executed := range []fate{replyLost, notSent, late} {
			if executed != replyLost && name != "reset by another" && name != "made anew" {
				continue // it has still to be done, then
			}
			t.Run(fmt.Sprint(name, " ", executed), func(t *testing.T) {
				inFakeTime(t, func(w *world) {
					what := good // guarded by x.mu
					x := &counting{}
					set := func(f fate) { x.mu.Lock(); defer x.mu.Unlock(); what = f }
					c := w.tapped(redlatch.Config{OutageTimeout: time.Hour}, &tap{hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						if s != "barrier.reset" || args[0] == "" {
							return next()
						}
						x.mu.Lock()
						fate := what
						switch what {
						case late:
							x.held = append(x.held, func() { _, _ = next() })
							what = notSent
						case replyLost:
							what = notSent
						}
						x.mu.Unlock()
						return fate.of(next)
					}})
					other := w.client(redlatch.Config{}).Barrier("orders", 2)
					y := arriving(other, bg)
					set(executed)
					reset := later(func() error { return c.Barrier("orders", 2).Reset(bg) })
					synctest.Wait()
					since(w, other)
					if y := <-y; !errors.Is(y.err, redlatch.ErrBroken) {
						t.Fatalf("the generation of before: %v", y.err)
					}
					y = arriving(other, bg)
					set(good)
					w.no(<-reset)
					x.arrive()
					time.Sleep(5 * time.Second)
					w.wantStill(y)
					w.wantTogether(y, arriving(other, bg))
				})
			})
		}
	}
}

// Who waited in a generation that was reset knows which one gathers then: it asks
// once for its place in that.
func TestWhoWasResetNeedNotAskWhichGenerationGathers(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var arrivals atomic.Int64
		c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "barrier.arrive" {
				arrivals.Add(1)
			}
			return next()
		}})
		b, other := c.Barrier("orders", 2), w.client(redlatch.Config{}).Barrier("orders", 2)
		x := arriving(b, bg)
		w.no(other.Reset(bg))
		w.wantBroken(x, redlatch.BrokenReset, "")
		arrivals.Store(0)
		w.wantTogether(arriving(b, bg), arriving(other, bg))
		if n := arrivals.Load(); n != 1 {
			t.Errorf("it asked %d times", n)
		}
	})
}
