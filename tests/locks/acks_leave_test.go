package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// oneIfRequired is how many replicas a policy has to be given here.
func oneIfRequired(policy redlatch.Acks) int {
	if policy == redlatch.AckRequired {
		return 1
	}
	return 0
}

// threeClients returns clients of one server with one replica, and clients of
// others that do not ask for it.
func threeClients(w *locktest.World, acks redlatch.Acks) (cs, others []*redlatch.Client, ds []*locktest.Acker) {
	w.Helper()
	for i := range 3 {
		c, d := w.Acking(redlatch.Config{ServerName: fmt.Sprint(i), Acks: acks, AckReplicas: oneIfRequired(acks)}, 1, 1)
		cs, ds = append(cs, c), append(ds, d)
		others = append(others, w.Client(redlatch.Config{ServerName: fmt.Sprint(i)}))
	}
	return cs, others, ds
}

// A caller that leaves while replicas are waited for leaves nothing behind,
// whether they acknowledge what it has got or not.
func TestWhoLeavesWhileReplicasAreWaitedForHasNothing(t *testing.T) {
	for _, x := range takings() {
		for acked := range 2 {
			t.Run(fmt.Sprint(x.name, acked), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					cs, others, ds := threeClients(w, redlatch.AckAny)
					if x.setUp != nil {
						x.setUp(w, others[0])
					}
					for _, d := range ds {
						d.Answer(func(string, []string, int) (int, error) {
							time.Sleep(200 * time.Millisecond)
							return acked, nil
						})
					}
					ctx, cancel := context.WithCancel(bg)
					defer cancel()
					time.AfterFunc(100*time.Millisecond, cancel)
					start := time.Now()
					_, err := x.take(cs, ctx, false)
					w.WantErr(err, redlatch.ErrBusy, context.Canceled)
					if took := time.Since(start); took > 700*time.Millisecond {
						t.Errorf("left after %v", took)
					}
					time.Sleep(3 * time.Second)
					wantFree(w, x, others)
				})
			})
		}
	}
}

// What somebody who has left is given is the next one's, but only if replicas know
// of it.
func TestWhatSomebodyLeftIsInheritedOnlyIfItIsAcknowledged(t *testing.T) {
	type leaver func(c *redlatch.Client, ctx context.Context) error
	alone := func(c *redlatch.Client, ctx context.Context) error {
		_, err := c.Lock("name", redlatch.Fenced()).Acquire(ctx)
		return err
	}
	for what, leave := range map[string]leaver{
		"lock":     alone,
		"transfer": alone, // of what somebody else has just released
		"multi": func(c *redlatch.Client, ctx context.Context) error {
			_, err := redlatch.MultiLock(c.Lock("name"), c.Lock("other")).Acquire(ctx)
			return err
		},
	} {
		for acked := range 2 {
			t.Run(fmt.Sprint(what, acked), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c, d := w.Acking(redlatch.Config{Acks: redlatch.AckAny}, 1, 1)
					var before *redlatch.Hold
					if what == "transfer" {
						before = w.Acquire(bg, c.Lock("name"))
					}
					d.Answer(func(string, []string, int) (int, error) {
						time.Sleep(500 * time.Millisecond)
						return acked, nil
					})
					ctx, cancel := context.WithCancel(bg)
					first := locktest.Later(func() error { return leave(c, ctx) })
					synctest.Wait()
					if before != nil {
						w.Release(before)
						synctest.Wait()
					}
					next := locktest.Acquiring(c.Lock("name"))
					synctest.Wait()
					cancel()
					w.WantErr(<-first, context.Canceled)
					d.Takes()
					time.Sleep(450 * time.Millisecond)
					if acked == 0 {
						d.Follow(1, 1) // in vain for the first
					}
					o := <-next
					w.OK(o.Err)
					// Members of a MultiLock are not handed on.
					if inherited := len(d.Takes()) == 0; inherited != (acked == 1 && what != "multi") {
						t.Errorf("inherited: %v", inherited)
					}
					w.Release(o.Hold)
					locktest.Settled()
					w.WantLocksGone()
				})
			})
		}
	}
}

func TestCloseWhileReplicasAreWaitedForLeavesNothing(t *testing.T) {
	for _, x := range takings() {
		for acked := range 2 {
			t.Run(fmt.Sprint(x.name, acked), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					cs, others, ds := threeClients(w, redlatch.AckRequired)
					if x.setUp != nil {
						x.setUp(w, others[0])
					}
					for _, d := range ds {
						d.Follow(1, acked)
						d.Answer(func(string, []string, int) (int, error) {
							time.Sleep(200 * time.Millisecond)
							return acked, nil
						})
					}
					failed := locktest.Later(func() error { _, err := x.take(cs, bg, false); return err })
					synctest.Wait()
					var closing sync.WaitGroup
					for _, c := range cs {
						closing.Go(func() { _ = c.Close() })
					}
					closing.Wait()
					w.WantErr(<-failed, redlatch.ErrClosed)
					wantFree(w, x, others)
				})
			})
		}
	}
}

// A request that nobody knows the outcome of is sent again; what counts is whether
// replicas know of it in the end.
func TestALostReplyBeforeAnAcknowledgement(t *testing.T) {
	for _, x := range takings() {
		for acked := range 2 {
			t.Run(fmt.Sprint(x.name, acked), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					cs, others, ds := threeClients(w, redlatch.AckRequired)
					if x.setUp != nil {
						x.setUp(w, others[0])
					}
					for _, d := range ds {
						var tries atomic.Int64
						d.Answer(func(string, []string, int) (int, error) {
							if tries.Add(1) == 1 {
								return 0, locktest.ErrReplyLost
							}
							return acked, nil
						})
					}
					release, err := x.take(cs, bg, false)
					if acked == 0 {
						w.WantAck(err, "", 0, 1)
						time.Sleep(time.Second) // a red lock does not wait for the last of its members
					} else {
						w.OK(err)
						w.OK(release(bg))
					}
					wantFree(w, x, others)
				})
			})
		}
	}
}

// An attempt that was too few, and one that is not asked about, are used again:
// one does not inherit from the other.
func TestAnAttemptForgetsTheLastOne(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, 1)
		for i := range 50 {
			d.Follow(1, i%2)
			h, err := c.Lock("name").Acquire(bg)
			if i%2 == 0 {
				w.WantAck(err, "name", 0, 1)
				locktest.Settled()
				continue
			}
			w.OK(err)
			w.Release(h)
			if _, err := admin.LockInfo(bg, c.Lock("name")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Permits whose acquisition replicas do not acknowledge go back, all of them,
// once: neither those who leave meanwhile, nor those who release, nor a server
// that is silent for a while changes how many there are.
func TestPermitsThatReplicasDoNotKnowAreNeitherLostNorDoubled(t *testing.T) {
	const all = 7
	locktest.InFakeTime(t, func(w *locktest.World) {
		foreign := semaphore.New(w.Client(redlatch.Config{}), "name", 0)
		w.SetPermits(foreign, all)
		var got, failed, inUse atomic.Int64
		var crowd sync.WaitGroup
		for i := range 2 {
			c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1, AckTimeout: 20 * time.Millisecond, OutageTimeout: time.Minute}, 1, 1)
			n := 0
			d.Answer(func(string, []string, int) (int, error) {
				switch n++; {
				case n%3 == 0:
					return 0, nil
				case n%7 == 0:
					return 0, locktest.ErrReplyLost
				}
				return 1, nil
			})
			s := semaphore.New(c, "name", 0)
			for j := range 20 {
				crowd.Go(func() {
					for k := 0; k < 20 || k < 1000 && failed.Load() < 5; k++ {
						want := 1 + (i+j+k)%4
						ctx, cancel := context.WithTimeout(bg, time.Duration(1+(j*k)%90)*time.Millisecond)
						var err error
						if k%5 == 0 {
							err = s.TryAcquire(ctx, want, 0)
						} else {
							err = s.Acquire(ctx, want)
						}
						cancel()
						switch {
						case errors.Is(err, redlatch.ErrNotAcknowledged):
							failed.Add(1)
						case err == nil:
							got.Add(1)
							if inUse.Add(int64(want)) > all {
								t.Errorf("%d of %d permits are in use", inUse.Load(), all)
							}
							time.Sleep(time.Duration(j%3) * time.Millisecond)
							inUse.Add(-int64(want))
							if err := s.Release(bg, want); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
		}
		crowd.Wait()
		time.Sleep(10 * time.Second)
		if n, err := foreign.Available(bg); n != all || err != nil {
			t.Errorf("%d of %d permits are left, %v", n, all, err)
		}
		if got.Load() < 50 || failed.Load() < 5 {
			t.Errorf("%d acquired, %d not acknowledged", got.Load(), failed.Load())
		}
	})
}

// What gives permits back, or changes how many there are, cannot be taken back: it
// counts though replicas do not know of it, is done once, and reported.
func TestAReleaseThatReplicasDoNotKnowIsReportedAndNotRepeated(t *testing.T) {
	for name, x := range map[string]struct {
		do   func(s *semaphore.Semaphore) error
		want string
	}{
		"release": {func(s *semaphore.Semaphore) error { return s.Release(bg, 2) }, "9"},
		"release if exists": {func(s *semaphore.Semaphore) error {
			_, err := s.ReleaseIfExists(bg, 1)
			return err
		}, "8"},
		"add":   {func(s *semaphore.Semaphore) error { return s.AddPermits(bg, 3) }, "10"},
		"drain": {func(s *semaphore.Semaphore) error { _, err := s.Drain(bg); return err }, "0"},
	} {
		for _, policy := range []redlatch.Acks{redlatch.AckAny, redlatch.AckBestEffort, redlatch.AckRequired} {
			t.Run(fmt.Sprint(name, " ", policy), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c, d, told := reporting(w, policy)
					s := semaphore.New(c, "name", 0)
					w.SetPermits(s, 7)
					d.Follow(1, 0)
					w.OK(x.do(s))
					time.Sleep(time.Minute)
					synctest.Wait()
					if len(*told) != 1 || (*told)[0].Name != "name" || (*told)[0].Err == nil {
						t.Errorf("events %+v", *told)
					}
					if free, _ := w.Server.Get("name"); free != x.want {
						t.Errorf("%s permits, want %s", free, x.want)
					}
				})
			})
		}
	}
}

// So it is with permits that have ids, however they are released.
func TestAPermitWhoseReleaseReplicasDoNotKnowIsReported(t *testing.T) {
	for name, release := range map[string]func(s *semaphore.Expirable, p *redlatch.Hold) error{
		"itself": func(_ *semaphore.Expirable, p *redlatch.Hold) error { return p.Release(bg) },
		"by id":  func(s *semaphore.Expirable, p *redlatch.Hold) error { return s.Release(bg, p.ID()) },
		"detached": func(_ *semaphore.Expirable, p *redlatch.Hold) error {
			if _, err := p.Detach(); err != nil {
				return err
			}
			return p.Release(bg)
		},
		"by one who leaves": func(_ *semaphore.Expirable, p *redlatch.Hold) error {
			ctx, cancel := context.WithCancel(bg)
			defer time.AfterFunc(time.Millisecond, cancel).Stop()
			if err := p.Release(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		},
	} {
		for _, policy := range []redlatch.Acks{redlatch.AckAny, redlatch.AckBestEffort, redlatch.AckRequired} {
			t.Run(fmt.Sprint(name, " ", policy), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c, d, told := reporting(w, policy)
					s := semaphore.NewExpirable(c, "name", 0)
					_, err := s.TrySetPermits(bg, 3)
					w.OK(err)
					ps, err := locktest.Each(semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(time.Hour)).Acquire(bg, 2))
					w.OK(err)
					d.Takes()
					w.OK(release(s, ps[0])) // replicas know this one
					time.Sleep(time.Minute)
					synctest.Wait()
					if waited := d.Takes(); len(*told) != 0 || len(waited) != 1 {
						t.Errorf("acknowledged: waited for %v, events %+v", waited, *told)
					}
					d.Follow(1, 0)
					w.OK(release(s, ps[1]))
					time.Sleep(time.Minute)
					synctest.Wait()
					if waited := d.Takes(); len(*told) != 1 || (*told)[0].Name != "name" || (*told)[0].Err == nil || len(waited) != 1 {
						t.Errorf("not acknowledged: waited for %v, events %+v", waited, *told)
					}
					if free, _ := w.Server.Get("name"); free != "3" {
						t.Errorf("%s permits, want 3", free)
					}
				})
			})
		}
	}
}

// A permit that goes back because replicas do not know it is not handed to the
// next in line. One that is released meanwhile is: they have known that for long.
func TestAPermitThatGoesBackIsNobodysInBetween(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, 1)
		s := semaphore.New(c, "name", 0)
		w.SetPermits(s, 2)
		w.OK(s.Acquire(bg, 1))
		d.Follow(1, 0)
		first := locktest.AcquiringPermits(bg, s, 1)
		second, third, fourth := locktest.AcquiringPermits(bg, s, 1), locktest.AcquiringPermits(bg, s, 1), locktest.AcquiringPermits(bg, s, 1)
		w.WantAck(<-first, "name", 0, 1)
		locktest.Settled()
		if !locktest.NoneYet(second) || !locktest.NoneYet(third) {
			t.Fatal("somebody has been handed what replicas do not know")
		}
		w.OK(s.Release(bg, 1))
		w.OK(<-second) // which was asked for in vain by now
		w.OK(s.Release(bg, 1))
		w.OK(<-third)
		w.WantAck(<-fourth, "name", 0, 1)
		w.OK(s.Release(bg, 1))
		locktest.Settled()
		if free, _ := w.Server.Get("name"); free != "2" {
			t.Errorf("%s permits", free)
		}
		d.Follow(1, 1)
		w.OK(s.Acquire(bg, 2))
	})
}

// Permits with ids too: what is given back twice, and late, is given back once.
func TestPermitsWithIDsThatReplicasDoNotKnowAreGivenBackOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckAny}, 1, 0)
		s := semaphore.NewExpirable(c, "name", 0)
		_, err := s.TrySetPermits(bg, 3)
		w.OK(err)
		left, cancel := context.WithCancel(bg)
		var asking []<-chan error
		for i := range 3 {
			ctx := bg
			if i == 1 {
				ctx = left
			}
			asking = append(asking, locktest.Later(func() error { _, err := s.Acquire(ctx, 1); return err }))
			synctest.Wait()
		}
		time.Sleep(500 * time.Millisecond)
		cancel() // while it is asked for
		w.WantErr(<-asking[1], context.Canceled)
		w.WantAck(<-asking[0], "name", 0, 1)
		w.WantAck(<-asking[2], "name", 0, 1)
		d.Follow(1, 1)
		for range 8 {
			time.Sleep(20 * time.Second)
			free, err := s.Available(bg)
			given, err2 := s.Acquired(bg)
			w.OK(errors.Join(err, err2))
			if free != 3 || given != 0 {
				t.Fatalf("%d free, %d given", free, given)
			}
		}
		ps, err := locktest.Each(s.Acquire(bg, 3))
		w.OK(err)
		time.Sleep(4 * time.Minute) // whatever is released again and again
		for _, p := range ps {
			w.OK(p.Release(bg))
		}
	})
}

// A server may have WAIT wait only for what was written on the same connection, so
// a request that was executed before must write something when it is sent again,
// or replicas would seem to know what they do not.
func TestARequestThatIsSentAgainWritesSomething(t *testing.T) {
	for _, x := range takings() {
		if x.name == "multi of several clients" || x.name == "red" {
			continue // one by one
		}
		t.Run(x.name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				cs, others, ds := threeClients(w, redlatch.AckRequired)
				if x.setUp != nil {
					x.setUp(w, others[0])
				}
				var mu sync.Mutex // requests of the background may come at the same time
				tries, sent := map[string]int{}, 0
				ttls := map[string]time.Duration{} // after the first time
				ds[0].Keyed = func(s string, keys, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					before := w.Server.Dump()
					r, err := next()
					mu.Lock()
					defer mu.Unlock()
					tries[s]++
					switch {
					case s != "semaphore.exchange" && !strings.HasSuffix(s, "take"):
					case tries[s] == 1:
						for _, key := range w.Keys() {
							ttls[key] = w.Server.TTL(key)
						}
						return driver.Reply{}, locktest.ErrReplyLost
					case tries[s] == 2:
						sent++
						raised := slices.ContainsFunc(w.Keys(), func(key string) bool {
							return w.Server.TTL(key) > 0 && w.Server.TTL(key) == ttls[key]
						})
						if !raised && w.Server.Dump() == before {
							t.Errorf("%s: nothing is written", s)
						}
					}
					return r, err
				}
				release, err := x.take(cs, bg, false)
				w.OK(err)
				w.OK(release(bg))
				mu.Lock()
				defer mu.Unlock()
				if sent == 0 {
					t.Errorf("nothing was sent again: %v", tries)
				}
			})
		})
	}
}

// reporting returns a client with one replica that has acknowledged all, and what
// it reports that replicas have not.
func reporting(w *locktest.World, policy redlatch.Acks) (*redlatch.Client, *locktest.Acker, *[]observe.NotAcknowledgedEvent) {
	var told []observe.NotAcknowledgedEvent
	c, d := w.Acking(redlatch.Config{Acks: policy, AckReplicas: oneIfRequired(policy)}, 1, 1, observe.Hooks{
		NotAcknowledged: func(e observe.NotAcknowledgedEvent) { told = append(told, e) },
	})
	return c, d, &told
}
