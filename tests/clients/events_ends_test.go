package clients

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A span that is never ended is never seen, and a gauge of what is held that is
// not taken down again stays wrong for ever.
func TestEveryWayToEndAHoldIsTold(t *testing.T) {
	type story struct {
		want observe.EndReason
		end  func(w *locktest.World, s subject, h held)
		held time.Duration
	}
	stories := map[string]story{
		"released": {observe.EndReleased, func(w *locktest.World, _ subject, h held) { w.OK(h.Release(bg)) }, 0},
		"released twice": {observe.EndReleased, func(w *locktest.World, _ subject, h held) {
			w.OK(h.Release(bg))
			w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
		}, 0},
		"released with a context that has ended": {observe.EndReleased, func(_ *locktest.World, _ subject, h held) {
			ctx, cancel := context.WithCancel(bg)
			cancel()
			_ = h.Release(ctx)
		}, 0},
		"lost": {observe.EndLost, func(w *locktest.World, _ subject, h held) {
			w.Server.FlushAll()
			<-h.Context().Done() // with the next renewal
			synctest.Wait()
			w.WantErr(h.Release(bg), redlatch.ErrLost)
		}, 10 * time.Second},
		"lost, and its release was the first to see that": {observe.EndLost, func(w *locktest.World, _ subject, h held) {
			w.Server.FlushAll()
			w.WantErr(h.Release(bg), redlatch.ErrLost)
		}, 0},
		"closed": {observe.EndClosed, func(w *locktest.World, s subject, h held) {
			for _, c := range s.clients {
				w.OK(c.Close())
			}
			_ = h.Release(bg)
		}, 0},
	}
	for name, of := range subjects {
		for story, it := range stories {
			if name == "read" && story == "lost, and its release was the first to see that" || name == "red" && it.want == observe.EndLost {
				continue // told below, and in its own words
			}
			t.Run(name+"/"+story, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					o := newObserver(w)
					s := of(w, o)
					if holdless[s.want.Kind] {
						return
					}
					h, err := s.acquire(bg, forEver)
					w.OK(err)
					time.Sleep(time.Second)
					it.end(w, s, h)
					synctest.Wait()
					e := o.end()
					if e.Reason != it.want || errors.Is(e.Err, redlatch.ErrLost) != (it.want == observe.EndLost) || (e.Err == nil) != (it.want != observe.EndLost) {
						t.Errorf("told as %q with %v, want %q", e.Reason, e.Err, it.want)
					}
					if e.Held < time.Second || e.Held > time.Second+it.held {
						t.Errorf("held for %v, as it was told", e.Held)
					}
				})
			})
		}
	}
}

// A majority may be lost one by one; that is one end.
func TestARedLockThatIsLostIsToldOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		h, err := subjects["red"](w, o).acquire(bg, forEver)
		w.OK(err)
		w.Server.Del("a")
		time.Sleep(time.Minute)
		if n := len(o.last().holds); n > 0 {
			t.Fatalf("told with a majority left: %+v", o.last().holds)
		}
		w.Server.Del("b")
		w.Server.Del("c")
		<-h.Context().Done()
		synctest.Wait()
		if e := o.end(); e.Reason != observe.EndLost || !errors.Is(e.Err, redlatch.ErrLost) {
			t.Errorf("%+v", e)
		}
		_ = h.Release(bg)
	})
}

// The end of a read lease that is shorter than its term is one hold's alone.
func TestAHoldThatEndsAloneIsToldOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		l := w.Client(redlatch.Config{}, o.events).ReadWriteLock("accounts").Read()
		long := w.Acquire(bg, l)
		short := w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Second)))
		<-short.Context().Done()
		synctest.Wait()
		if e := o.end(); e.Reason != observe.EndLost || !errors.Is(e.Err, redlatch.ErrLost) || e.Held > time.Second {
			t.Errorf("%+v", e)
		}
		w.WantErr(short.Release(bg), redlatch.ErrLost)
		w.Release(long)
	})
}

// Nobody of this process may extend or release it any more, so it is not held
// here.
func TestWhatIsDetachedIsToldOnce(t *testing.T) {
	for name, acquire := range map[string]func(w *locktest.World, c *redlatch.Client) *redlatch.Hold{
		"permit": func(w *locktest.World, c *redlatch.Client) *redlatch.Hold {
			return w.Permit(w.Permits(c, 1, redlatch.Lease(time.Minute)))
		},
		"lock": func(w *locktest.World, c *redlatch.Client) *redlatch.Hold {
			return w.Acquire(bg, c.Lock("orders", redlatch.Lease(time.Minute)))
		},
		"fair lock": func(w *locktest.World, c *redlatch.Client) *redlatch.Hold {
			return w.Acquire(bg, c.FairLock("orders", redlatch.Lease(time.Minute)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				o := newObserver(w)
				h := acquire(w, w.Client(redlatch.Config{}, o.events))
				time.Sleep(3 * time.Second)
				for range 2 {
					w.Detach(h)
				}
				if e := o.end(); e.Reason != observe.EndDetached || e.Owner != h.ID() || e.Held != 3*time.Second {
					t.Errorf("%+v", e)
				}
				w.OK(h.Release(bg))
			})
		})
	}
}

// A permit may be released by its id, behind its holder's back.
func TestAPermitThatIsReleasedByItsIDIsTold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		s := w.Permits(w.Client(redlatch.Config{}, o.events), 3)
		ps, err := locktest.Each(s.Acquire(bg, 3))
		w.OK(err)
		w.OK(s.Release(bg, ps[0].ID(), ps[2].ID()))
		synctest.Wait()
		holds := o.last().holds
		if len(holds) != 2 || holds[0].Reason != observe.EndReleased || holds[1].Reason != observe.EndReleased {
			t.Fatalf("%+v", holds)
		}
		w.WantErr(ps[0].Release(bg), redlatch.ErrNotHeld)
		w.OK(ps[1].Release(bg))
	})
}

// To release a member ends the whole, in the goroutine of whoever notices. That is
// none that may be kept waiting.
func TestAMemberThatIsReleasedEndsTheWholeOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		c := w.Client(redlatch.Config{}, o.events)
		h := w.Acquire(bg, redlatch.MultiLock(c.Lock("a"), c.Lock("b")))
		w.Release(h.Members()[0])
		<-h.Context().Done()
		synctest.Wait()
		if e := o.end(); e.Reason != observe.EndReleased {
			t.Errorf("%+v", e)
		}
		_ = h.Release(bg)
	})
}

// Whoever makes gauges of it wants them right after a leak, too.
func TestADroppedHoldIsToldOnce(t *testing.T) {
	for name, of := range map[string]func(w *locktest.World, c *redlatch.Client) error{
		"hold": func(_ *locktest.World, c *redlatch.Client) error {
			_, err := c.Lock("orders").Acquire(bg)
			return err
		},
		"multi": func(_ *locktest.World, c *redlatch.Client) error {
			_, err := redlatch.MultiLock(c.Lock("a"), c.Lock("b")).Acquire(bg)
			return err
		},
		"permit": func(w *locktest.World, c *redlatch.Client) error {
			_, err := w.Permits(c, 1).Acquire(bg, 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := locktest.InRealTime(t)
			o := newObserver(w)
			if err := of(w, w.Client(redlatch.Config{}, o.events)); err != nil {
				t.Fatal(err)
			}
			if !locktest.Within(locktest.Generous, func() bool { runtime.GC(); return len(o.last().holds) > 0 }) {
				t.Fatal("nobody noticed that it was dropped")
			}
			if e := o.end(); e.Reason != observe.EndDropped || e.Err != nil {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A hold can be lost before its Acquire has told that it has it.
func TestAHoldThatIsLostAtOnceIsToldBehindItsAcquisition(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		var c *redlatch.Client
		end := o.events.AcquireEnd
		o.events.AcquireEnd = func(ctx context.Context, e observe.AcquireEndEvent) {
			if e.Name == locktest.Pool {
				w.Server.Del(locktest.Pool)
				w.Server.Del(locktest.PoolTimes)
			}
			w.Server.Del(e.Name)
			time.Sleep(time.Minute)
			end(ctx, e)
		}
		c = w.Client(redlatch.Config{}, o.events)
		for name, acquire := range map[string]func() (held, error){
			"hold":   func() (held, error) { return some(c.Lock("orders").Acquire(bg)) },
			"multi":  func() (held, error) { return some(redlatch.MultiLock(c.Lock("a")).Acquire(bg)) },
			"permit": func() (held, error) { return some(w.Permits(c, 1).Acquire(bg, 1)) },
		} {
			h, err := acquire()
			w.OK(err)
			synctest.Wait()
			if e := o.end(); e.Reason != observe.EndLost {
				t.Errorf("%s: %+v", name, e)
			}
			w.WantErr(h.Release(bg), redlatch.ErrLost)
		}
	})
}

// A slow exporter must keep neither a lock nor a loss waiting; Close gives it a
// moment.
func TestASlowHoldEndDelaysNoLoss(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		end := o.events.HoldEnd
		o.events.HoldEnd = func(ctx context.Context, e observe.HoldEndEvent) {
			time.Sleep(time.Second)
			end(ctx, e)
		}
		c := w.Client(redlatch.Config{}, o.events)
		var holds []*redlatch.Hold
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			holds = append(holds, w.Acquire(bg, c.Lock(name)))
		}
		start := time.Now()
		w.Server.FlushAll()
		for _, h := range holds {
			<-h.Context().Done()
		}
		if took := time.Since(start); took > 11*time.Second { // with the first renewal
			t.Errorf("the last was lost after %v", took)
		}
		time.Sleep(1500 * time.Millisecond) // in the second of them
		start = time.Now()
		w.OK(c.Close())
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("Close took %v, want Config.CloseTimeout", took)
		}
		time.Sleep(time.Second) // what Close did not wait for is told all the same
	})
}

// Close waits for the ends of the holds that it ends, so that what they are made
// into can be written out behind it.
func TestCloseHasToldOfAllHolds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		c := w.Client(redlatch.Config{}, o.events)
		for range 20_000 { // more than other events may wait
			w.Acquire(bg, c.ReadWriteLock("accounts").Read())
		}
		w.OK(c.Close())
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, call := range o.calls {
			if len(call.holds) != 1 {
				t.Fatalf("%+v has ended %d times", call.start, len(call.holds))
			}
		}
	})
}

// A hold that its user cannot get, for the client was closed, is none.
func TestAHoldThatComesTooLateIsNotToldAsOne(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		var c *redlatch.Client
		closed := make(chan error, 1)
		c = w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if script == "lock.take" {
				go func() { closed <- c.Close() }()
				synctest.Wait()
			}
			return r, err
		}}, o.events)
		_, err := c.Lock("orders").Acquire(bg)
		if e := o.outcome(); !errors.Is(err, redlatch.ErrClosed) || e.Outcome != observe.OutcomeClosed {
			t.Errorf("%v was told as %+v", err, e)
		}
		w.OK(<-closed)
	})
}
