package locks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redis-py #3535, python-redis-lock #39: a late release freed somebody else's
// lock; node-redlock #362: it was called a failure of the servers.
func TestAReleaseAfterTheLeaseLeavesTheNextHolderAlone(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders", redlatch.Lease(time.Second)))
		next := w.Acquire(bg, other.Lock("orders"))
		err := h.Release(bg)
		w.WantErr(err, redlatch.ErrLost)
		if errors.Is(err, redlatch.ErrUnavailable) || errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Release: %v", err)
		}
		w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
		if w.Count(next) != "1" || next.Err() != nil {
			t.Errorf("the next holder: count %q, %v", w.Count(next), next.Err())
		}
		w.Release(next)
	})
}

// redisson #7251, spring-integration #3655: something was left of each lock.
func TestNothingIsLeftOfManyLocks(t *testing.T) {
	nothingIsLeft(t, bg)
}

// WithOwner kept 1.8 kB of each lock that was ever released under it.
func TestWithOwnerKeepsNothingOfReleasedLocks(t *testing.T) {
	nothingIsLeft(t, redlatch.WithOwner(bg))
}

func nothingIsLeft(t *testing.T, ctx context.Context) {
	t.Helper()
	b := &locktest.Blockable{End: make(chan struct{})}
	c, err := redlatch.New(b, redlatch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n := 0
	cycle := func(times int) {
		t.Helper()
		for range times {
			n++
			l := c.Lock(fmt.Sprint("orders:", n))
			h, err := l.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			inner, err := l.Acquire(h.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(inner.Release(bg), h.Release(bg)); err != nil {
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
	before, goroutines := heap(), runtime.NumGoroutine()
	cycle(times)
	if after := heap(); after > before+times*16 { // two pointers each
		t.Errorf("%d bytes are left of %d locks", after-before, times)
	}
	runtime.KeepAlive(ctx)
	if now := runtime.NumGoroutine(); now > goroutines+10 {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
}

// redisson #4178: what was locked next passed for a re-entry.
func TestAReleaseWithALostReplyIsNeverReentered(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down atomic.Bool
		d := &locktest.Tap{Hook: locktest.Failing(&down, locktest.ErrReplyLost)}
		c := w.Tapped(redlatch.Config{}, d)
		h := w.Acquire(bg, c.Lock("orders"))
		down.Store(true)
		w.WantErr(h.Release(bg), redlatch.ErrUnavailable)
		down.Store(false)
		start := time.Now()
		next := w.Acquire(bg, c.Lock("orders"))
		if next.ID() == h.ID() || w.Count(next) != "1" {
			t.Errorf("owner %s after %s, count %s", next.ID(), h.ID(), w.Count(next))
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("the client waited %v for itself", d)
		}
		time.Sleep(5 * time.Minute) // the late releases of the old id
		if got := w.Count(next); next.Err() != nil || got != "1" {
			t.Errorf("%v, count %s", next.Err(), got)
		}
		w.Release(next)
	})
}

// A take that arrives when its hold is over takes the lock for nobody.
func TestALateTakeBlocksNobodyForLong(t *testing.T) {
	for name, limit := range map[string]time.Duration{"its own client": 10 * time.Millisecond, "another client": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var n atomic.Int64
				var late func()
				d := &locktest.Tap{}
				d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == "lock.take" && n.Add(1) == 1 {
						late = d.Again(s, args)
						return driver.Reply{}, locktest.ErrReplyLost
					}
					return next()
				}
				c := w.Tapped(redlatch.Config{}, d)
				w.Release(w.Acquire(bg, c.Lock("orders")))
				late()
				if !w.Server.Exists("orders") {
					t.Fatal("the late take took nothing: nothing is tested")
				}
				if name != "its own client" {
					c = w.Client(redlatch.Config{})
				}
				start := time.Now()
				h := w.Acquire(bg, c.Lock("orders"))
				if d := time.Since(start); d > limit {
					t.Errorf("the lock was blocked for %v", d)
				}
				w.Release(h)
			})
		})
	}
}

// authgear-server #5721, ncps #913: Unlock with a cancelled context did nothing.
func TestReleaseWorksOnAContextThatHasEnded(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		ctx, cancel := context.WithCancel(bg)
		h := w.Acquire(ctx, c.Lock("orders"))
		cancel()
		if err := h.Release(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		synctest.Wait()
		if w.Server.Exists("orders") {
			t.Fatal("the lock was left to its TTL")
		}
	})
}

// In Redisson everybody's unlock of a fair lock that is gone succeeds, and until
// 3.43 that of a read-write lock.
func TestTheReleaseOfALockThatIsGoneIsNoSuccess(t *testing.T) {
	for name, of := range locktest.TypesOfLock {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				l := of(w.Client(redlatch.Config{}), "orders")
				h := w.Acquire(bg, l)
				published := w.Eavesdrop()
				for _, key := range w.Keys() {
					w.Server.Del(key)
				}
				w.WantErr(h.Release(bg), redlatch.ErrLost)
				if got := published(); len(got) > 0 {
					t.Errorf("published %q", got)
				}
				w.WantNoKeys()
			})
		})
	}
}
