package locks

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Redisson sets the lease of all members at the end without looking whose they
// are.
func TestTheLeaseOfAMultiLockIsNotGivenToSomebodyElsesHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		// Fenced, so that they are taken one by one.
		m := redlatch.MultiLock(c.Lock("a", redlatch.Fenced(), redlatch.Lease(time.Second)), c.Lock("b", redlatch.Fenced(), redlatch.Lease(time.Second)))
		busy := w.Acquire(bg, other.Lock("b"))
		time.AfterFunc(400*time.Millisecond, func() { w.Release(busy) })
		got := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, m) })
		time.Sleep(300 * time.Millisecond)
		if !w.Server.Exists("a") {
			t.Fatal("a is not held")
		}
		w.Server.Del("a")
		thief := w.Acquire(bg, other.Lock("a", redlatch.Lease(300*time.Millisecond)))
		time.Sleep(150 * time.Millisecond) // b is there, and the lease of a would be raised
		if ttl := w.Server.TTL("a"); w.Count(thief) != "1" || ttl > 150*time.Millisecond {
			t.Errorf("somebody else's hold lasts for %v now", ttl)
		}
		w.Release(thief)
		h := <-got // it began again
		for _, h := range h.Members() {
			if w.Count(h) != "1" {
				t.Errorf("%s is not held", h.Name())
			}
		}
		w.Release(h)
		time.Sleep(time.Minute)
		w.WantLocksGone()
	})
}

// Redisson sets it on a fenced lock's counter too, which then begins anew, and on
// a fair lock's queue, but not on what keeps a reader alive; and in its
// lockInterruptibly the lease grows with each try.
func TestTheLeaseOfAMultiLockIsThatOfItsMembersAndNothingElse(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		const lease = 3 * time.Second
		stays := redlatch.Lease(lease)
		m := redlatch.MultiLock(c.Lock("a", redlatch.Fenced(), stays), c.FairLock("b", stays), c.ReadWriteLock("c", stays).Read(), c.Lock("d", stays))
		busy := w.Acquire(bg, other.Lock("d"))
		got := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, m) })
		time.Sleep(20 * time.Second)
		w.Release(busy)
		h := <-got
		next := w.Waiting(bg, other.FairLock("b"))
		queue, timeouts, _ := locktest.FairKeys("b")
		for _, key := range []string{"redisson_lock_token:{a}", queue, timeouts} {
			if ttl := w.Server.TTL(key); !w.Server.Exists(key) || ttl != 0 {
				t.Errorf("%s has a TTL: %v", key, ttl)
			}
		}
		held := h.Members()
		reader := "{c}:" + held[slices.IndexFunc(held, func(h *redlatch.Hold) bool { return h.Name() == "c" })].ID() + ":rwlock_timeout:1"
		for _, key := range []string{"a", "b", "c", reader, "d"} {
			if ttl := w.Server.TTL(key); ttl <= 0 || ttl > lease || time.Now().Add(ttl).Before(h.Expires()) {
				t.Errorf("%s lasts for %v, and is trusted for %v", key, ttl, time.Until(h.Expires()))
			}
		}
		w.Release(h)
		w.Release(w.Got(next))
	})
}

// The members of a process that dies lie on two servers and are of all kinds. It
// dies with all of them, or with some, while it takes them.
func TestAMultiLockOfADeadProcessBlocksNobodyForLongerThanItsLease(t *testing.T) {
	const skew, poll = time.Second, 2400 * time.Millisecond // of groups, and of who waits
	for name, x := range map[string]struct {
		takes int64 // dies after so many, 0: when it has all
		lease time.Duration
		opts  []redlatch.PlainOption
	}{
		"holding":            {lease: 30 * time.Second},
		"holding for a time": {lease: 5 * time.Second, opts: []redlatch.PlainOption{redlatch.Lease(5 * time.Second)}},
		"taking":             {takes: 6, lease: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				worlds := []*locktest.World{w, another(w)}
				var taken atomic.Int64
				var dead atomic.Bool
				dying := func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if dead.Load() || x.takes > 0 && taken.Load() == x.takes {
						return driver.Reply{}, locktest.ErrReplyLost
					}
					if strings.HasSuffix(s, ".take") {
						defer taken.Add(1)
					}
					return next()
				}
				// members returns those that begin with the same clients, the other
				// process's as they exclude them.
				members := func(clients []*redlatch.Client, rival bool) (all []*redlatch.Lock) {
					for kind, member := range locktest.MemberKinds {
						if rival && kind == "read" {
							member = locktest.MemberKinds["write"]
						}
						for i, c := range clients {
							all = append(all, member(c, kind+strconv.Itoa(i)))
						}
					}
					return all
				}
				var mortals, others []*redlatch.Client
				for i, w := range worlds {
					cfg := redlatch.Config{ServerName: strconv.Itoa(i)}
					others = append(others, w.Client(cfg))
					mortals = append(mortals, w.Tapped(cfg, &locktest.Tap{Hook: dying}))
				}
				start := time.Now()
				m := locktest.With(redlatch.MultiLock(members(mortals, false)...), x.opts...)
				if x.takes == 0 {
					w.Acquire(bg, m)
				} else if _, err := m.Acquire(bg); err == nil || taken.Load() != x.takes {
					t.Fatalf("%v after %d requests", err, taken.Load())
				}
				dead.Store(true)
				held := 0
				for _, w := range worlds {
					held += len(w.Keys())
				}
				if held < 5 {
					t.Fatalf("%d keys: nothing is tested", held)
				}
				var wg sync.WaitGroup
				for _, l := range members(others, true) {
					wg.Go(func() {
						h := w.Acquire(bg, l)
						if took := time.Since(start); took > x.lease+skew+poll {
							t.Errorf("%s was blocked for %v", l.Name(), took)
						}
						time.Sleep(time.Millisecond)
						w.Release(h)
					})
				}
				wg.Go(func() {
					w.Release(w.Acquire(bg, redlatch.MultiLock(members(others, true)...)))
					if took := time.Since(start); took > x.lease+skew+3*poll {
						t.Errorf("all together were blocked for %v", took)
					}
				})
				wg.Wait()
				time.Sleep(time.Minute)
				for _, w := range worlds {
					w.WantLocksGone()
				}
			})
		})
	}
}

// A reader that shares its lock with another of its process has an end of its own,
// which the other's lease hides.
func TestASharedReadHoldDoesNotEndBeforeTheOtherMembers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		read := c.ReadWriteLock("a").Read()
		reader := w.Acquire(bg, read)
		busy := w.Acquire(bg, other.Lock("b"))
		time.AfterFunc(400*time.Millisecond, func() { w.Release(busy) })
		h := w.Acquire(bg, locktest.With(redlatch.MultiLock(read, c.Lock("b")), redlatch.Lease(time.Second)))
		if left := time.Until(h.Expires()); left < 900*time.Millisecond {
			t.Errorf("held for %v", left)
		}
		w.Release(h)
		w.Release(reader)
		w.WantNothing()
	})
}

// A server that falls silent while the leases of the first members are raised kept
// a caller for Config.OutageTimeout, whatever its Wait was, and told one that left
// nothing of the lock.
func TestALeaseThatIsRaisedKeepsNobodyForLongerThanHeWaits(t *testing.T) {
	for name, x := range map[string]struct {
		leaves time.Duration // the caller, 0: it does not
		took   time.Duration
		want   []error
	}{
		"Wait":    {took: 2 * time.Second, want: []error{redlatch.ErrUnavailable}},
		"context": {leaves: 450 * time.Millisecond, took: 450 * time.Millisecond, want: []error{redlatch.ErrBusy, context.Canceled}},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				w2 := another(w)
				var silent atomic.Bool
				a := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if silent.Load() {
						time.Sleep(100 * time.Millisecond)
						return driver.Reply{}, locktest.ErrReplyLost
					}
					return next()
				}})
				busy := w.Acquire(bg, w2.Client(redlatch.Config{}).Lock("b"))
				time.AfterFunc(200*time.Millisecond, func() { silent.Store(true) })
				time.AfterFunc(400*time.Millisecond, func() { w.Release(busy) })
				ctx, leave := context.WithCancel(bg)
				defer leave()
				if x.leaves > 0 {
					time.AfterFunc(x.leaves, leave)
				}
				start := time.Now()
				m := redlatch.MultiLock(a.Lock("a", redlatch.Lease(time.Second)), w2.Client(redlatch.Config{}).Lock("b", redlatch.Lease(time.Second)))
				_, err := m.TryAcquire(ctx, 2*time.Second)
				w.WantErr(err, x.want...)
				if took := time.Since(start); took < x.took || took > x.took+600*time.Millisecond { // to release what it has
					t.Errorf("it took %v", took)
				}
				silent.Store(false)
				time.Sleep(5 * time.Minute)
				w.WantLocksGone()
				w2.WantLocksGone()
			})
		})
	}
}
