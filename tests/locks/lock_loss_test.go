package locks

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redisson #4698, #7254: nobody was told. Whatever the reason, there is one
// event, and it comes after the context has ended.
func TestEveryLossIsOneEvent(t *testing.T) {
	for reason, lose := range map[redlatch.LossReason]func(w *locktest.World, h *redlatch.Hold){
		redlatch.LostExpired: func(w *locktest.World, _ *redlatch.Hold) { w.Server.SetError("LOADING") },
		redlatch.LostGone:    func(w *locktest.World, h *redlatch.Hold) { w.Server.Del(h.Name()) },
		redlatch.LostRevoked: func(w *locktest.World, h *redlatch.Hold) {
			if ok, err := admin.ForceRelease(bg, w.Client(redlatch.Config{}).Lock(h.Name())); err != nil || !ok {
				w.Errorf("%v, %v", ok, err)
			}
		},
		redlatch.LostMaxHold: func(*locktest.World, *redlatch.Hold) {},
	} {
		t.Run(string(reason), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var h *redlatch.Hold
				var events []observe.LostEvent
				c := w.Client(redlatch.Config{MaxHold: time.Minute}, observe.Hooks{Lost: func(e observe.LostEvent) {
					if h.Context().Err() == nil {
						t.Error("the event came before the context had ended")
					}
					events = append(events, e)
				}})
				h = w.Acquire(bg, c.Lock("orders"))
				synctest.Wait()
				start := time.Now()
				lose(w, h)
				<-h.Context().Done()
				lasted, lostAt := time.Since(start), time.Now()
				w.Server.SetError("")
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if len(events) != 1 {
					t.Fatalf("%d events: %+v", len(events), events)
				}
				if e := events[0]; e.Err.Reason != reason || e.Err.Owner != h.ID() || e.Held < lasted || e.Held > lasted+time.Second || e.Site == "" {
					t.Errorf("after %v: %+v, %+v", lasted, e, e.Err)
				}
				if at := events[0].Err.Confirmed; at.Before(start) || lostAt.Sub(at) > 30*time.Second || at.After(lostAt) {
					t.Errorf("confirmed %v after the start, lost after %v", at.Sub(start), lasted)
				}
				if err := h.Release(bg); !errors.Is(err, redlatch.ErrLost) {
					t.Errorf("Release: %v", err)
				}
			})
		})
	}
}

// A lock whose holder's window had ended was released at that moment: somebody
// else had it a millisecond after the holder was told to stop.
func TestTheMarginIsTheHoldersToStop(t *testing.T) {
	const lease = 10 * time.Second
	margin := 10*time.Millisecond + lease/50
	for name, of := range locktest.TypesOfLock {
		for _, where := range []string{"here", "elsewhere"} {
			for _, watchdog := range []bool{true, false} {
				for _, stops := range []time.Duration{0, margin / 2} { // after the loss; 0: never
					t.Run(fmt.Sprintf("%s/%s/watchdog %v/stops after %v", name, where, watchdog, stops), func(t *testing.T) {
						locktest.InFakeTime(t, func(w *locktest.World) {
							d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
								return next()
							}}
							c := w.Tapped(redlatch.Config{WatchdogTimeout: lease}, d)
							opts := []redlatch.PlainOption{redlatch.Lease(lease)}
							if watchdog {
								opts = nil
							}
							other := c
							if where == "elsewhere" {
								other = w.Client(redlatch.Config{})
							}
							h := w.Acquire(bg, locktest.With(of(c, "orders"), opts...))
							start := time.Now()
							d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
								if s == "lock.renew" || s == "readwrite.renew" || s == "grouplock.renew" {
									return driver.Reply{}, locktest.ErrReplyLost
								}
								return next()
							}
							wants := of
							if name == "read" {
								wants = locktest.TypesOfLock["write"]
							}
							got := locktest.Later(func() time.Duration {
								next := w.Acquire(bg, wants(other, "orders"))
								defer w.Release(next)
								return time.Since(start)
							})
							<-h.Context().Done()
							if took := time.Since(start); took != lease-margin {
								t.Errorf("told after %v", took)
							}
							if stops > 0 {
								time.Sleep(stops)
								w.WantErr(h.Release(bg), redlatch.ErrLost)
								if took := <-got; took < lease-margin+stops || (took > lease && name != "spin") {
									t.Errorf("the holder stopped after %v, the next has it after %v", lease-margin+stops, took)
								}
								return
							}
							if took := <-got; took < lease || took > lease+3*time.Second {
								t.Errorf("the next has it after %v", took)
							}
						})
					})
				}
			}
		}
	}
}

// Of several that share a hold in Redis, or nest in one, the last one to stop
// releases it.
func TestALostLockIsFreedWhenTheLastOfItsHoldersStops(t *testing.T) {
	for _, shared := range []bool{true, false} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
			l := c.Lock("orders")
			if shared {
				l = c.ReadWriteLock("orders").Read()
			}
			first := w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Minute)))
			ctx := bg
			if !shared {
				ctx = first.Context()
			}
			second := w.Acquire(ctx, locktest.With(l, redlatch.Lease(time.Minute)))
			<-first.Context().Done()
			<-second.Context().Done()
			w.WantErr(first.Release(bg), redlatch.ErrLost)
			w.WantErr(first.Release(bg), redlatch.ErrNotHeld)
			freedBy(w, second)
			wr := other.ReadWriteLock("orders").Write()
			w.Release(w.Acquire(bg, wr))
		})
	}
}

// freedBy checks that a lock stands until the last who lost it releases it.
func freedBy(w *locktest.World, lost *redlatch.Hold) {
	w.Helper()
	synctest.Wait()
	if !w.Server.Exists(lost.Name()) {
		w.Error("freed while one may be at work")
	}
	w.WantErr(lost.Release(bg), redlatch.ErrLost)
	synctest.Wait()
	w.WantNoKeys()
}

// A logger and handlers that are slow kept the clock from ending contexts.
func TestAThousandHoldersAreToldBesideSlowHandlers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		told := 0
		c := w.Client(redlatch.Config{}, observe.Hooks{Lost: func(observe.LostEvent) {
			time.Sleep(time.Second)
			told++
		}})
		start := time.Now()
		var holds []*redlatch.Hold
		for i := range 1000 {
			holds = append(holds, w.Acquire(bg, c.Lock(fmt.Sprint(i), redlatch.Lease(300*time.Millisecond))))
		}
		m, err := redlatch.MultiLock(c.Lock("a", redlatch.Lease(300*time.Millisecond)), c.Lock("b", redlatch.Lease(300*time.Millisecond))).Acquire(bg)
		w.OK(err)
		with := holds[0].With(bg)
		for _, ctx := range []interface{ Done() <-chan struct{} }{m.Context(), with, m.With(bg)} {
			<-ctx.Done()
		}
		for _, h := range holds {
			<-h.Context().Done()
		}
		if took := time.Since(start); took > 300*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if told != 1002 {
			t.Errorf("%d events", told)
		}
		w.WantNoKeys()
	})
}

// A hold that ended by its own window kept its margin only if nothing else of its
// nest, or of the process's readers, was left.
func TestTheMarginOfOneHoldIsNotGivenAwayByAnother(t *testing.T) {
	stories := map[string]func(w *locktest.World, c *redlatch.Client) (lost, other *redlatch.Hold){
		"two readers, both lost": func(w *locktest.World, c *redlatch.Client) (lost, other *redlatch.Hold) {
			l := c.ReadWriteLock("orders").Read()
			a, b := w.Acquire(bg, locktest.With(l, redlatch.Lease(10*time.Second))), w.Acquire(bg, locktest.With(l, redlatch.Lease(40*time.Second)))
			<-b.Context().Done()
			w.WantErr(a.Release(bg), redlatch.ErrLost)
			return b, nil
		},
		"two readers, one lost": func(w *locktest.World, c *redlatch.Client) (lost, other *redlatch.Hold) {
			l := c.ReadWriteLock("orders").Read()
			a, b := w.Acquire(bg, locktest.With(l, redlatch.Lease(10*time.Second))), w.Acquire(bg, l)
			<-a.Context().Done()
			return a, b
		},
		"a read inside a write": func(w *locktest.World, c *redlatch.Client) (lost, other *redlatch.Hold) {
			wr := w.Acquire(bg, c.ReadWriteLock("orders").Write())
			rd := w.Acquire(wr.Context(), locktest.With(c.ReadWriteLock("orders").Read(), redlatch.Lease(10*time.Second)))
			<-rd.Context().Done()
			return rd, wr
		},
		"the outer of a nest": func(w *locktest.World, c *redlatch.Client) (lost, other *redlatch.Hold) {
			a := w.Acquire(bg, c.Lock("orders"))
			time.Sleep(30 * time.Second)
			b := w.Acquire(a.Context(), c.Lock("orders"))
			<-a.Context().Done()
			return a, b
		},
		"a write with a read inside": func(w *locktest.World, c *redlatch.Client) (lost, other *redlatch.Hold) {
			wr := w.Acquire(bg, c.ReadWriteLock("orders").Write())
			time.Sleep(30 * time.Second)
			rd := w.Acquire(wr.Context(), c.ReadWriteLock("orders").Read())
			<-wr.Context().Done()
			synctest.Wait()
			if _, err := w.Client(redlatch.Config{}).ReadWriteLock("orders").Read().TryAcquire(bg, 0); err == nil {
				w.Error("others read beside a writer that may be at work")
			}
			return wr, rd
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				lost, other := story(w, w.Client(redlatch.Config{MaxHold: time.Minute}))
				if other != nil {
					w.Release(other)
				}
				freedBy(w, lost)
			})
		})
	}
}

// The lease was taken for less than it was extended to.
func TestTheMarginIsThatOfTheExtendedLease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Client(redlatch.Config{}).Lock("orders")
		h := w.Acquire(bg, locktest.With(l, redlatch.Lease(100*time.Millisecond)))
		w.OK(h.Extend(bg, 100*time.Second))
		start := time.Now()
		<-h.Context().Done()
		time.Sleep(150 * time.Millisecond)
		w.Release(w.Acquire(bg, l))
		if took := time.Since(start); took < 100*time.Second {
			t.Errorf("the next has it after %v", took)
		}
	})
}

func TestAHandlerMayCloseTheClient(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var c *redlatch.Client
		c = w.Client(redlatch.Config{}, observe.Hooks{Lost: func(observe.LostEvent) {
			start := time.Now()
			if err := c.Close(); err != nil || time.Since(start) > 0 {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}})
		h := w.Acquire(bg, c.Lock("orders", redlatch.Lease(time.Second)))
		<-h.Context().Done()
		time.Sleep(time.Minute)
	})
}

// redisson #3854, #7254; rueidislock had two owners for 2.5 s.
func TestAHolderThatIsCutOffIsToldBeforeRedisGivesTheLockAway(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		time.Sleep(14 * time.Second) // one renewal
		w.Server.SetError("LOADING the server does not answer usefully")
		<-h.Context().Done()
		w.Server.SetError("")
		if left := w.Server.TTL("orders"); left <= 0 {
			t.Fatalf("told %v after the lock was free", -left)
		}
		var lost *redlatch.LostError
		if !errors.As(context.Cause(h.Context()), &lost) || lost.Reason != redlatch.LostExpired {
			t.Fatalf("cause %v, want LostExpired", context.Cause(h.Context()))
		}
	})
}

// redisson #2037: renewal went on although the key was gone.
func TestARenewalThatFindsTheLockGoneIsALoss(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var events int
		c := w.Client(redlatch.Config{}, observe.Hooks{Lost: func(e observe.LostEvent) {
			if e.Err.Reason != redlatch.LostGone {
				t.Errorf("reason %v", e.Err.Reason)
			}
			events++
		}})
		h := w.Acquire(bg, c.Lock("orders"))
		w.Server.Del("orders")
		start := time.Now()
		<-h.Context().Done()
		synctest.Wait()
		if d := time.Since(start); d > 10*time.Second+time.Millisecond || events != 1 {
			t.Fatalf("told after %v by %d events, want one at the next renewal", d, events)
		}
		// redisson #3712: a new acquisition after a loss is renewed like any other.
		again := w.Acquire(bg, c.Lock("orders"))
		time.Sleep(time.Minute)
		if again.Err() != nil {
			t.Fatal(again.Err())
		}
		w.Release(again)
	})
}

// A section that asks Err again and again sees a loss before anything was woken by
// it. It is to see why, too.
func TestALossThatErrShowsHasItsCause(t *testing.T) {
	for name, of := range map[string]func(ctx context.Context, h *redlatch.Hold) context.Context{
		"Context": func(_ context.Context, h *redlatch.Hold) context.Context { return h.Context() },
		"With":    func(ctx context.Context, h *redlatch.Hold) context.Context { return h.With(ctx) },
		"below": func(ctx context.Context, h *redlatch.Hold) context.Context {
			return context.WithValue(h.With(ctx), h, "value")
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				for range 20 {
					h := w.Acquire(ctx, c.Lock("orders", redlatch.Lease(time.Second)))
					held := of(ctx, h)
					time.Sleep(time.Until(h.Expires()))
					w.WantErr(held.Err(), context.Canceled)
					w.WantErr(context.Cause(held), redlatch.ErrLost)
					_ = h.Release(bg)
				}
			})
		})
	}
}
