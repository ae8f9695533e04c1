package redlatch_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// Redisson sets the lease of all members at the end without looking whose they
// are.
func TestTheLeaseOfAMultiLockIsNotGivenToSomebodyElsesHold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		// Fenced, so that they are taken one by one.
		m := redlatch.MultiLock(c.FencedLock("a"), c.FencedLock("b"))
		busy := w.acquire(other.Lock("b"), bg)
		time.AfterFunc(400*time.Millisecond, func() { w.release(busy) })
		got := later(func() *redlatch.MultiHold { return w.acquireMulti(m, bg, redlatch.Lease(time.Second)) })
		time.Sleep(300 * time.Millisecond)
		if !w.server.Exists("a") {
			t.Fatal("a is not held")
		}
		w.server.Del("a")
		thief := w.acquire(other.Lock("a"), bg, redlatch.Lease(300*time.Millisecond))
		time.Sleep(150 * time.Millisecond) // b is there, and the lease of a would be raised
		if ttl := w.server.TTL("a"); w.count(thief) != "1" || ttl > 150*time.Millisecond {
			t.Errorf("somebody else's hold lasts for %v now", ttl)
		}
		w.release(thief)
		h := <-got // it began again
		for _, h := range h.Holds() {
			if w.count(h) != "1" {
				t.Errorf("%s is not held", h.Name())
			}
		}
		w.releaseMulti(h)
		time.Sleep(time.Minute)
		w.wantLocksGone()
	})
}

// Redisson sets it on a fenced lock's counter too, which then begins anew, and on
// a fair lock's queue, but not on what keeps a reader alive; and in its
// lockInterruptibly the lease grows with each try.
func TestTheLeaseOfAMultiLockIsThatOfItsMembersAndNothingElse(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		const lease = 3 * time.Second
		m := redlatch.MultiLock(c.FencedLock("a"), c.FairLock("b"), c.ReadWriteLock("c").Read(), c.Lock("d"))
		busy := w.acquire(other.Lock("d"), bg)
		got := later(func() *redlatch.MultiHold { return w.acquireMulti(m, bg, redlatch.Lease(lease)) })
		time.Sleep(20 * time.Second)
		w.release(busy)
		h := <-got
		next := w.waiting(other.FairLock("b"), bg)
		queue, timeouts, _ := fairKeys("b")
		for _, key := range []string{"redisson_lock_token:{a}", queue, timeouts} {
			if ttl := w.server.TTL(key); !w.server.Exists(key) || ttl != 0 {
				t.Errorf("%s has a TTL: %v", key, ttl)
			}
		}
		held := h.Holds()
		reader := "{c}:" + held[slices.IndexFunc(held, func(h *redlatch.Hold) bool { return h.Name() == "c" })].Owner() + ":rwlock_timeout:1"
		for _, key := range []string{"a", "b", "c", reader, "d"} {
			if ttl := w.server.TTL(key); ttl <= 0 || ttl > lease || time.Now().Add(ttl).Before(h.Expires()) {
				t.Errorf("%s lasts for %v, and is trusted for %v", key, ttl, time.Until(h.Expires()))
			}
		}
		w.releaseMulti(h)
		w.release(w.got(next))
	})
}

// redsync #186: a majority that was slow to answer is trusted from when it was
// asked, not from when it answered.
func TestTheValidityOfARedLockCountsFromTheFirstSend(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		slow := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			defer time.Sleep(time.Second)
			return next()
		}
		m := p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){0: slow, 1: slow, 2: slow})
		start := time.Now()
		h := p.acquireMulti(m, bg, redlatch.Lease(30*time.Second))
		if d := time.Since(start); d != time.Second {
			t.Fatalf("acquired after %v", d)
		}
		const margin = 10*time.Millisecond + 30*time.Second/50
		if end := h.Expires(); end.After(start.Add(30*time.Second - margin)) {
			t.Errorf("trusted until %v after the first request", end.Sub(start))
		}
		<-h.Context().Done()
		if d := time.Since(start); d > 30*time.Second-margin {
			t.Errorf("ended %v after the first request", d)
		}
		synctest.Wait()
		p.wantErr(h.Release(bg), redlatch.ErrLost)
		p.wantNothing()
	})
}

// The members of a process that dies lie on two servers and are of all kinds. It
// dies with all of them, or with some, while it takes them.
func TestAMultiLockOfADeadProcessBlocksNobodyForLongerThanItsLease(t *testing.T) {
	const skew, poll = time.Second, 2400 * time.Millisecond // of groups, and of who waits
	for name, x := range map[string]struct {
		takes int64 // dies after so many, 0: when it has all
		lease time.Duration
		opts  []redlatch.Option
	}{
		"holding":            {lease: 30 * time.Second},
		"holding for a time": {lease: 5 * time.Second, opts: []redlatch.Option{redlatch.Lease(5 * time.Second)}},
		"taking":             {takes: 6, lease: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				worlds := []*world{w, w.another()}
				var taken atomic.Int64
				var dead atomic.Bool
				dying := func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if dead.Load() || x.takes > 0 && taken.Load() == x.takes {
						return driver.Reply{}, errTapUnknown
					}
					if strings.HasSuffix(s, ".take") {
						defer taken.Add(1)
					}
					return next()
				}
				// members returns those that begin with the same clients, the other
				// process's as they exclude them.
				members := func(clients []*redlatch.Client, rival bool) (all []*redlatch.Lock) {
					for kind, member := range memberKinds {
						if rival && kind == "read" {
							member = memberKinds["write"]
						}
						for i, c := range clients {
							all = append(all, member(c, kind+strconv.Itoa(i)))
						}
					}
					return all
				}
				var mortals, others []*redlatch.Client
				for i, w := range worlds {
					cfg := redlatch.Config{Name: strconv.Itoa(i)}
					others = append(others, w.client(cfg))
					mortals = append(mortals, w.tapped(cfg, &tap{hook: dying}))
				}
				start := time.Now()
				m := redlatch.MultiLock(members(mortals, false)...)
				if x.takes == 0 {
					w.acquireMulti(m, bg, x.opts...)
				} else if _, err := m.Acquire(bg, x.opts...); err == nil || taken.Load() != x.takes {
					t.Fatalf("%v after %d requests", err, taken.Load())
				}
				dead.Store(true)
				held := 0
				for _, w := range worlds {
					held += len(w.server.Keys())
				}
				if held < 5 {
					t.Fatalf("%d keys: nothing is tested", held)
				}
				var wg sync.WaitGroup
				for _, l := range members(others, true) {
					wg.Go(func() {
						h := w.acquire(l, bg)
						if took := time.Since(start); took > x.lease+skew+poll {
							t.Errorf("%s was blocked for %v", l.Name(), took)
						}
						time.Sleep(time.Millisecond)
						w.release(h)
					})
				}
				wg.Go(func() {
					w.releaseMulti(w.acquireMulti(redlatch.MultiLock(members(others, true)...), bg))
					if took := time.Since(start); took > x.lease+skew+3*poll {
						t.Errorf("all together were blocked for %v", took)
					}
				})
				wg.Wait()
				time.Sleep(time.Minute)
				for _, w := range worlds {
					w.wantLocksGone()
				}
			})
		})
	}
}
