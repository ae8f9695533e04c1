package locks

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestAFairLockIsHandedOverWithOneRequest(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, byA := w.Counted(redlatch.Config{})
		b, byB := w.Counted(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		next := w.Waiting(bg, b.FairLock("orders"))
		byA()
		byB()
		w.Release(h)
		h = w.Got(next)
		if got := append(byA(), byB()...); !slices.Equal(got, []string{"fairlock.release"}) {
			t.Errorf("ran %q", got)
		}
		if left := time.Until(h.Expires()); left < 5*time.Second || left > 6*time.Second {
			t.Errorf("the lock can be trusted for %v", left)
		}
		w.Release(h) // before it was renewed
		if got := byB(); !slices.Equal(got, []string{"fairlock.release"}) {
			t.Errorf("ran %q", got)
		}
		w.WantNothing()
	})
}

// What it is given with lasts for six seconds. Who stays is not to be lost by an
// outage that others survive, but a brief section costs no renewal.
func TestAGivenLockIsSoonKeptLikeAnyOther(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var cut atomic.Bool
		a, b := w.Client(redlatch.Config{}), w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: locktest.Failing(&cut, locktest.ErrReplyLost)})
		for range 3 {
			h := w.Acquire(bg, a.FairLock("orders"))
			next := w.Waiting(bg, b.FairLock("orders"))
			time.Sleep(time.Minute)
			w.Release(h)
			h = w.Got(next)
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			if ttl := w.Server.TTL("orders"); ttl < 29*time.Second {
				t.Errorf("the lock lasts for %v", ttl)
			}
			cut.Store(true)
			time.Sleep(25 * time.Second)
			cut.Store(false)
			time.Sleep(time.Minute)
			w.Release(h)
		}
		w.WantNothing()
	})
}

// The lock outlives its dead holder by no more than its lease, has a token for
// each hold, or belongs to a waiter of Redisson, who does not know of this.
func TestWhoCannotBeGivenTheLockIsToldToTakeIt(t *testing.T) {
	for name, opts := range map[string][]redlatch.PlainOption{
		"with a lease": {redlatch.Lease(time.Second)},
		"fenced":       {redlatch.Fenced()},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a := w.Client(redlatch.Config{})
				b, byB := w.Counted(redlatch.Config{})
				before := w.Acquire(bg, locktest.With(a.FairLock("orders"), opts...))
				next := w.Waiting(bg, locktest.With(b.FairLock("orders"), opts...))
				published := w.Eavesdrop()
				byB()
				w.Release(before)
				h := w.Got(next)
				if got := published(); len(got) != 1 || !strings.HasSuffix(got[0], " 0") {
					t.Errorf("published %q", got)
				}
				if got := byB(); !slices.Contains(got, "fairlock.take") {
					t.Errorf("ran %q", got)
				}
				if name == "fenced" && h.Token() != before.Token()+1 {
					t.Errorf("token %d after %d", h.Token(), before.Token())
				}
				w.Release(h)
			})
		})
	}
	t.Run("with a short watchdog", func(t *testing.T) {
		locktest.InFakeTime(t, func(w *locktest.World) {
			a, b := w.Client(redlatch.Config{}), w.Tapped(redlatch.Config{WatchdogTimeout: 3 * time.Second}, &locktest.Tap{Timeout: 100 * time.Millisecond})
			h := w.Acquire(bg, a.FairLock("orders"))
			next := w.Waiting(bg, b.FairLock("orders"))
			w.Release(h)
			h = w.Got(next)
			if ttl := w.Server.TTL("orders"); ttl > 3*time.Second {
				t.Errorf("the lock lasts for %v", ttl)
			}
			w.Release(h)
		})
	})
}

func TestALostMessageOfAGivenLockCostsAPoll(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, d := w.Client(redlatch.Config{}), &locktest.Tap{Deaf: true}
		b := w.Tapped(redlatch.Config{}, d)
		h := w.Acquire(bg, a.FairLock("orders"))
		next := w.Waiting(bg, b.FairLock("orders"))
		start := time.Now()
		w.Release(h)
		h = w.Got(next)
		if took := time.Since(start); took > 2400*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if ttl := w.Server.TTL("orders"); ttl != 30*time.Second {
			t.Errorf("the lock lasts for %v", ttl)
		}
		w.Release(h)
		w.WantNothing()
	})
}

// The message was in flight for longer than the lock was given for.
func TestAMessageThatComesTooLateGivesNothing(t *testing.T) {
	for name, after := range map[string]time.Duration{"nearly over": 5 * time.Second, "over": 7 * time.Second, "another has it": 9 * time.Second} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				cut := make(chan struct{})
				d := &locktest.Tap{Late: after, Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					select {
					case <-cut:
						return driver.Reply{}, locktest.ErrReplyLost
					default:
						return next()
					}
				}}
				a, b := w.Client(redlatch.Config{}), w.Tapped(redlatch.Config{OutageTimeout: time.Minute}, d)
				h := w.Acquire(bg, a.FairLock("orders"))
				next := w.Waiting(bg, b.FairLock("orders"))
				close(cut)
				w.Release(h)
				time.Sleep(after + time.Second)
				if !locktest.NoneYet(next) {
					t.Error("b has the lock, and cannot know")
				}
				var other *redlatch.Hold
				if after > 8*time.Second {
					other = w.Acquire(bg, a.FairLock("orders"))
				}
				d.Off.Store(true)
				if other != nil {
					time.Sleep(3 * time.Second)
					if !locktest.NoneYet(next) {
						t.Error("two have the lock")
					}
					w.Release(other)
				}
				w.Release(w.Got(next))
				time.Sleep(5 * time.Minute) // debts
				w.WantNothing()
			})
		})
	}
}

// A waiter that has lost what it was given, and is in the queue again, must not
// take the old message for a new one.
func TestAnOldMessageToOneThatIsInTheQueueAgainGivesNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var cut atomic.Bool
		d := &locktest.Tap{Late: 9 * time.Second, Hook: locktest.Failing(&cut, locktest.ErrReplyLost)}
		a, b := w.Client(redlatch.Config{}), w.Tapped(redlatch.Config{OutageTimeout: time.Minute}, d)
		h := w.Acquire(bg, a.FairLock("orders"))
		next := w.Waiting(bg, b.FairLock("orders"))
		time.Sleep(100 * time.Millisecond) // b has subscribed, and has asked once more
		cut.Store(true)
		w.Release(h)
		time.Sleep(7 * time.Second)
		h = w.Acquire(bg, a.FairLock("orders"))
		cut.Store(false)
		time.Sleep(4 * time.Second)
		if len(w.Queue("orders")) != 1 || !locktest.NoneYet(next) {
			t.Error("two have the lock")
		}
		w.Release(h)
		w.Release(w.Got(next))
		time.Sleep(3 * time.Minute) // debts
		w.WantNothing()
	})
}

// The server still counts it among those who listen.
func TestADeadWaiterThatIsGivenTheLockDelaysTheNextBySeconds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, c, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Mortal()
		h := w.Acquire(bg, a.FairLock("orders"))
		w.Waiting(bg, b.FairLock("orders"))
		next := w.Waiting(bg, c.FairLock("orders"))
		b.Dead.Store(true)
		start := time.Now()
		w.Release(h)
		h = w.Got(next)
		if took := time.Since(start); took < time.Second || took > 8500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		_ = b.Close()
		w.Release(h)
		w.WantNothing()
	})
}

// Being given the lock and giving up cross each other: it must go on.
func TestAGivenLockThatNobodyWantsAnyMoreGoesToTheNext(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		for range 50 {
			h := w.Acquire(bg, a.FairLock("orders"))
			ctx, cancel := context.WithCancel(bg)
			unsure, last := w.Waiting(ctx, b.FairLock("orders")), w.Waiting(bg, c.FairLock("orders"))
			go cancel()
			w.Release(h)
			if o := <-unsure; o.Err == nil {
				w.Release(o.Hold)
			}
			start := time.Now()
			w.Release(w.Got(last))
			if took := time.Since(start); took > 0 {
				t.Fatalf("it took %v", took)
			}
		}
		w.WantNothing()
	})
}

func TestALockThatIsGivenToAClientThatClosesGoesToTheNext(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		for range 30 {
			b := w.Client(redlatch.Config{})
			h := w.Acquire(bg, a.FairLock("orders"))
			unsure, last := w.Waiting(bg, b.FairLock("orders")), w.Waiting(bg, c.FairLock("orders"))
			closed := locktest.Later(b.Close)
			w.Release(h)
			start := time.Now()
			o := <-unsure
			if err := <-closed; err != nil {
				t.Fatal(err)
			}
			if o.Err == nil { // left to its TTL, as any
				w.WantErr(o.Hold.Err(), redlatch.ErrClosed)
				time.Sleep(10 * time.Second)
			} else {
				w.WantErr(o.Err, redlatch.ErrClosed)
			}
			h = w.Got(last)
			if took := time.Since(start); o.Err != nil && took > 0 {
				t.Fatalf("it took %v", took)
			}
			w.Release(h)
		}
		w.WantNothing()
	})
}

func TestAGivenLockThatIsForcedIsLost(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		next := w.Waiting(bg, b.FairLock("orders"))
		w.Release(h)
		h = w.Got(next)
		if ok, err := admin.ForceRelease(bg, a.FairLock("orders")); !ok || err != nil {
			t.Fatal(ok, err)
		}
		start := time.Now()
		<-h.Context().Done()
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("told after %v", took)
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.WantNothing()
	})
}

// The message that it has the lock comes after it has lost it again.
func TestAGivenLockThatIsForcedBeforeItsWaiterKnowsIsNotBelievedIn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, c, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Tapped(redlatch.Config{}, &locktest.Tap{Late: 500 * time.Millisecond})
		h := w.Acquire(bg, a.FairLock("orders"))
		first, second := w.Waiting(bg, b.FairLock("orders")), w.Waiting(bg, c.FairLock("orders"))
		time.Sleep(100 * time.Millisecond) // b has subscribed, and has asked once more
		w.Release(h)
		time.Sleep(100 * time.Millisecond)
		if ok, err := admin.ForceRelease(bg, a.FairLock("orders")); !ok || err != nil {
			t.Fatal(ok, err)
		}
		start := time.Now()
		h = w.Got(second)
		if took := time.Since(start); took > 0 {
			t.Errorf("it took %v", took)
		}
		time.Sleep(10 * time.Second)
		if !locktest.NoneYet(first) {
			t.Error("two have the lock")
		}
		w.Release(h)
		w.Release(w.Got(first)) // it has lined up again
		w.WantNothing()
	})
}

// It does not have the time that the watchdog has else to find out that there will
// be no answer.
func TestAGivenLockOutlivesRenewalsWithoutAnAnswer(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var n atomic.Int32
		a, b := w.Client(redlatch.Config{}), w.Tapped(redlatch.Config{}, &locktest.Tap{Timeout: 5 * time.Second, Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" && n.Add(1) <= 2 {
				time.Sleep(5 * time.Second)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}})
		h := w.Acquire(bg, a.FairLock("orders"))
		next := w.Waiting(bg, b.FairLock("orders"))
		w.Release(h)
		h = w.Got(next)
		time.Sleep(time.Minute)
		w.Release(h)
		w.WantNothing()
	})
}

// What was re-entered for a shorter lease is confirmed again and again, but not
// for longer.
func TestBriefReentriesDoNotPutOffTheRenewalOfAGivenLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		next := w.Waiting(bg, b.FairLock("orders"))
		w.Release(h)
		h = w.Got(next)
		for range 60 {
			time.Sleep(time.Second)
			if err := h.Err(); err != nil {
				t.Fatal(err)
			}
			w.Release(w.Acquire(h.Context(), b.FairLock("orders", redlatch.Lease(500*time.Millisecond))))
		}
		w.Release(h)
		w.WantNothing()
	})
}
