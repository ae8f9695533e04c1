package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A taking is a way to acquire something from clients of one server, most often
// of the first.
type taking struct {
	name   string
	setUp  func(w *locktest.World, c *redlatch.Client)
	take   func(cs []*redlatch.Client, ctx context.Context, once bool) (release func(context.Context) error, err error)
	permit bool // what can be had by others is counted: see wantFree
}

// waitOf is none for a call that is to try once.
func waitOf(once bool) time.Duration {
	if once {
		return 0
	}
	return time.Hour
}

func takingLock(name string, of func(c *redlatch.Client) *redlatch.Lock, opts ...redlatch.PlainOption) taking {
	return taking{name: name, take: func(cs []*redlatch.Client, ctx context.Context, once bool) (func(context.Context) error, error) {
		l := of(cs[0])
		h, err := locktest.With(l, opts...).TryAcquire(ctx, waitOf(once))
		if err != nil {
			return nil, err
		}
		return h.Release, nil
	}}
}

func takingMulti(name string, of func(cs []*redlatch.Client) *redlatch.Lock) taking {
	return taking{name: name, take: func(cs []*redlatch.Client, ctx context.Context, once bool) (func(context.Context) error, error) {
		m := of(cs)
		h, err := m.TryAcquire(ctx, waitOf(once))
		if err != nil {
			return nil, err
		}
		return h.Release, nil
	}}
}

// takings are all ways to acquire something.
func takings() (all []taking) {
	for kind, of := range locktest.MemberKinds {
		all = append(all, takingLock(kind, func(c *redlatch.Client) *redlatch.Lock { return of(c, "name") }))
	}
	lock := func(c *redlatch.Client) *redlatch.Lock { return c.Lock("name") }
	return append(all,
		takingLock("non-re-entry fair", func(c *redlatch.Client) *redlatch.Lock { return c.FairLock("name", redlatch.NonReentrant()) }),
		takingLock("striped", func(c *redlatch.Client) *redlatch.Lock { return c.StripedLock("name", 4).For("key") }),
		takingLock("lease", lock, redlatch.Lease(time.Minute)),
		takingLock("token", lock, redlatch.Fenced()),
		takingLock("fair with a token and a lease", func(c *redlatch.Client) *redlatch.Lock { return c.FairLock("name") },
			redlatch.Fenced(), redlatch.Lease(time.Minute)),
		takingLock("read with a lease", func(c *redlatch.Client) *redlatch.Lock { return c.ReadWriteLock("name").Read() }, redlatch.Lease(time.Minute)),
		takingLock("write before readers", func(c *redlatch.Client) *redlatch.Lock { return c.ReadWriteLock("name").PreferWriters().Write() }),
		takingMulti("multi together", func(cs []*redlatch.Client) *redlatch.Lock {
			return redlatch.MultiLock(cs[0].Lock("a"), cs[0].Lock("b"), redisson.SpinLock(cs[0], "c", nil))
		}),
		takingMulti("multi one by one", func(cs []*redlatch.Client) *redlatch.Lock {
			return redlatch.MultiLock(cs[0].FairLock("a"), cs[0].Lock("b", redlatch.Fenced()), cs[0].ReadWriteLock("c").Write())
		}),
		takingMulti("multi of several clients", func(cs []*redlatch.Client) *redlatch.Lock {
			return redlatch.MultiLock(cs[0].Lock("a"), cs[1].Lock("b"), cs[2].Lock("c"))
		}),
		takingMulti("red", func(cs []*redlatch.Client) *redlatch.Lock {
			return redlatch.RedLock(cs[0].Lock("a"), cs[1].Lock("b"), cs[2].Lock("c"))
		}),
		taking{
			name: "semaphore", permit: true,
			setUp: func(w *locktest.World, c *redlatch.Client) { w.SetPermits(semaphore.New(c, "name", 0), 3) },
			take: func(cs []*redlatch.Client, ctx context.Context, once bool) (func(context.Context) error, error) {
				s := semaphore.New(cs[0], "name", 0)
				release := func(ctx context.Context) error { return s.Release(ctx, 2) }
				if once {
					return release, s.TryAcquire(ctx, 2, 0)
				}
				return release, s.Acquire(ctx, 2)
			},
		},
		taking{
			name: "expirable semaphore", permit: true,
			setUp: func(w *locktest.World, c *redlatch.Client) {
				_, err := semaphore.NewExpirable(c, "name", 0).TrySetPermits(bg, 3)
				w.OK(err)
			},
			take: func(cs []*redlatch.Client, ctx context.Context, once bool) (func(context.Context) error, error) {
				s := semaphore.NewExpirable(cs[0], "name", 0)
				ps, err := locktest.Each(s.TryAcquire(ctx, 2, waitOf(once)))
				return func(ctx context.Context) error {
					var errs []error
					for _, p := range ps {
						errs = append(errs, p.Release(ctx))
					}
					return errors.Join(errs...)
				}, err
			},
		},
	)
}

// wantFree checks that nothing of a taking is left in Redis, but for what the
// documentation says, and that others can have it.
func wantFree(w *locktest.World, x taking, other []*redlatch.Client) {
	w.Helper()
	locktest.Settled()
	if !x.permit {
		w.WantLocksGone()
	} else if free, err := w.Server.Get("name"); err != nil || free != "3" {
		w.Errorf("%s of 3 permits are free (%v): keys %v", free, err, w.Keys())
	}
	release, err := x.take(other, bg, true)
	if err != nil {
		w.Fatalf("another client: %v", err)
	}
	w.OK(release(bg))
	locktest.Settled()
}

// A policy with the number of replicas that it asks for, and what it takes.
var policies = []struct {
	name  string
	acks  redlatch.Acks
	alone bool
	wants int // 0: it asks nobody
	needs int
}{
	{"auto and one server", redlatch.AckAuto, true, 0, 0},
	{"auto", redlatch.AckAuto, false, 1, 1},
	{"off", redlatch.AckOff, false, 0, 0},
	{"best effort", redlatch.AckBestEffort, false, 1, 0},
	{"any", redlatch.AckAny, true, 1, 1},
	{"one", redlatch.AckRequired, true, 1, 1},
	{"two", redlatch.AckRequired, false, 2, 2},
}

// Redisson issues 3994, 4222, 4305, 4646 and 4672: what replicas have not
// acknowledged fails, and stays.
func TestWhatReplicasHaveNotAcknowledgedIsGivenBack(t *testing.T) {
	for _, x := range takings() {
		for _, p := range policies {
			t.Run(x.name+"/"+p.name, func(t *testing.T) {
				try := func(acked int, once bool) {
					locktest.InFakeTime(t, func(w *locktest.World) { takeUnder(w, x, p.acks, p.alone, p.wants, p.needs, acked, once) })
				}
				try(p.wants, false)
				if p.wants > 0 {
					try(p.wants-1, false)
					try(p.wants-1, true)
				}
			})
		}
	}
}

func takeUnder(w *locktest.World, x taking, policy redlatch.Acks, alone bool, wants, needs, acked int, once bool) {
	replicas := 0
	if policy == redlatch.AckRequired {
		replicas = needs
	}
	var events atomic.Int64
	var cs, others []*redlatch.Client
	var ds []*locktest.Acker
	for i := range 3 {
		d := &locktest.Acker{Alone: alone}
		d.Follow(2, acked)
		cs = append(cs, w.AckingWith(redlatch.Config{
			ServerName: fmt.Sprint(i), Acks: policy, AckReplicas: replicas,
		}, d, observe.Hooks{NotAcknowledged: func(e observe.NotAcknowledgedEvent) {
			if e.Name == "" || e.Err.Got != acked || e.Err.Want != wants {
				w.Errorf("%+v", e)
			}
			events.Add(1)
		}}))
		others = append(others, w.Client(redlatch.Config{ServerName: fmt.Sprint(i)}))
		ds = append(ds, d)
	}
	if x.setUp != nil {
		x.setUp(w, others[0])
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(bg, time.Minute) // or some would never end
	defer cancel()
	release, err := x.take(cs, ctx, once)
	took := time.Since(start)
	waited := 0
	for _, d := range ds {
		d.Mu.Lock() // a member of a red lock may not have been heard yet
		waited += len(d.Waited)
		for i, n := range d.Wanted {
			if n != wants || d.Limits[i] < time.Millisecond || d.Limits[i] > time.Second {
				w.Errorf("waits for %d replicas for %v, want %d", n, d.Limits[i], wants)
			}
		}
		d.Mu.Unlock()
	}
	if (waited > 0) != (wants > 0) {
		w.Errorf("waited for replicas %d times", waited)
	}
	w.Settle()
	if want := acked < wants && needs == 0; (events.Load() > 0) != want {
		w.Errorf("%d events", events.Load())
	}
	if acked < needs {
		w.WantAck(err, "", acked, needs)
		if took > 3500*time.Millisecond {
			w.Errorf("failed after %v", took)
		}
		wantFree(w, x, others)
		if replicas == 2 && once {
			time.Sleep(4 * time.Minute) // whatever is released again and again
			wantFree(w, x, others)
		}
		return
	}
	w.OK(err)
	if also, err := x.take(others, bg, true); err == nil {
		if x.name != "read" && x.name != "read with a lease" {
			w.Error("another client has it too")
		}
		w.OK(also(bg))
	}
	w.OK(release(bg))
	wantFree(w, x, others)
}

// Nothing needs replicas but what acquires, what gives permits back or changes
// their number, or what prolongs a lease that must be acknowledged.
func TestWhatReplicasAreAskedFor(t *testing.T) {
	for policy, renewals := range map[redlatch.Acks][]string{
		redlatch.AckAny:        nil,
		redlatch.AckBestEffort: nil,
		redlatch.AckRequired:   {"readwrite.renew", "expirable.renew"},
	} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c, d := w.Acking(redlatch.Config{Acks: policy, AckReplicas: oneIfRequired(policy)}, 1, 1)
			want := []string{
				"lock.take", "lock.renew", "lock.transfer", "fairlock.take", "readwrite.read.take", "readwrite.write.take",
				"grouplock.take", "grouplock.renew", "multilock.take", "semaphore.exchange", "semaphore.set", "semaphore.add", "semaphore.drain",
				"expirable.take", "expirable.try_set", "expirable.release", "expirable.give_back",
			}
			l := c.Lock("lock")
			h := w.Acquire(bg, l)
			w.Release(w.Acquire(h.Context(), l))
			next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Minute))) })
			locktest.Settled()
			w.Release(h)
			w.Release(<-next)
			rw := c.ReadWriteLock("rw")
			w.Release(w.Acquire(bg, rw.Read()))
			w.Release(w.Acquire(bg, rw.Write()))
			g := w.Acquire(bg, redisson.GroupLock(c, "group", []string{"x"}))
			w.Release(w.Acquire(g.Context(), redisson.GroupLock(c, "group", []string{"x"})))
			w.Release(w.Acquire(bg, c.FairLock("fair")))
			m, err := redlatch.MultiLock(c.Lock("a"), c.Lock("b")).Acquire(bg)
			w.OK(err)
			s := semaphore.New(c, "permits", 0)
			w.SetPermits(s, 1)
			w.OK(s.AddPermits(bg, 1))
			_, err = s.Drain(bg)
			w.OK(errors.Join(err, s.Release(bg, 1), s.Acquire(bg, 1)))
			e := semaphore.NewExpirable(c, "expirable", 0)
			_, err = e.TrySetPermits(bg, 1)
			w.OK(err)
			p, err := e.Acquire(bg, 1)
			w.OK(err)
			r := w.Acquire(bg, rw.Read())
			time.Sleep(11 * time.Second) // renewals
			w.OK(errors.Join(m.Release(bg), r.Release(bg), g.Release(bg), s.Release(bg, 1), p.Release(bg)))
			p, err = e.Acquire(bg, 1)
			w.OK(err)
			w.OK(e.Release(bg, p.ID()))
			counted := latch.New(c, "latch")
			_, err = counted.TrySetCount(bg, 1)
			w.OK(errors.Join(err, counted.CountDown(bg)))
			rate := ratelimit.New(c, "rate", ratelimit.Rate{})
			_, err = rate.TrySetRate(bg, ratelimit.Rate{Permits: 1, Interval: time.Second})
			w.OK(errors.Join(err, rate.Acquire(bg, 1), rate.Release(bg, 1), rate.SetRate(bg, ratelimit.Rate{Permits: 2, Interval: time.Second})))
			b := barrier.New(c, "barrier", 1)
			_, err = b.Await(bg)
			w.OK(errors.Join(err, b.Reset(bg)))
			got := d.Takes()
			slices.Sort(got)
			got = slices.Compact(got)
			want = append(want, renewals...)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("under %d replicas are waited for after\n%v, want\n%v", policy, got, want)
			}
		})
	}
}

// A caller whose acquisition replicas have not acknowledged is out of the way at
// once, for callers of its own process and others.
func TestWaitersGetWhatReplicasHaveNotAcknowledged(t *testing.T) {
	for kind, of := range locktest.MemberKinds {
		if kind == "read" {
			continue // members of one party fail together
		}
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, 0)
				l, foreign := of(c, "name"), of(w.Client(redlatch.Config{}), "name")
				first := locktest.Acquiring(l)
				synctest.Wait()
				local, other := locktest.Acquiring(l), locktest.Acquiring(foreign)
				time.Sleep(500 * time.Millisecond)
				d.Follow(1, 1) // but too late for the first
				start := time.Now()
				w.WantAck((<-first).Err, "name", 0, 1)
				for range 2 {
					var o locktest.Outcome
					select {
					case o = <-local:
					case o = <-other:
					}
					w.OK(o.Err)
					time.Sleep(10 * time.Millisecond)
					w.Release(o.Hold)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("the others had to wait for %v", took)
				}
				locktest.Settled()
				w.WantLocksGone()
			})
		})
	}
}
