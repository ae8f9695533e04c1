package locks

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A MultiLock has members of any kind, between others that it has: it waits for a
// busy one with nothing in hand, gets it when that is free, keeps it, and loses
// all with it.
func TestMembersOfEveryKind(t *testing.T) {
	for kind, member := range locktest.MemberKinds {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				m := redlatch.MultiLock(c.Lock("a"), member(c, "b"), c.Lock("c"))
				rival := member(other, "b")
				if kind == "read" {
					rival = other.ReadWriteLock("b").Write()
				}
				busy := w.Acquire(bg, rival)
				if _, err := m.TryAcquire(bg, 0); err == nil {
					t.Fatal("acquired what another has")
				} else {
					w.WantErr(err, redlatch.ErrBusy)
				}
				_, err := m.TryAcquire(bg, 2*time.Second)
				w.WantErr(err, redlatch.ErrBusy)
				next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, m) })
				time.Sleep(3 * time.Second)
				if w.Server.Exists("a") || w.Server.Exists("c") {
					t.Error("others are held while that one is waited for")
				}
				w.Release(busy)
				h := <-next
				time.Sleep(5 * time.Minute)
				if h.Err() != nil {
					t.Fatal(h.Err())
				}
				_, err = rival.TryAcquire(bg, 0)
				w.WantErr(err, redlatch.ErrBusy)
				if kind != "non-re-entry" {
					w.Release(w.Acquire(h.Context(), m))
				}
				w.Release(h)
				w.Release(w.AcquireWithin(bg, rival, time.Second))

				h = w.Acquire(bg, locktest.With(m, redlatch.Lease(10*time.Second)))
				w.Server.Del("b")
				if err := h.Extend(bg, time.Minute); err == nil {
					t.Error("extended without one")
				}
				w.WantErr(h.Err(), redlatch.ErrLost)
				w.WantErr(h.Release(bg), redlatch.ErrLost)
				time.Sleep(time.Minute)
				w.WantLocksGone()
			})
		})
	}
}

// Processes whose MultiLocks have fair, group and write locks in common exclude
// each other and all come to their turn; so do goroutines of one of them.
func TestMembersOfMixedKindsExcludeAndDoNotStarve(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var inside atomic.Int64
		var wg sync.WaitGroup
		start := time.Now()
		for range 3 {
			c := w.Client(redlatch.Config{})
			m := redlatch.MultiLock(redisson.GroupLock(c, "g", []string{"x"}), c.FairLock("f"), c.ReadWriteLock("rw").Write(), c.Lock("l"))
			for range 2 {
				wg.Go(func() {
					for range 5 {
						if err := m.Do(bg, func(ctx context.Context) error {
							if inside.Add(1) != 1 {
								t.Error("two holders")
							}
							time.Sleep(20 * time.Millisecond)
							inside.Add(-1)
							return ctx.Err()
						}); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if d := time.Since(start); d > 30*time.Second {
			t.Errorf("30 sections of 20 ms took %v", d)
		}
		time.Sleep(time.Minute)
		w.WantLocksGone()
	})
}

// Readers of a common lock hold their MultiLocks at the same time.
func TestMembersThatReadAreShared(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		with := func(c *redlatch.Client, name string) *redlatch.Lock {
			return redlatch.MultiLock(c.ReadWriteLock("rw").Read(), c.Lock(name))
		}
		var holds []*redlatch.Hold
		for i, m := range []*redlatch.Lock{with(c, "a"), with(c, "b"), with(other, "c")} {
			h, err := m.TryAcquire(bg, 0)
			if err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			holds = append(holds, h)
		}
		// To write what one reads oneself is refused, whoever asks for it.
		_, err := redlatch.MultiLock(c.Lock("z"), c.ReadWriteLock("rw").Write()).Acquire(holds[0].Context())
		w.WantErr(err, redlatch.ErrReentry)
		for _, h := range holds {
			w.Release(h)
		}
		synctest.Wait()
		w.WantLocksGone()
	})
}

// Both sides of one read-write lock, in either order, would wait for themselves.
func TestBothSidesOfAReadWriteLockAsMembersAreRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		rw := c.ReadWriteLock("rw")
		for _, m := range []*redlatch.Lock{redlatch.MultiLock(rw.Read(), rw.Write()), redlatch.MultiLock(rw.Write(), rw.Read())} {
			if _, err := m.TryAcquire(bg, time.Second); err == nil || redlatch.IsRetryable(err) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// Values of one group in two members are the same lock if they overlap, and are
// refused; else they are as any other two.
func TestMembersOfOneGroup(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		w.Release(w.AcquireWithin(bg, redlatch.MultiLock(redisson.GroupLock(c, "g", []string{"x"}), redisson.GroupLock(c, "g", []string{"y"})), time.Second))
		_, err := redlatch.MultiLock(redisson.GroupLock(c, "g", []string{"x"}), redisson.GroupLock(c, "g", []string{"x", "y"})).TryAcquire(bg, 5*time.Second)
		if err == nil || redlatch.IsRetryable(err) {
			t.Errorf("values in common: %v", err)
		}
		time.Sleep(time.Minute)
		w.WantLocksGone()
	})
}
