package redlatch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// A lock whose holder's window had ended was released at that moment: somebody else
// had it a millisecond after the holder was told to stop.
func TestTheMarginIsTheHoldersToStop(t *testing.T) {
	const lease = 10 * time.Second
	margin := 10*time.Millisecond + lease/50
	for name, of := range typesOfLock {
		for _, where := range []string{"here", "elsewhere"} {
			for _, watchdog := range []bool{true, false} {
				for _, stops := range []time.Duration{0, margin / 2} { // after the loss; 0: never
					t.Run(fmt.Sprintf("%s/%s/watchdog %v/stops after %v", name, where, watchdog, stops), func(t *testing.T) {
						inFakeTime(t, func(w *world) {
							d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
								return next()
							}}
							c := w.tapped(redlatch.Config{WatchdogTimeout: lease}, d)
							opts := []redlatch.Option{redlatch.Lease(lease)}
							if watchdog {
								opts = nil
							}
							other := c
							if where == "elsewhere" {
								other = w.client(redlatch.Config{})
							}
							h := w.acquire(of(c, "orders"), bg, opts...)
							start := time.Now()
							d.hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
								if s == "lock.renew" || s == "readwrite.renew" || s == "grouplock.renew" {
									return driver.Reply{}, errTapUnknown
								}
								return next()
							}
							wants := of
							if name == "read" {
								wants = typesOfLock["write"]
							}
							got := later(func() time.Duration {
								next := w.acquire(wants(other, "orders"), bg)
								defer w.release(next)
								return time.Since(start)
							})
							<-h.Context().Done()
							if took := time.Since(start); took != lease-margin {
								t.Errorf("told after %v", took)
							}
							if stops > 0 {
								time.Sleep(stops)
								w.wantErr(h.Release(bg), redlatch.ErrLost)
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
		inFakeTime(t, func(w *world) {
			c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
			l := c.Lock("orders")
			if shared {
				l = c.ReadWriteLock("orders").Read()
			}
			first := w.acquire(l, bg, redlatch.Lease(time.Minute))
			ctx := bg
			if !shared {
				ctx = first.Context()
			}
			second := w.acquire(l, ctx, redlatch.Lease(time.Minute))
			<-first.Context().Done()
			<-second.Context().Done()
			w.wantErr(first.Release(bg), redlatch.ErrLost)
			w.wantErr(first.Release(bg), redlatch.ErrNotHeld)
			w.freedBy(second)
			wr := other.ReadWriteLock("orders").Write()
			w.release(w.acquire(wr, bg))
		})
	}
}

// freedBy checks that a lock stands until the last who lost it releases it.
func (w *world) freedBy(lost *redlatch.Hold) {
	w.Helper()
	synctest.Wait()
	if !w.server.Exists(lost.Name()) {
		w.Error("freed while one may be at work")
	}
	w.wantErr(lost.Release(bg), redlatch.ErrLost)
	synctest.Wait()
	w.wantNoKeys()
}

// A logger and handlers that are slow kept the clock from ending contexts.
func TestAThousandHoldersAreToldBesideSlowHandlers(t *testing.T) {
	inFakeTime(t, func(w *world) {
		told := 0
		c := w.client(redlatch.Config{Events: redlatch.Events{Lost: func(redlatch.LostEvent) {
			time.Sleep(time.Second)
			told++
		}}})
		start := time.Now()
		var holds []*redlatch.Hold
		for i := range 1000 {
			holds = append(holds, w.acquire(c.Lock(fmt.Sprint(i)), bg, redlatch.Lease(300*time.Millisecond)))
		}
		m, err := redlatch.MultiLock(c.Lock("a"), c.Lock("b")).Acquire(bg, redlatch.Lease(300*time.Millisecond))
		w.no(err)
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
		w.wantNoKeys()
	})
}

// A hold that ended by its own window kept its margin only if nothing else of its
// nest, or of the process's readers, was left.
func TestTheMarginOfOneHoldIsNotGivenAwayByAnother(t *testing.T) {
	stories := map[string]func(w *world, c *redlatch.Client) (lost, other *redlatch.Hold){
		"two readers, both lost": func(w *world, c *redlatch.Client) (lost, other *redlatch.Hold) {
			l := c.ReadWriteLock("orders").Read()
			a, b := w.acquire(l, bg, redlatch.Lease(10*time.Second)), w.acquire(l, bg, redlatch.Lease(40*time.Second))
			<-b.Context().Done()
			w.wantErr(a.Release(bg), redlatch.ErrLost)
			return b, nil
		},
		"two readers, one lost": func(w *world, c *redlatch.Client) (lost, other *redlatch.Hold) {
			l := c.ReadWriteLock("orders").Read()
			a, b := w.acquire(l, bg, redlatch.Lease(10*time.Second)), w.acquire(l, bg)
			<-a.Context().Done()
			return a, b
		},
		"a read inside a write": func(w *world, c *redlatch.Client) (lost, other *redlatch.Hold) {
			wr := w.acquire(c.ReadWriteLock("orders").Write(), bg)
			rd := w.acquire(c.ReadWriteLock("orders").Read(), wr.Context(), redlatch.Lease(10*time.Second))
			<-rd.Context().Done()
			return rd, wr
		},
		"the outer of a nest": func(w *world, c *redlatch.Client) (lost, other *redlatch.Hold) {
			a := w.acquire(c.Lock("orders"), bg)
			time.Sleep(30 * time.Second)
			b := w.acquire(c.Lock("orders"), a.Context())
			<-a.Context().Done()
			return a, b
		},
		"a write with a read inside": func(w *world, c *redlatch.Client) (lost, other *redlatch.Hold) {
			wr := w.acquire(c.ReadWriteLock("orders").Write(), bg)
			time.Sleep(30 * time.Second)
			rd := w.acquire(c.ReadWriteLock("orders").Read(), wr.Context())
			<-wr.Context().Done()
			synctest.Wait()
			if _, err := w.client(redlatch.Config{}).ReadWriteLock("orders").Read().Try(bg); err == nil {
				w.Error("others read beside a writer that may be at work")
			}
			return wr, rd
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				lost, other := story(w, w.client(redlatch.Config{MaxHold: time.Minute}))
				if other != nil {
					w.release(other)
				}
				w.freedBy(lost)
			})
		})
	}
}

// The lease was taken for less than it was extended to.
func TestTheMarginIsThatOfTheExtendedLease(t *testing.T) {
	inFakeTime(t, func(w *world) {
		l := w.client(redlatch.Config{}).Lock("orders")
		h := w.acquire(l, bg, redlatch.Lease(100*time.Millisecond))
		w.no(h.Extend(bg, 100*time.Second))
		start := time.Now()
		<-h.Context().Done()
		time.Sleep(150 * time.Millisecond)
		w.release(w.acquire(l, bg))
		if took := time.Since(start); took < 100*time.Second {
			t.Errorf("the next has it after %v", took)
		}
	})
}

func TestAHandlerMayCloseTheClient(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var c *redlatch.Client
		c = w.client(redlatch.Config{Events: redlatch.Events{Lost: func(redlatch.LostEvent) {
			start := time.Now()
			if err := c.Close(); err != nil || time.Since(start) > 0 {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}}})
		h := w.acquire(c.Lock("orders"), bg, redlatch.Lease(time.Second))
		<-h.Context().Done()
		time.Sleep(time.Minute)
	})
}
