package clients

import (
	"cmp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A tour is what two processes do with locks and synchronizers of all types, the
// one after the other: acquire, wait, re-enter, renew, extend, pass on, release,
// also by force.
type tour struct {
	*locktest.World
	a, b   *redlatch.Client
	script func(name string, keys, args []string) // called after each
	skew   time.Duration                          // by which the server's clock is ahead
	prefix string                                 // of all names
	cfg    redlatch.Config                        // of both
	mu     sync.Mutex                             // held while script is called
}

// serverTime is the time at the server.
func (x *tour) serverTime() time.Time { return time.Now().Add(x.skew) }

func runTour(w *locktest.World, x *tour) {
	x.World = w
	x.Server.SetTime(x.serverTime())
	tap := func() *locktest.Tap {
		return &locktest.Tap{Keyed: func(s string, keys, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			x.Server.SetTime(x.serverTime())
			r, err := next()
			if x.script != nil {
				x.mu.Lock()
				defer x.mu.Unlock()
				x.script(s, keys, args)
			}
			return r, err
		}}
	}
	x.a, x.b = w.Tapped(x.cfg, tap()), w.Tapped(x.cfg, tap())
	for kind, of := range locktest.MemberKinds {
		x.lock(of, x.prefix+"lock-"+kind)
	}
	x.readWrite()
	m := redlatch.MultiLock(x.a.Lock(x.prefix+"lock-1", redlatch.Lease(time.Minute)), x.a.Lock(x.prefix+"lock-2", redlatch.Lease(time.Minute)), x.a.FairLock(x.prefix+"lock-3", redlatch.Lease(time.Minute)))
	x.Release(x.Acquire(bg, m))
	x.counts()
}

func (x *tour) lock(of func(*redlatch.Client, string) *redlatch.Lock, name string) {
	la, lb := of(x.a, name), of(x.b, name)
	h := x.Acquire(bg, la)
	next := locktest.Later(func() *redlatch.Hold { return x.Acquire(bg, lb) })
	local := locktest.Later(func() *redlatch.Hold {
		return x.Acquire(bg, locktest.With(la, redlatch.Lease(time.Hour+1500*time.Nanosecond)))
	})
	time.Sleep(11 * time.Second) // a renewal
	if h.Err() != nil {
		x.Errorf("%s: %v", name, h.Err())
	}
	if inner, err := la.TryAcquire(h.Context(), 0); err == nil {
		x.Release(inner)
	}
	x.Release(h)
	for range 2 {
		select {
		case h = <-next:
		case h = <-local:
			if err := h.Extend(bg, 2*time.Hour); err != nil {
				x.Errorf("%s: %v", name, err)
			}
		}
		x.Release(h)
	}
	h = x.Acquire(bg, la)
	next = locktest.Later(func() *redlatch.Hold { return x.Acquire(bg, lb) })
	time.Sleep(3 * time.Second)
	if _, err := admin.ForceRelease(bg, lb); err != nil {
		x.Errorf("%s: %v", name, err)
	}
	_ = h.Release(bg)
	_ = (<-next).Release(bg) // who reads has lost it with the first
}

func (x *tour) readWrite() {
	a, b := x.a.ReadWriteLock(x.prefix+"lock-rw"), x.b.ReadWriteLock(x.prefix+"lock-rw").PreferWriters()
	w := x.Acquire(bg, a.Write())
	r := x.Acquire(w.Context(), a.Read())
	waiting := locktest.Later(func() *redlatch.Hold { return x.Acquire(bg, b.Read()) })
	time.Sleep(3 * time.Second)
	x.Release(w)
	writer := locktest.Later(func() *redlatch.Hold { return x.Acquire(bg, b.Write()) })
	x.Release(<-waiting)
	x.Release(r)
	x.Release(<-writer)
}

func (x *tour) counts() {
	s := semaphore.New(x.a, x.prefix+"semaphore", 0)
	_, err := s.TrySetPermits(bg, 1<<31-1)
	x.OK(err)
	_, err = s.Drain(bg)
	x.OK(err)
	got := locktest.AcquiringPermits(bg, semaphore.New(x.b, x.prefix+"semaphore", 0), 2)
	time.Sleep(3 * time.Second)
	x.OK(s.AddPermits(bg, -1))
	x.OK(s.Release(bg, 1<<30))
	x.OK(<-got)

	e := semaphore.NewExpirable(x.a, x.prefix+"permits", 0, redlatch.Lease(4*time.Second))
	_, err = e.TrySetPermits(bg, 2)
	x.OK(err)
	_, err = locktest.Each(e.Acquire(bg, 2))
	x.OK(err)
	p, err := semaphore.NewExpirable(x.b, x.prefix+"permits", 0).Acquire(bg, 1)
	x.OK(err)
	x.OK(e.SetPermits(bg, 1<<30))
	time.Sleep(11 * time.Second)
	x.OK(p.Release(bg))

	l := latch.New(x.a, x.prefix+"latch")
	for range 2 {
		_, err = l.TrySetCount(bg, 1)
		x.OK(err)
		wait := locktest.WaitFor(bg, latch.New(x.b, x.prefix+"latch"))
		time.Sleep(time.Second)
		x.OK(l.CountDown(bg))
		x.OK(<-wait)
	}
	_, err = l.TrySetCount(bg, 1<<31-1)
	x.OK(err)
	_, err = l.Delete(bg)
	x.OK(err)

	r := ratelimit.New(x.a, x.prefix+"limiter", ratelimit.Rate{})
	_, err = r.TrySetRate(bg, ratelimit.Rate{Permits: 2, Interval: time.Second})
	x.OK(err)
	start := time.Now()
	for range 5 {
		x.OK(r.Acquire(bg, 1))
	}
	if took := time.Since(start); took < 2*time.Second || took > 2100*time.Millisecond {
		x.Errorf("5 permits of 2 a second took %v", took)
	}

	together := locktest.Later(func() error { _, err := barrier.New(x.b, x.prefix+"barrier", 2).Await(bg); return err })
	_, err = barrier.New(x.a, x.prefix+"barrier", 2).Await(bg)
	x.OK(cmp.Or(err, <-together))
}

// A message that is no integer throws an exception in Redisson's decoder, and one
// that is sent by itself can be lost when what it tells is done.
func TestEveryMessageIsANumberThatAScriptPublishes(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		published := w.Eavesdrop()
		runTour(w, &tour{script: func(name string, _, args []string) {
			if strings.HasPrefix(name, "control.") && name != "control.asked" && !strings.HasPrefix(args[0], "redlatch_control:") {
				t.Errorf("published to %s", args[0])
			}
		}})
		channels := map[string]int{}
		for _, m := range published() {
			channel, text, _ := strings.Cut(m, " ")
			prefix, _, _ := strings.Cut(channel, ":")
			prefix, _, _ = strings.Cut(prefix, "{")
			channels[prefix]++
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Errorf("published %q on %s", text, channel)
			}
			if n > 1 && strings.HasPrefix(channel, "redisson_lock__channel:") && strings.Contains(channel, "}:") {
				continue // to a waiter of redlatch, which is given the lock
			}
			if isCount := prefix == "redisson_sc"; !isCount && n != 0 && n != 1 {
				t.Errorf("published %d on %s", n, channel)
			}
		}
		for _, prefix := range []string{"redisson_lock__channel", "redisson_rwlock", "redisson_sc", "redisson_countdownlatch__channel__"} {
			if channels[prefix] < 3 {
				t.Errorf("%d messages on %s", channels[prefix], prefix)
			}
		}
		if len(channels) != 4 {
			t.Errorf("channels %v", channels)
		}
	})
}

// Redisson's callers wait without limit for a lock without a TTL, and its fenced
// lock takes it for its own.
func TestNoLockIsEverWithoutATTL(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		seen := 0
		runTour(w, &tour{script: func(name string, _, _ []string) {
			for _, key := range w.Keys() {
				if strings.HasPrefix(key, "redisson_unlock_latch") {
					t.Errorf("after %s there is %s", name, key)
				}
				if strings.HasPrefix(key, "lock-") || strings.Contains(key, "rwlock_timeout") || strings.HasPrefix(key, "redlatch_") {
					seen++
					// A key that another script deletes in between has none either.
					if w.Server.TTL(key) <= 0 && w.Server.Exists(key) && w.Server.TTL(key) <= 0 {
						t.Errorf("after %s %s has no TTL", name, key)
					}
				}
			}
		}})
		if seen < 200 {
			t.Errorf("looked at %d keys only", seen)
		}
	})
}

// Redisson derives some keys from a name before it is mapped, or with braces of
// their own, which in a cluster lie elsewhere.
func TestTheKeysOfARequestShareASlotWhateverTheName(t *testing.T) {
	for _, prefix := range []string{"", "a{b}c"} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			asked := map[string]bool{}
			runTour(w, &tour{prefix: prefix, script: func(name string, keys, _ []string) {
				if strings.HasSuffix(name, ".renew") || name == "multilock.take" {
					return // of several locks, with a key of each
				}
				for _, key := range keys {
					asked[key] = true
					if wire.Slot(key) != wire.Slot(keys[0]) {
						t.Errorf("%s of %q", name, keys)
					}
				}
			}})
			if len(asked) < 30 {
				t.Errorf("%d keys only", len(asked))
			}
		})
	}
}

// Redisson writes the time of its process where others compare it with theirs.
// Nor is there a number with a fraction, which Redis would refuse.
func TestAProcessWhoseClockIsWrongIsLikeAnyOther(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		runTour(w, &tour{skew: -time.Hour, script: func(name string, _, args []string) {
			for _, arg := range args {
				n, err := strconv.ParseFloat(arg, 64)
				if err != nil {
					continue
				}
				if strings.Contains(arg, ".") {
					t.Errorf("%s is sent %s", name, arg)
				}
				for _, unit := range []float64{1e-9, 1e-6, 1e-3, 1} { // of n, in seconds
					if d := n*unit - float64(time.Now().Unix()); d > -2e6 && d < 2e6 {
						t.Errorf("%s is sent the time: %s", name, arg)
					}
				}
			}
		}})
	})
}
