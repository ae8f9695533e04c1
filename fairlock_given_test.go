package redlatch_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// counted returns a client and how many scripts it has run since the last look.
func (w *world) counted(cfg redlatch.Config) (c *redlatch.Client, since func() []string) {
	var mu sync.Mutex
	var ran []string
	c = w.tapped(cfg, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, s)
		return next()
	}})
	return c, func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		old := ran
		ran = nil
		return old
	}
}

func TestAFairLockIsHandedOverWithOneRequest(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, byA := w.counted(redlatch.Config{})
		b, byB := w.counted(redlatch.Config{})
		h := w.acquire(a.FairLock("orders"), bg)
		next := w.waiting(b.FairLock("orders"), bg)
		byA()
		byB()
		w.release(h)
		h = w.got(next)
		if got := append(byA(), byB()...); !slices.Equal(got, []string{"fairlock.release"}) {
			t.Errorf("ran %q", got)
		}
		if left := time.Until(h.Expires()); left < 5*time.Second || left > 6*time.Second {
			t.Errorf("the lock can be trusted for %v", left)
		}
		w.release(h) // before it was renewed
		if got := byB(); !slices.Equal(got, []string{"fairlock.release"}) {
			t.Errorf("ran %q", got)
		}
		w.wantNothing()
	})
}

// What it is given with lasts for six seconds. Who stays is not to be lost by an
// outage that others survive, but a brief section costs no renewal.
func TestAGivenLockIsSoonKeptLikeAnyOther(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var cut atomic.Bool
		a, b := w.client(redlatch.Config{}), w.tapped(redlatch.Config{}, &tap{hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if cut.Load() {
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}})
		for range 3 {
			h := w.acquire(a.FairLock("orders"), bg)
			next := w.waiting(b.FairLock("orders"), bg)
			time.Sleep(time.Minute)
			w.release(h)
			h = w.got(next)
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			if ttl := w.server.TTL("orders"); ttl < 29*time.Second {
				t.Errorf("the lock lasts for %v", ttl)
			}
			cut.Store(true)
			time.Sleep(25 * time.Second)
			cut.Store(false)
			time.Sleep(time.Minute)
			w.release(h)
		}
		w.wantNothing()
	})
}

// The lock outlives its dead holder by no more than its lease, has a token for
// each hold, or belongs to a waiter of Redisson, who does not know of this.
func TestWhoCannotBeGivenTheLockIsToldToTakeIt(t *testing.T) {
	for name, opts := range map[string][]redlatch.Option{
		"with a lease": {redlatch.Lease(time.Second)},
		"fenced":       {redlatch.Fenced()},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				a := w.client(redlatch.Config{})
				b, byB := w.counted(redlatch.Config{})
				before := w.acquire(a.FairLock("orders"), bg, opts...)
				next := w.waiting(b.FairLock("orders"), bg, opts...)
				published := w.eavesdrop()
				byB()
				w.release(before)
				h := w.got(next)
				if got := published(); len(got) != 1 || !strings.HasSuffix(got[0], " 0") {
					t.Errorf("published %q", got)
				}
				if got := byB(); !slices.Contains(got, "fairlock.take") {
					t.Errorf("ran %q", got)
				}
				if name == "fenced" && h.Token() != before.Token()+1 {
					t.Errorf("token %d after %d", h.Token(), before.Token())
				}
				w.release(h)
			})
		})
	}
	t.Run("with a short watchdog", func(t *testing.T) {
		inFakeTime(t, func(w *world) {
			a, b := w.client(redlatch.Config{}), w.tapped(redlatch.Config{WatchdogTimeout: 3 * time.Second}, &tap{timeout: 100 * time.Millisecond})
			h := w.acquire(a.FairLock("orders"), bg)
			next := w.waiting(b.FairLock("orders"), bg)
			w.release(h)
			h = w.got(next)
			if ttl := w.server.TTL("orders"); ttl > 3*time.Second {
				t.Errorf("the lock lasts for %v", ttl)
			}
			w.release(h)
		})
	})
}

func TestALostMessageOfAGivenLockCostsAPoll(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, d := w.client(redlatch.Config{}), &tap{deaf: true}
		b := w.tapped(redlatch.Config{}, d)
		h := w.acquire(a.FairLock("orders"), bg)
		next := w.waiting(b.FairLock("orders"), bg)
		start := time.Now()
		w.release(h)
		h = w.got(next)
		if took := time.Since(start); took > 2400*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if ttl := w.server.TTL("orders"); ttl != 30*time.Second {
			t.Errorf("the lock lasts for %v", ttl)
		}
		w.release(h)
		w.wantNothing()
	})
}

// The message was under way for longer than the lock was given for.
func TestAMessageThatComesTooLateGivesNothing(t *testing.T) {
	for name, after := range map[string]time.Duration{"nearly over": 5 * time.Second, "over": 7 * time.Second, "another has it": 9 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				cut := make(chan struct{})
				d := &tap{late: after, hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					select {
					case <-cut:
						return driver.Reply{}, errTapUnknown
					default:
						return next()
					}
				}}
				a, b := w.client(redlatch.Config{}), w.tapped(redlatch.Config{OutageTimeout: time.Minute}, d)
				h := w.acquire(a.FairLock("orders"), bg)
				next := w.waiting(b.FairLock("orders"), bg)
				close(cut)
				w.release(h)
				time.Sleep(after + time.Second)
				if !none(next) {
					t.Error("b has the lock, and cannot know")
				}
				var other *redlatch.Hold
				if after > 8*time.Second {
					other = w.acquire(a.FairLock("orders"), bg)
				}
				d.off.Store(true)
				if other != nil {
					time.Sleep(3 * time.Second)
					if !none(next) {
						t.Error("two have the lock")
					}
					w.release(other)
				}
				w.release(w.got(next))
				time.Sleep(5 * time.Minute) // debts
				w.wantNothing()
			})
		})
	}
}

// A waiter that has lost what it was given, and is in the queue again, must not take
// the old message for a new one.
func TestAnOldMessageToOneThatIsInTheQueueAgainGivesNothing(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var cut atomic.Bool
		d := &tap{late: 9 * time.Second, hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if cut.Load() {
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}}
		a, b := w.client(redlatch.Config{}), w.tapped(redlatch.Config{OutageTimeout: time.Minute}, d)
		h := w.acquire(a.FairLock("orders"), bg)
		next := w.waiting(b.FairLock("orders"), bg)
		time.Sleep(100 * time.Millisecond) // b has subscribed, and has asked once more
		cut.Store(true)
		w.release(h)
		time.Sleep(7 * time.Second)
		h = w.acquire(a.FairLock("orders"), bg)
		cut.Store(false)
		time.Sleep(4 * time.Second)
		if len(w.queue("orders")) != 1 || !none(next) {
			t.Error("two have the lock")
		}
		w.release(h)
		w.release(w.got(next))
		time.Sleep(3 * time.Minute) // debts
		w.wantNothing()
	})
}

func TestADeadWaiterThatIsGivenTheLockDelaysTheNextBySeconds(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, c, b := w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.mortal()
		h := w.acquire(a.FairLock("orders"), bg)
		w.waiting(b.FairLock("orders"), bg)
		next := w.waiting(c.FairLock("orders"), bg)
		b.dead.Store(true)
		_ = b.Close()
		start := time.Now()
		w.release(h)
		h = w.got(next)
		if took := time.Since(start); took < time.Second || took > 8500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		w.release(h)
		w.wantNothing()
	})
}

// Being given the lock and giving up cross each other: it must go on.
func TestAGivenLockThatNobodyWantsAnyMoreGoesToTheNext(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b, c := w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.client(redlatch.Config{})
		for range 50 {
			h := w.acquire(a.FairLock("orders"), bg)
			ctx, cancel := context.WithCancel(bg)
			unsure, last := w.waiting(b.FairLock("orders"), ctx), w.waiting(c.FairLock("orders"), bg)
			go cancel()
			w.release(h)
			if o := <-unsure; o.err == nil {
				w.release(o.hold)
			}
			start := time.Now()
			w.release(w.got(last))
			if took := time.Since(start); took > 0 {
				t.Fatalf("it took %v", took)
			}
		}
		w.wantNothing()
	})
}

func TestALockThatIsGivenToAClientThatClosesGoesToTheNext(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, c := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		for range 30 {
			b := w.client(redlatch.Config{})
			h := w.acquire(a.FairLock("orders"), bg)
			unsure, last := w.waiting(b.FairLock("orders"), bg), w.waiting(c.FairLock("orders"), bg)
			closed := later(b.Close)
			w.release(h)
			start := time.Now()
			o := <-unsure
			if err := <-closed; err != nil {
				t.Fatal(err)
			}
			if o.err == nil { // left to its TTL, as any
				w.wantErr(o.hold.Err(), redlatch.ErrClosed)
				time.Sleep(10 * time.Second)
			} else {
				w.wantErr(o.err, redlatch.ErrClosed)
			}
			h = w.got(last)
			if took := time.Since(start); o.err != nil && took > 0 {
				t.Fatalf("it took %v", took)
			}
			w.release(h)
		}
		w.wantNothing()
	})
}

func TestAGivenLockThatIsForcedIsLost(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(a.FairLock("orders"), bg)
		next := w.waiting(b.FairLock("orders"), bg)
		w.release(h)
		h = w.got(next)
		if ok, err := a.FairLock("orders").ForceRelease(bg); !ok || err != nil {
			t.Fatal(ok, err)
		}
		start := time.Now()
		<-h.Context().Done()
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("told after %v", took)
		}
		w.wantErr(h.Release(bg), redlatch.ErrLost)
		w.wantNothing()
	})
}

// The message that it has the lock comes after it has lost it again.
func TestAGivenLockThatIsForcedBeforeItsWaiterKnowsIsNotBelievedIn(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, c, b := w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.tapped(redlatch.Config{}, &tap{late: 500 * time.Millisecond})
		h := w.acquire(a.FairLock("orders"), bg)
		first, second := w.waiting(b.FairLock("orders"), bg), w.waiting(c.FairLock("orders"), bg)
		time.Sleep(100 * time.Millisecond) // b has subscribed, and has asked once more
		w.release(h)
		time.Sleep(100 * time.Millisecond)
		if ok, err := a.FairLock("orders").ForceRelease(bg); !ok || err != nil {
			t.Fatal(ok, err)
		}
		start := time.Now()
		h = w.got(second)
		if took := time.Since(start); took > 0 {
			t.Errorf("it took %v", took)
		}
		time.Sleep(10 * time.Second)
		if !none(first) {
			t.Error("two have the lock")
		}
		w.release(h)
		w.release(w.got(first)) // it has lined up again
		w.wantNothing()
	})
}

// It does not have the time that the watchdog has else to find out that there will
// be no answer.
func TestAGivenLockOutlivesRenewalsWithoutAnAnswer(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int32
		a, b := w.client(redlatch.Config{}), w.tapped(redlatch.Config{}, &tap{timeout: 5 * time.Second, hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" && n.Add(1) <= 2 {
				time.Sleep(5 * time.Second)
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}})
		h := w.acquire(a.FairLock("orders"), bg)
		next := w.waiting(b.FairLock("orders"), bg)
		w.release(h)
		h = w.got(next)
		time.Sleep(time.Minute)
		w.release(h)
		w.wantNothing()
	})
}

// What was re-entered for a shorter lease is confirmed again and again, but not
// for longer.
func TestBriefReentriesDoNotPutOffTheRenewalOfAGivenLock(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(a.FairLock("orders"), bg)
		next := w.waiting(b.FairLock("orders"), bg)
		w.release(h)
		h = w.got(next)
		for range 60 {
			time.Sleep(time.Second)
			if err := h.Err(); err != nil {
				t.Fatal(err)
			}
			w.release(w.acquire(b.FairLock("orders"), h.Context(), redlatch.Lease(500*time.Millisecond)))
		}
		w.release(h)
		w.wantNothing()
	})
}
