package locks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// detachable are the locks that have an id to hand over.
var detachable = map[string]func(c *redlatch.Client) *redlatch.Lock{
	"plain":  func(c *redlatch.Client) *redlatch.Lock { return c.Lock("deploy") },
	"fenced": func(c *redlatch.Client) *redlatch.Lock { return c.Lock("deploy", redlatch.Fenced()) },
	"fair":   func(c *redlatch.Client) *redlatch.Lock { return c.FairLock("deploy") },
	"spin": func(c *redlatch.Client) *redlatch.Lock {
		return redisson.SpinLock(c, "deploy", redisson.Constant(time.Second))
	},
}

// detached returns a hold with that lease, which has been detached.
func detached(w *locktest.World, l *redlatch.Lock, lease time.Duration) *redlatch.Hold {
	w.Helper()
	h := w.Acquire(bg, locktest.With(l, redlatch.Lease(lease)))
	w.Detach(h)
	return h
}

// acquiring waits for the lock on a goroutine, for as long as it takes.
func acquiring(l *redlatch.Lock) <-chan locktest.Outcome {
	return locktest.Later(func() locktest.Outcome {
		h, err := l.Acquire(bg)
		return locktest.Outcome{Hold: h, Err: err}
	})
}

// Nobody had a hold to end, and so the client said nothing: whoever took the lock
// away waited for it in vain.
func TestADetachedLockIsTakenAwayWithoutAWait(t *testing.T) {
	for name, lock := range detachable {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				h := detached(w, lock(a), time.Minute)
				for _, forced := range []bool{true, false} {
					start := time.Now()
					was, err := admin.ForceRelease(bg, lock(b))
					if d := time.Since(start); was != forced || err != nil || d > 100*time.Millisecond { // a silent client costs a second
						t.Errorf("%v, %v after %v; want %v at once", was, err, d, forced)
					}
				}
				w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
			})
		})
	}
}

// Whoever waits beside the one that has handed the lock over meets an id of its
// own client that no goroutine has. It is not to be taken for one that a late
// request has left, also when others have extended it for longer than its client
// knows.
func TestADetachedLockIsSomebodyElsesForItsOwnProcess(t *testing.T) {
	for name, lock := range detachable {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				h := w.Acquire(bg, locktest.With(lock(c), redlatch.Lease(time.Minute)))
				queued := acquiring(lock(c)) // which stands at the gate of h
				synctest.Wait()
				id, token := w.Detach(h), h.Token()
				var busy *redlatch.BusyError
				time.Sleep(10 * time.Second)
				if _, err := lock(c).TryAcquire(bg, 0); !errors.As(err, &busy) || busy.Owner != id {
					t.Errorf("beside it: %v", err)
				}
				if s := c.Stats(); s.Holds != 0 || s.Waiters != 1 {
					t.Errorf("%+v", s)
				}
				i, err := admin.LockInfo(bg, lock(other))
				w.OK(err)
				if len(i.Holders) != 1 || i.Holders[0].Owner != id || i.Holders[0].Client != c.ID() {
					t.Errorf("shown as %+v", i.Holders)
				}
				w.OK(lock(other).ExtendID(bg, id, time.Hour))
				w.OK(lock(c).ExtendID(bg, id, time.Hour))
				time.Sleep(30 * time.Minute)
				if !locktest.NoneYet(queued) || w.Fields("deploy")[id] == "" {
					t.Fatalf("somebody has it after %v: %v", 30*time.Minute, w.Fields("deploy"))
				}
				start := time.Now()
				w.OK(lock(other).ReleaseID(bg, id))
				got := <-queued
				w.OK(got.Err)
				if d := time.Since(start); d > 10*time.Millisecond && name != "spin" {
					t.Errorf("the next one got it after %v", d)
				}
				if token != 0 && got.Hold.Token() <= token {
					t.Errorf("token %d after %d", got.Hold.Token(), token)
				}
				for _, l := range []*redlatch.Lock{lock(c), lock(other)} { // late
					w.WantErr(l.ReleaseID(bg, id), redlatch.ErrNotHeld)
					w.WantErr(l.ExtendID(bg, id, time.Hour), redlatch.ErrNotHeld)
				}
				w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
				w.OK(got.Hold.Err())
				w.Release(got.Hold)
				w.WantLocksGone()
			})
		})
	}
}

// Nobody may release it, and then its lease is what frees it.
func TestADetachedLockThatNobodyReleasesEndsWithItsLease(t *testing.T) {
	for name, lock := range detachable {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				start := time.Now()
				_ = detached(w, lock(c), time.Minute)
				next := w.Acquire(bg, lock(c))
				if d := time.Since(start); d < time.Minute || d > time.Minute+3*time.Second {
					t.Errorf("the next one got it after %v", d)
				}
				w.Release(next)
				w.WantLocksGone()
			})
		})
	}
}

// It may be released and extended anywhere: by its Hold, by its id beside it, and
// when its client is closed.
func TestADetachedLockIsReleasedAndExtendedByWhoeverHasItsID(t *testing.T) {
	for name, lock := range detachable {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				ttl := func(want time.Duration) {
					t.Helper()
					if ttl := w.Server.TTL("deploy"); ttl != want {
						t.Errorf("it ends in %v, want %v", ttl, want)
					}
				}
				h := detached(w, lock(c), time.Minute)
				w.OK(h.Extend(bg, time.Hour))
				ttl(time.Hour)
				w.OK(h.Extend(bg, time.Minute)) // which cuts nothing short
				ttl(time.Hour)
				w.OK(h.Release(bg))
				w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
				w.WantErr(h.Extend(bg, time.Hour), redlatch.ErrNotHeld)

				h = detached(w, lock(c), time.Minute)
				w.OK(lock(c).ExtendID(bg, h.ID(), time.Hour))
				ttl(time.Hour)
				w.OK(lock(c).ReleaseID(bg, h.ID()))
				w.WantErr(h.Extend(bg, time.Hour), redlatch.ErrNotHeld)
				w.WantErr(h.Release(bg), redlatch.ErrNotHeld)

				h = detached(w, lock(c), time.Minute)
				ended, cancel := context.WithCancel(bg)
				cancel()
				if err := h.Release(ended); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				time.Sleep(2 * time.Second)
				w.WantLocksGone()

				h = detached(w, lock(c), time.Minute)
				down := locktest.Later(func() error { return c.Shutdown(bg) })
				w.OK(<-down) // it waits for nobody
				w.OK(c.Close())
				w.OK(h.Err())
				w.WantErr(h.Extend(bg, time.Hour), redlatch.ErrClosed)
				w.OK(lock(other).ExtendID(bg, h.ID(), time.Hour))
				ttl(time.Hour)
				time.Sleep(30 * time.Minute)
				w.OK(lock(other).ReleaseID(bg, h.ID()))
				w.WantErr(h.Release(bg), redlatch.ErrClosed)
				w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
				w.WantLocksGone()
			})
		})
	}
}

// Who has handed a lock over does not know how it goes on, and is told nothing.
func TestADetachedLockEndsForNobodyButWhoReleasesIt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lost atomic.Int32
		var ends []observe.EndReason
		c := w.Client(redlatch.Config{}, observe.Hooks{
			Lost:    func(observe.LostEvent) { lost.Add(1) },
			HoldEnd: func(_ context.Context, e observe.HoldEndEvent) { ends = append(ends, e.Reason) },
		})
		other := w.Client(redlatch.Config{})
		live := func(h *redlatch.Hold) {
			t.Helper()
			if err := h.Err(); err != nil || h.Context().Err() != nil {
				t.Errorf("%v, %v", err, h.Context().Err())
			}
		}
		over, elsewhere, closed := detached(w, c.Lock("a"), time.Second), detached(w, c.Lock("b", redlatch.Fenced()), time.Minute), detached(w, c.FairLock("c"), time.Minute)
		for _, h := range []*redlatch.Hold{over, elsewhere, closed} {
			w.Detach(h) // once more
		}
		expires, ctx := over.Expires(), over.Context()
		time.Sleep(5 * time.Second)
		live(over)
		if ctx.Err() != nil || !over.Expires().Equal(expires) {
			t.Errorf("%v, %v after %v", ctx.Err(), over.Expires(), expires)
		}
		w.OK(other.Lock("b").ReleaseID(bg, elsewhere.ID()))
		live(elsewhere)
		if elsewhere.Token() != 1 {
			t.Errorf("token %d", elsewhere.Token())
		}
		for _, h := range []*redlatch.Hold{over, elsewhere} {
			w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
			w.WantErr(context.Cause(h.Context()), redlatch.ErrNotHeld)
		}
		released, err := admin.ForceRelease(bg, c.FairLock("c"))
		if !released || err != nil {
			t.Errorf("forced: %t, %v", released, err)
		}
		w.OK(c.Close())
		time.Sleep(5 * time.Minute)
		live(closed)
		if fmt.Sprint(ends) != "[detached detached detached]" || lost.Load() > 0 {
			t.Errorf("%v, %d were reported as lost", ends, lost.Load())
		}
	})
}

// Whoever passes on the id of a lock that nobody keeps, that others share, or that
// is over, has to learn it. After a refusal the hold is what it was.
func TestALockThatCannotBeDetachedSaysWhy(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		lease := redlatch.Lease(time.Minute)
		refused := func(h *redlatch.Hold, want error, word string) {
			t.Helper()
			before := h.Err()
			if id, err := h.Detach(); id != "" || !errors.Is(err, want) || !strings.Contains(err.Error(), word) {
				t.Errorf("detached as %q, %v; want %v, %s", id, err, want, word)
			}
			if err := h.Err(); err != before { //nolint:errorlint // the value itself
				t.Errorf("it is %v afterwards, and was %v", err, before)
			}
		}
		lost, released, closed := w.Acquire(bg, c.Lock("l", redlatch.Lease(time.Second))), w.Acquire(bg, c.Lock("r", lease)), w.Acquire(bg, other.Lock("c", lease))
		time.Sleep(2 * time.Second)
		w.OK(released.Release(bg))
		refused(lost, redlatch.ErrLost, "")
		refused(released, redlatch.ErrNotHeld, "")
		w.OK(other.Close())
		refused(closed, redlatch.ErrClosed, "")
		w.WantErr(lost.Release(bg), redlatch.ErrLost)
		_ = closed.Release(bg)
		time.Sleep(time.Minute) // its lease

		outer := w.Acquire(bg, c.Lock("nest", lease))
		inner := w.Acquire(outer.Context(), c.Lock("nest", lease))
		refused(outer, redlatch.ErrInvalid, "nest")
		refused(inner, redlatch.ErrInvalid, "nest")
		w.Release(outer)
		w.Detach(inner)
		w.OK(inner.Release(bg))

		rw, owner := c.ReadWriteLock("rw", lease), redlatch.WithOwner(bg)
		for _, l := range []*redlatch.Lock{rw.Write(), rw.Read(), redisson.GroupLock(c, "group", []string{"x"}, lease)} {
			h := w.Acquire(bg, l)
			refused(h, redlatch.ErrInvalid, "cannot be detached")
			w.Release(h)
		}
		both := w.Acquire(bg, redlatch.MultiLock(c.Lock("m", lease), c.Lock("n", lease)))
		refused(both, redlatch.ErrInvalid, "one by one")
		for _, m := range both.Members() {
			refused(m, redlatch.ErrInvalid, "by itself")
		}
		w.Release(both)
		kept := w.Acquire(bg, c.Lock("kept"))
		refused(kept, redlatch.ErrInvalid, "watchdog")
		time.Sleep(time.Hour)
		w.Release(kept)
		atLeast := w.Acquire(bg, c.Lock("least", lease, redlatch.MinHold(10*time.Second)))
		refused(atLeast, redlatch.ErrInvalid, "MinHold")
		time.Sleep(10 * time.Second)
		w.Detach(atLeast)
		w.OK(atLeast.Release(bg))

		one := w.Acquire(owner, c.Lock("owned", lease))
		two := w.Acquire(owner, c.Lock("owned", lease))
		refused(one, redlatch.ErrInvalid, "nest")
		w.Release(one)
		w.Detach(two)
		_, err := c.Lock("owned").TryAcquire(owner, 0) // the owner does not have it any more
		w.WantErr(err, redlatch.ErrBusy)
		w.OK(c.Lock("owned").ReleaseID(bg, two.ID()))
		w.Release(w.Acquire(owner, c.Lock("owned")))
		w.WantNothing()
	})
}

// A context of a detached hold promises no lock any more: whoever re-entered with
// it would work beside who has the id.
func TestNobodyReentersADetachedLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("deploy")
		h := detached(w, l, time.Minute)
		for _, ctx := range []context.Context{h.Context(), h.With(bg), context.WithoutCancel(h.Context()), redlatch.WithOwner(h.Context())} {
			for _, l := range []*redlatch.Lock{l, redlatch.MultiLock(l, c.Lock("other"))} {
				_, err := l.Acquire(ctx)
				w.WantErr(err, redlatch.ErrNotHeld)
				if !strings.Contains(err.Error(), `lock "deploy"`) {
					t.Error(err)
				}
			}
		}
		w.Release(w.Acquire(h.Context(), c.Lock("another")))
		w.OK(h.Release(bg))
		w.WantNothing()
	})
}

// It is detached between two holds of its nest, or not at all: whoever waits to
// nest in it is refused, or has it.
func TestALockIsNotDetachedUnderWhoReentersIt(t *testing.T) {
	l := locktest.Pretending(t).Lock("deploy", redlatch.Lease(time.Minute))
	for range 2000 {
		h, err := l.Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		var inside atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					inner, err := l.Acquire(h.Context())
					if err != nil {
						if !errors.Is(err, redlatch.ErrNotHeld) || errors.Is(err, redlatch.ErrBusy) {
							t.Error(err)
						}
						return
					}
					inside.Add(1)
					runtime.Gosched()
					inside.Add(-1)
					if err := inner.Release(bg); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for {
			_, err := h.Detach()
			if err == nil {
				break
			} else if !errors.Is(err, redlatch.ErrInvalid) {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
		if n := inside.Load(); n > 0 {
			t.Errorf("detached under %d", n)
		}
		wg.Wait()
		if err := h.Release(bg); err != nil {
			t.Fatal(err)
		}
	}
}

// Replies are lost, and requests arrive late, on both sides of the hand-over.
func TestADetachedLockBearsLostReplies(t *testing.T) {
	for name, lock := range detachable {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var fate atomic.Int32
				d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					return locktest.Fate(fate.Swap(int32(locktest.Good))).Of(next)
				}}
				var late []string
				var script string
				owner := &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if strings.HasSuffix(s, ".take") && late == nil {
						script, late = s, append(late, args...)
						_, _ = next()
						return driver.Reply{}, locktest.ErrReplyLost
					}
					return next()
				}}
				c, other := w.Tapped(redlatch.Config{}, owner), w.Tapped(redlatch.Config{}, d)
				h := detached(w, lock(c), time.Minute)
				take := owner.Again(script, late)
				fate.Store(int32(locktest.ReplyLost))
				w.OK(lock(other).ExtendID(bg, h.ID(), time.Hour))
				take() // which finds it as its owner's
				if ttl := w.Server.TTL("deploy"); ttl < 59*time.Minute {
					t.Errorf("it ends in %v", ttl)
				}
				fate.Store(int32(locktest.ReplyLost))
				w.OK(lock(other).ReleaseID(bg, h.ID()))
				w.WantLocksGone()

				// Nobody has released it here, so the late take is not undone: it stands for a
				// lease.
				take()
				next := acquiring(lock(c))
				time.Sleep(30 * time.Second)
				if !locktest.NoneYet(next) {
					t.Error("what may be somebody's was released")
				}
				got := <-next
				w.OK(got.Err)
				w.Release(got.Hold)

				// But if it is released by its Hold, it is, as of any lock.
				late = nil
				h = detached(w, lock(c), time.Minute)
				take = owner.Again(script, late)
				w.OK(h.Release(bg))
				take()
				time.Sleep(5 * time.Second)
				w.WantLocksGone()
			})
		})
	}
}

func TestADetachedLockIsNotReleasedWhenItsHoldIsCollected(t *testing.T) {
	w := locktest.InRealTime(t)
	dropped := make(chan observe.DroppedEvent, 10)
	c := w.Client(redlatch.Config{}, observe.Hooks{Dropped: func(e observe.DroppedEvent) { dropped <- e }})
	id := w.Detach(w.Acquire(bg, c.Lock("deploy", redlatch.Lease(time.Hour))))
	_ = w.Acquire(bg, c.Lock("other")) // shows that there was a collection
	for noticed := false; !noticed; {
		runtime.GC()
		select {
		case e := <-dropped:
			if noticed = true; e.Name != "other" {
				t.Fatalf("%+v", e)
			}
		case <-time.After(100 * time.Millisecond):
		}
	}
	for range 10 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if w.Fields("deploy")[id] == "" {
		t.Error("it was released")
	}
	select {
	case e := <-dropped:
		t.Errorf("and another one: %+v", e)
	default:
	}
}

// A handler hands over a lock with every request, for years.
func TestNothingIsKeptOfDetachedLocks(t *testing.T) {
	c, owner := locktest.Pretending(t), redlatch.WithOwner(bg)
	n := 0
	cycle := func(times int) {
		for range times {
			n++
			h, err := c.Lock(fmt.Sprint("orders:", n), redlatch.Lease(time.Minute)).Acquire(owner)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Detach(); err != nil {
				t.Fatal(err)
			}
		}
	}
	heap := func() uint64 {
		for range 3 { // pools empty themselves in two
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const times = 20_000
	cycle(1000)
	before := heap()
	cycle(times)
	if after := heap(); after > before+times*16 { // two pointers each
		t.Errorf("%d bytes are left of %d locks", after-before, times)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(owner)
}

// A handler takes the lock, hands it to a job, and its process ends; the job's
// process extends and releases it, and who waits in a third one hears of that.
func TestAJobReleasesTheLockOfItsHandlerOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		for name, lock := range detachable {
			t.Run(name, func(t *testing.T) {
				s.MustDo("FLUSHALL")
				open := func() *redlatch.Client {
					return locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
				}
				handler, job, third := open(), open(), open()
				h, err := locktest.With(lock(handler), redlatch.Lease(10*time.Minute)).Acquire(bg)
				if err != nil {
					t.Fatal(err)
				}
				beside, elsewhere := acquiring(lock(handler)), acquiring(lock(third))
				if !locktest.Within(locktest.Generous, func() bool { return handler.Stats().Waiters == 1 && third.Stats().Waiters == 1 }) {
					t.Fatal("nobody waits")
				}
				id, err := h.Detach()
				if err != nil {
					t.Fatal(err)
				}
				if err := lock(job).ExtendID(bg, id, time.Hour); err != nil {
					t.Fatal(err)
				}
				if ttl := s.MustDo("PTTL", "deploy").(int64); ttl < 59*60*1000 {
					t.Errorf("it ends in %d ms", ttl)
				}
				if len(beside)+len(elsewhere) > 0 {
					t.Error("somebody has got the lock beside the job")
				}
				if err := lock(job).ReleaseID(bg, id); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					var got locktest.Outcome
					select {
					case got = <-beside:
					case got = <-elsewhere:
					case <-time.After(locktest.Generous):
						t.Fatal("a waiter has not heard of the release")
					}
					if got.Err != nil {
						t.Fatal(got.Err)
					}
					if err := lock(job).ReleaseID(bg, id); !errors.Is(err, redlatch.ErrNotHeld) || got.Hold.Err() != nil {
						t.Errorf("late: %v, %v", err, got.Hold.Err())
					}
					if err := got.Hold.Release(bg); err != nil {
						t.Error(err)
					}
				}
			})
		}
	})
}
