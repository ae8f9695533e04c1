package clients

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A wait that is not told of, told twice, or told as something else is missing in
// whatever is made of the events: traces, metrics, alarms.
func TestEveryOutcomeOfEveryTypeIsTold(t *testing.T) {
	type story struct {
		want observe.Outcome
		tell func(w *locktest.World, s subject) error
		took time.Duration // what it waits

		bounded bool // by the call
	}
	try := func(s subject, ctx context.Context, wait time.Duration) error {
		h, err := s.acquire(ctx, wait)
		if err == nil && h != nil {
			err = h.Release(bg)
		}
		return err
	}
	acquire := func(s subject, ctx context.Context) error { return try(s, ctx, forEver) }
	stories := map[string]story{
		"free": {observe.OutcomeAcquired, func(_ *locktest.World, s subject) error {
			if s.free != nil {
				s.free()
				synctest.Wait()
			}
			return acquire(s, bg)
		}, 0, false},
		"busy": {observe.OutcomeBusy, func(_ *locktest.World, s subject) error {
			s.take()
			return try(s, bg, 0)
		}, 0, true},
		"wait is over": {observe.OutcomeTimedOut, func(_ *locktest.World, s subject) error {
			s.take()
			return try(s, bg, time.Second)
		}, time.Second, true},
		"deadline": {observe.OutcomeTimedOut, func(_ *locktest.World, s subject) error {
			s.take()
			ctx, cancel := context.WithTimeout(bg, time.Second)
			defer cancel()
			return acquire(s, ctx)
		}, time.Second, false},
		"cancelled": {observe.OutcomeCancelled, func(_ *locktest.World, s subject) error {
			s.take()
			ctx, cancel := context.WithCancel(bg)
			defer time.AfterFunc(time.Second, cancel).Stop()
			return acquire(s, ctx)
		}, time.Second, false},
		"cancelled with a cause": {observe.OutcomeCancelled, func(_ *locktest.World, s subject) error {
			s.take()
			ctx, cancel := context.WithCancelCause(bg)
			defer time.AfterFunc(time.Second, func() { cancel(redlatch.ErrLost) }).Stop()
			return acquire(s, ctx)
		}, time.Second, false},
		"cancelled before": {observe.OutcomeCancelled, func(_ *locktest.World, s subject) error {
			ctx, cancel := context.WithCancel(bg)
			cancel()
			return acquire(s, ctx)
		}, 0, false},
		"closed": {observe.OutcomeClosed, func(w *locktest.World, s subject) error {
			s.take()
			defer time.AfterFunc(time.Second, func() {
				for _, c := range s.clients {
					w.OK(c.Close())
				}
			}).Stop()
			return acquire(s, bg)
		}, time.Second, false},
		"closed before": {observe.OutcomeClosed, func(w *locktest.World, s subject) error {
			for _, c := range s.clients {
				w.OK(c.Close())
			}
			return acquire(s, bg)
		}, 0, false},
		"outage": {observe.OutcomeUnavailable, func(w *locktest.World, s subject) error {
			w.Server.SetError("LOADING Redis is loading the dataset in memory")
			defer w.Server.SetError("")
			return acquire(s, bg)
		}, 10 * time.Second, false},
		"negative": {observe.OutcomeRefused, func(_ *locktest.World, s subject) error {
			return try(s, bg, -1)
		}, 0, true},
	}
	for name, of := range subjects {
		for story, it := range stories {
			t.Run(name+"/"+story, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					o := newObserver(w)
					s := of(w, o)
					if (s.want.Kind == redlatch.KindLatch || s.want.Kind == redlatch.KindBarrier) && it.bounded {
						return // only a context bounds these
					}
					err := it.tell(w, s)
					e := o.outcome()
					if e.Outcome != it.want || !errors.Is(err, e.Err) || (err == nil) != (it.want == observe.OutcomeAcquired) {
						t.Errorf("%v was told as %q with %v, want %q", err, e.Outcome, e.Err, it.want)
					}
					if s.want.Kind == redlatch.KindRateLimiter && it.bounded {
						it.took = 0 // it is told that the wait is in vain
					}
					if e.Waited < it.took || e.Waited > it.took+it.took/2+time.Second {
						t.Errorf("waited for %v, told %v", it.took, e.Waited)
					}
					if o.last().start != s.want {
						t.Errorf("told %+v, want %+v", o.last().start, s.want)
					}
					if e.Err == nil && !holdless[e.Kind] && o.end().Reason != observe.EndReleased {
						t.Errorf("the hold ended as %+v", o.end())
					}
				})
			})
		}
	}
}

// Who makes metrics of it must be able to tell what cost a request from what did
// not.
func TestWhatPassesInsideAProcessIsToldAsHandedOff(t *testing.T) {
	want := map[string]observe.Outcome{
		"lock": observe.OutcomeHandedOff, "spin": observe.OutcomeHandedOff, "striped": observe.OutcomeHandedOff, "write": observe.OutcomeHandedOff,
		"non-re-entry": observe.OutcomeHandedOff,
		"fair":         observe.OutcomeAcquired, "fenced": observe.OutcomeAcquired, "group": observe.OutcomeAcquired,
		"multi": observe.OutcomeAcquired, "red": observe.OutcomeAcquired, "expirable": observe.OutcomeAcquired,
	}
	for name, want := range want {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				o := newObserver(w)
				s := subjects[name](w, o)
				h, err := s.acquire(bg, forEver)
				w.OK(err)
				next := locktest.Later(func() held {
					h, err := s.acquire(bg, forEver)
					w.OK(err)
					return h
				})
				time.Sleep(time.Millisecond)
				w.OK(h.Release(bg))
				h = <-next
				if e := o.outcome(); e.Outcome != want {
					t.Errorf("told as %q, want %q", e.Outcome, want)
				}
				w.OK(h.Release(bg))
			})
		})
	}
}

// The same of permits that are only counted.
func TestAPermitThatPassesInsideAProcessIsToldAsHandedOff(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		s := semaphore.New(w.Client(redlatch.Config{}, o.events), "jobs", 0)
		w.SetPermits(s, 1)
		w.OK(s.Acquire(bg, 1))
		if e := o.outcome(); e.Outcome != observe.OutcomeAcquired {
			t.Errorf("the first: %+v", e)
		}
		next := locktest.AcquiringPermits(bg, s, 1)
		w.OK(s.Release(bg, 1))
		w.OK(<-next)
		if e := o.outcome(); e.Outcome != observe.OutcomeHandedOff {
			t.Errorf("the second: %+v", e)
		}
		w.OK(s.Release(bg, 1))
		w.OK(s.TryAcquire(bg, 1, 0)) // its waiter was the other's
		if e := o.outcome(); e.Outcome != observe.OutcomeAcquired {
			t.Errorf("the third: %+v", e)
		}
	})
}

// Readers of a process that share one hold in Redis are as good as handed on.
func TestAReaderThatJoinsIsToldAsHandedOff(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		l := w.Client(redlatch.Config{}, o.events).ReadWriteLock("accounts").Read()
		first := w.Acquire(bg, l)
		if e := o.outcome(); e.Outcome != observe.OutcomeAcquired || e.Count != 1 {
			t.Errorf("the first: %+v", e)
		}
		second := w.Acquire(bg, l)
		if e := o.outcome(); e.Outcome != observe.OutcomeHandedOff || e.Owner != first.ID() || e.Count != 1 {
			t.Errorf("the second: %+v", e)
		}
		w.Release(first)
		w.Release(second)
	})
}

// Redis counts the reads inside of a write apart, and they were told as writes.
func TestTheCountOfAWriteLeavesOutTheReadsBesideIt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		rw, owner := w.Client(redlatch.Config{}, o.events).ReadWriteLock("orders"), redlatch.WithOwner(bg)
		outer := w.Acquire(owner, rw.Write())
		read := w.Acquire(owner, rw.Read())
		inner := w.Acquire(owner, rw.Write())
		w.WantFields("nested", "orders", map[string]string{"mode": "write", outer.ID() + ":write": "2", outer.ID(): "1"})
		if e := o.outcome(); e.Count != 2 {
			t.Errorf("inner: %+v", e)
		}
		for _, h := range []*redlatch.Hold{inner, read, outer} {
			w.Release(h)
		}
	})
}

func TestAReentryIsToldAsOne(t *testing.T) {
	for name, of := range locktest.TypesOfLock {
		for how, under := range map[string]func(h *redlatch.Hold, owner context.Context) context.Context{
			"Context":   func(h *redlatch.Hold, _ context.Context) context.Context { return h.Context() },
			"With":      func(h *redlatch.Hold, _ context.Context) context.Context { return h.With(bg) },
			"WithOwner": func(_ *redlatch.Hold, owner context.Context) context.Context { return owner },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					o := newObserver(w)
					l, owner := of(w.Client(redlatch.Config{}, o.events), "orders"), redlatch.WithOwner(bg)
					outer := w.Acquire(owner, l)
					if e := o.outcome(); e.Outcome != observe.OutcomeAcquired || e.Count != 1 {
						t.Errorf("outer: %+v", e)
					}
					inner := w.Acquire(under(outer, owner), l)
					count := 2
					if name == "read" {
						count = 1 // Redis shows no more
					}
					if e := o.outcome(); e.Outcome != observe.OutcomeReentered || e.Count != count || e.Owner != outer.ID() {
						t.Errorf("inner: %+v", e)
					}
					w.Release(inner)
					if e := o.end(); e.Reason != observe.EndReleased {
						t.Errorf("inner: %+v", e)
					}
					w.Release(outer)
				})
			})
		}
	}
	t.Run("multi", func(t *testing.T) {
		locktest.InFakeTime(t, func(w *locktest.World) {
			o := newObserver(w)
			c := w.Client(redlatch.Config{}, o.events)
			m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
			outer := w.Acquire(bg, m)
			inner := w.Acquire(outer.Context(), m)
			if e := o.outcome(); e.Outcome != observe.OutcomeReentered {
				t.Errorf("inner: %+v", e)
			}
			w.Release(inner)
			partly := w.Acquire(outer.Context(), redlatch.MultiLock(c.Lock("a"), c.Lock("c")))
			if e := o.outcome(); e.Outcome != observe.OutcomeAcquired {
				t.Errorf("with one member more: %+v", e)
			}
			w.Release(partly)
			w.Release(outer)
		})
	})
}

// What can never succeed is no outage and no contention: alarms would ring for a
// mistake in the program, and not for what they are there for.
func TestWhatCannotSucceedIsToldAsRefused(t *testing.T) {
	for name, story := range map[string]func(w *locktest.World, c *redlatch.Client) error{
		"re-entry": func(w *locktest.World, c *redlatch.Client) error {
			rw := c.ReadWriteLock("accounts")
			return rw.Read().Do(bg, func(ctx context.Context) error {
				_, err := rw.Write().Acquire(ctx)
				w.WantErr(err, redlatch.ErrReentry)
				return err
			})
		},
		"released outer hold": func(w *locktest.World, c *redlatch.Client) error {
			h := w.Acquire(bg, c.Lock("orders"))
			w.Release(h)
			_, err := c.Lock("orders").Acquire(h.Context())
			w.WantErr(err, redlatch.ErrNotHeld)
			return err
		},
		"lost outer hold": func(w *locktest.World, c *redlatch.Client) error {
			h := w.Acquire(bg, c.Lock("orders"))
			w.Server.Del("orders")
			<-h.Context().Done()
			_, err := c.Lock("orders").Acquire(h.Context())
			w.WantErr(err, redlatch.ErrLost)
			return err
		},
		"another type": func(w *locktest.World, c *redlatch.Client) error {
			w.OK(w.Server.Set("orders", "x"))
			_, err := c.Lock("orders").Acquire(bg)
			return err
		},
		"bad name": func(_ *locktest.World, c *redlatch.Client) error {
			_, err := c.FairLock("").Acquire(bg)
			return err
		},
		"bad number": func(_ *locktest.World, c *redlatch.Client) error { return semaphore.New(c, "jobs", 0).Acquire(bg, -1) },
		"no rate": func(_ *locktest.World, c *redlatch.Client) error {
			return ratelimit.New(c, "api", ratelimit.Rate{}).TryAcquire(bg, 1, 0)
		},
		"no permits": func(w *locktest.World, c *redlatch.Client) error {
			_, err := semaphore.NewExpirable(c, "pool", 0).Acquire(bg, 1)
			w.WantErr(err, redlatch.ErrUninitialized)
			return err
		},
		"nil member": func(_ *locktest.World, c *redlatch.Client) error {
			_, err := redlatch.MultiLock(nil, c.Lock("a")).Acquire(bg)
			return err
		},
		"one lock as two": func(w *locktest.World, c *redlatch.Client) error {
			other := w.Client(redlatch.Config{})
			_, err := redlatch.MultiLock(c.Lock("a"), other.Lock("a")).Acquire(bg)
			w.WantErr(err, redlatch.ErrReentry)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				o := newObserver(w)
				err := story(w, w.Client(redlatch.Config{}, o.events))
				if e := o.outcome(); err == nil || e.Outcome != observe.OutcomeRefused || !errors.Is(err, e.Err) {
					t.Errorf("%v is told as %q with %v", err, e.Outcome, e.Err)
				}
			})
		})
	}
}

func TestABrokenBarrierIsToldAsBroken(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		b := barrier.New(w.Client(redlatch.Config{}, o.events), "step", 2)
		done := locktest.Later(func() error {
			_, err := b.Await(bg)
			return err
		})
		synctest.Wait()
		w.OK(b.Reset(bg))
		err := <-done
		if e := o.outcome(); !errors.Is(err, barrier.ErrBroken) || e.Outcome != observe.OutcomeBroken {
			t.Errorf("%v is told as %+v", err, e)
		}
	})
}

// Nothing could be told with no context.
func TestANilContextIsRefusedAndNotTold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		for name, of := range subjects {
			if _, err := of(w, o).acquire(nil, forEver); err == nil {
				t.Errorf("%s: acquired", name)
			}
		}
		if len(o.calls) > 0 {
			t.Errorf("told: %+v", o.calls[0])
		}
	})
}

// Whoever counts those who wait adds one at the begin and takes one away at the
// end. What is left at last must be nothing, whatever happens in between.
func TestEveryAcquisitionAndEveryHoldEndsOnce(t *testing.T) {
	locktest.WithSeeds(t, 4, func(w *locktest.World, seed uint64) {
		o := newObserver(w)
		c, other := w.Client(redlatch.Config{}, o.events), w.Client(redlatch.Config{}, o.events)
		r := rand.New(rand.NewPCG(seed, 0))
		w.SetPermits(semaphore.New(c, "jobs", 0), 2)
		w.Permits(c, 2)
		w.SetRate(ratelimit.New(c, "api", ratelimit.Rate{}), ratelimit.Rate{Permits: 5, Interval: 50 * time.Millisecond})
		acquires := func(c *redlatch.Client) []func(ctx context.Context, wait time.Duration) (held, error) {
			var all []func(ctx context.Context, wait time.Duration) (held, error)
			for name, of := range locktest.TypesOfLock {
				l := of(c, name)
				all = append(all, func(ctx context.Context, wait time.Duration) (held, error) { return some(l.TryAcquire(ctx, wait)) })
			}
			return append(all,
				multi(redlatch.MultiLock(c.Lock("lock"), c.Lock("another"))),
				func(ctx context.Context, wait time.Duration) (held, error) {
					err := semaphore.New(c, "jobs", 0).TryAcquire(ctx, 1, wait)
					if err == nil {
						w.OK(semaphore.New(c, "jobs", 0).Release(bg, 1))
					}
					return nil, err
				},
				func(ctx context.Context, wait time.Duration) (held, error) {
					return some(semaphore.NewExpirable(c, locktest.Pool, 0).TryAcquire(ctx, 1, wait))
				},
				func(ctx context.Context, wait time.Duration) (held, error) {
					return nil, ratelimit.New(c, "api", ratelimit.Rate{}).TryAcquire(ctx, 1, wait)
				})
		}
		all := append(acquires(c), acquires(other)...)
		done := make(chan struct{})
		const callers = 6
		for range callers {
			turns := make([]uint64, 15)
			for i := range turns {
				turns[i] = r.Uint64()
			}
			go func() {
				defer func() { done <- struct{}{} }()
				for _, x := range turns {
					ctx, cancel := context.WithTimeout(bg, time.Duration(x>>8%40)*time.Millisecond)
					wait := forEver
					if x>>16%4 == 0 {
						wait = time.Duration(x>>24%3) * time.Millisecond
					}
					h, err := all[x%uint64(len(all))](ctx, wait)
					if err == nil && h != nil {
						time.Sleep(time.Duration(x>>32%5) * time.Millisecond)
						if x>>40%5 > 0 { // or it is left to the end
							_ = h.Release(ctx)
						}
					}
					cancel()
				}
			}()
		}
		for i := range callers {
			if i%4 == 0 {
				w.Server.Del("lock") // is lost
				w.Server.Del("fair")
			}
			if i == callers-2 {
				w.OK(other.Close())
			}
			<-done
		}
	})
}

// A function that Do calls may end as it likes.
func TestAPanicUnderALockEndsItsHoldOnce(t *testing.T) {
	for name, f := range map[string]func(context.Context) error{
		"panic":  func(context.Context) error { panic("on purpose") },
		"Goexit": func(context.Context) error { runtime.Goexit(); return nil },
		"error":  func(context.Context) error { return errors.New("on purpose") },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				o := newObserver(w)
				c := w.Client(redlatch.Config{}, o.events)
				for kind, do := range map[string]func(){
					"lock":  func() { _ = c.Lock("orders").Do(bg, f) },
					"multi": func() { _ = redlatch.MultiLock(c.Lock("a"), c.Lock("b")).Do(bg, f) },
				} {
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						do()
					}()
					<-done
					if e := o.end(); e.Reason != observe.EndReleased {
						t.Errorf("%s: %+v", kind, e)
					}
				}
			})
		})
	}
}

// The drivers' own spans are to be below that of the acquisition, and the
// program's below that of the hold.
func TestTheContextOfAcquireStartIsTheOneOfTheRest(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		o := newObserver(w)
		var asked []*call
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Seen: func(ctx context.Context) { asked = append(asked, callOf(ctx)) }}, o.events)
		type user struct{}
		ctx := context.WithValue(bg, user{}, "value")
		same := func(what string, ctx context.Context) {
			t.Helper()
			o.mu.Lock()
			last := o.calls[len(o.calls)-1]
			o.mu.Unlock()
			if callOf(ctx) != last || ctx.Value(user{}) != "value" {
				t.Errorf("%s: not the context of AcquireStart, or without what that had before", what)
			}
		}
		h := w.Acquire(ctx, c.Lock("orders"))
		same("Lock.Acquire", h.Context())
		if len(asked) == 0 || asked[len(asked)-1] == nil {
			t.Error("the driver had another context")
		}
		w.Release(h)
		w.OK(c.Lock("orders").Do(ctx, func(ctx context.Context) error { same("Lock.Do", ctx); return nil }))
		h, err := c.Lock("orders").TryAcquire(ctx, 0)
		w.OK(err)
		same("Lock.TryAcquire", h.Context())
		w.Release(h)
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
		g := w.Acquire(ctx, m)
		same("MultiLock.Acquire", g.Context())
		w.Release(g)
		w.OK(m.Do(ctx, func(ctx context.Context) error { same("MultiLock.Do", ctx); return nil }))
		s := w.Permits(c, 2)
		ps, err := locktest.Each(s.Acquire(ctx, 2))
		w.OK(err)
		for _, p := range ps {
			same("Acquire of several", p.Context())
			w.OK(p.Release(bg))
		}
	})
}

// Each function is of use without the others, and AcquireStart need not make a
// context.
func TestEachFunctionIsCalledWithoutTheOthers(t *testing.T) {
	for name, of := range subjects {
		locktest.InFakeTime(t, func(w *locktest.World) {
			var told []string
			var kind redlatch.Kind
			for i, e := range []observe.Hooks{
				{AcquireStart: func(context.Context, observe.AcquireStartEvent) context.Context {
					told = append(told, "start")
					return nil
				}},
				{AcquireEnd: func(_ context.Context, e observe.AcquireEndEvent) { told = append(told, string(e.Outcome)) }},
				{HoldEnd: func(_ context.Context, e observe.HoldEndEvent) { told = append(told, string(e.Reason)) }},
			} {
				if i > 0 {
					w.Server.FlushAll()
				}
				s := of(w, &observer{events: e})
				if s.free != nil {
					s.free()
					synctest.Wait()
				}
				kind = s.want.Kind
				h, err := s.acquire(bg, forEver)
				w.OK(err)
				if h != nil {
					w.OK(h.Release(bg))
				}
			}
			want := "[start acquired released]"
			if holdless[kind] {
				want = "[start acquired]"
			}
			if got := fmt.Sprint(told); got != want {
				t.Errorf("%s: told %s, want %s", name, got, want)
			}
		})
	}
}
