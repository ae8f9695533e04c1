package locks

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestALostMemberEndsTheHoldBeforeAnybodyElseCanGetIt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		w2 := another(w)
		a, b := w.Client(redlatch.Config{}), w2.Client(redlatch.Config{})
		h := w.Acquire(bg, redlatch.MultiLock(a.Lock("a"), b.Lock("b")))
		ctx := h.With(bg)
		time.Sleep(15 * time.Second)
		w2.Server.SetError("LOADING cut off")
		<-h.Context().Done()
		if ttl := w2.Server.TTL("b"); ttl <= 0 {
			t.Error("told too late")
		}
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("With's context lives on")
		}
		w.WantErr(h.Err(), redlatch.ErrLost)
		w.WantErr(context.Cause(h.Context()), redlatch.ErrLost)
		w.WantErr(context.Cause(ctx), redlatch.ErrLost)
		w2.Server.SetError("")
		var lost *redlatch.LostError
		if err := h.Release(bg); !errors.As(err, &lost) || lost.Name != "b" {
			t.Errorf("Release: %v", err)
		}
		w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
		w.WantNothing()
		time.Sleep(time.Minute)
		w2.WantNothing()
	})
}

func TestTheErrorsOfMembersAreJoined(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"), c.Lock("c"))
		h := w.Acquire(bg, m)
		w.Server.Del("a")
		w.Server.Del("c")
		err := h.Release(bg)
		w.WantErr(err, redlatch.ErrLost)
		var names []string
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range joined.Unwrap() {
				if lost := (*redlatch.LostError)(nil); errors.As(err, &lost) {
					names = append(names, lost.Name)
				}
			}
		}
		if slices.Sort(names); !slices.Equal(names, []string{"a", "c"}) {
			t.Errorf("lost %v in %v", names, err)
		}
		if err := m.Do(bg, func(context.Context) error { w.Server.Del("b"); return errors.New("mine") }); !errors.Is(err, redlatch.ErrLost) || err.Error()[:4] != "mine" {
			t.Errorf("Do: %v", err)
		}
		w.WantNothing()
	})
}

func TestDoOfSeveralLocksTellsOfEachLossOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		second, third := another(w), another(w)
		a, b := w.Client(redlatch.Config{}), second.Client(redlatch.Config{})
		c := third.Client(redlatch.Config{})
		for name, several := range map[string]*redlatch.Lock{
			"multi": redlatch.MultiLock(a.Lock("a"), b.Lock("b")),
			"red":   redlatch.RedLock(a.Lock("a"), b.Lock("b"), c.Lock("c")),
		} {
			for _, also := range []error{nil, errors.New("boom")} {
				err := several.Do(bg, func(ctx context.Context) error {
					w.Server.Del("a")
					second.Server.Del("b")
					third.Server.Del("c")
					<-ctx.Done()
					time.Sleep(time.Minute) // so that all are known to be lost
					return errors.Join(also, context.Cause(ctx))
				})
				w.WantErr(err, redlatch.ErrLost)
				for _, lost := range []string{`"a"`, `"b"`, `"c"`} {
					if strings.Count(err.Error(), lost) > 1 {
						t.Errorf("%s: %s is told twice: %v", name, lost, err)
					}
				}
				if also != nil {
					w.WantErr(err, also)
				}
			}
		}
	})
}

func TestHoldFromFindsSeveralLocks(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		several := redlatch.MultiLock(c.Lock("a", redlatch.Fenced()), c.Lock("b"))
		if h := redlatch.HoldFrom(bg); h != nil {
			t.Errorf("found %v", h)
		}
		w.OK(several.Do(bg, func(ctx context.Context) error {
			h := redlatch.HoldFrom(context.WithValue(ctx, t, "below"))
			if h == nil || h.Err() != nil || h.Members()[0].Token() != 1 || h != redlatch.HoldFrom(ctx) {
				t.Errorf("found %v", h)
			}
			return c.Lock("c").Do(ctx, func(ctx context.Context) error {
				if inner := redlatch.HoldFrom(ctx); inner == h || inner.Name() != "c" {
					t.Errorf("found the hold of %q", inner.Name())
				}
				return nil
			})
		}))
	})
}

func TestSeveralLocksAreKeptByTheWatchdogs(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		w2 := another(w)
		a, b := w.Client(redlatch.Config{}), w2.Client(redlatch.Config{WatchdogTimeout: 12 * time.Second})
		m := redlatch.MultiLock(a.Lock("a"), b.Lock("b"))
		h := w.Acquire(bg, m)
		if _, ok := h.Context().Deadline(); ok {
			t.Error("a watchdog's context has a deadline")
		}
		time.Sleep(10 * time.Minute)
		if h.Err() != nil {
			t.Fatal(h.Err())
		}
		if left := time.Until(h.Expires()); left > 12*time.Second || left < 4*time.Second {
			t.Errorf("trusted for %v, want what b's lease allows", left)
		}
		if err := h.Extend(bg, time.Minute); err == nil {
			t.Error("extended by hand")
		}
		w.Release(h)
		w.WantNothing()
		w2.WantNothing()
	})
}

func TestTheLeaseOfSeveralLocksEndsForAllMembersTogether(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		busy := w.Acquire(bg, other.Lock("b"))
		got := locktest.Later(func() *redlatch.Hold {
			return w.Acquire(bg, redlatch.MultiLock(c.Lock("a", redlatch.Fenced(), redlatch.Lease(time.Second)), c.Lock("b", redlatch.Lease(time.Second))))
		})
		time.Sleep(450 * time.Millisecond)
		w.Release(busy)
		h := <-got
		want := time.Second - 30*time.Millisecond
		if left := time.Until(h.Expires()); left < want-20*time.Millisecond || left > want {
			t.Errorf("trusted for %v, want %v", left, want)
		}
		if _, ok := h.Context().Deadline(); ok {
			t.Error("the context has a deadline, which Extend would move")
		}
		if err := h.Extend(bg, 10*time.Second); err != nil {
			t.Error(err)
		}
		if ttl := min(w.Server.TTL("a"), w.Server.TTL("b")); ttl < 9*time.Second {
			t.Errorf("extended to %v", ttl)
		}
		<-h.Context().Done()
		w.WantErr(h.Err(), redlatch.ErrLost)
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.WantErr(h.Extend(bg, time.Second), redlatch.ErrLost)
		time.Sleep(time.Second)
		w.Server.Del("redisson_lock_token:{a}")
		w.WantNothing()
	})
}

func TestMembersAreReenteredThroughTheHoldOfAll(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		w2 := another(w)
		a, b := w.Client(redlatch.Config{}), w2.Client(redlatch.Config{})
		m := redlatch.MultiLock(a.Lock("x"), b.Lock("x"), a.Lock("y")) // two of one name
		h := w.Acquire(bg, m)
		counts := func(want string) {
			t.Helper()
			for i, h := range h.Members() {
				if got := w.Count(h) + w2.Count(h); got != want {
					t.Errorf("member %d has count %s, want %s", i, got, want)
				}
			}
		}
		for _, ctx := range []context.Context{h.Context(), h.With(bg)} {
			for _, l := range locktest.Members(m) {
				one := w.Acquire(ctx, l)
				again := w.Acquire(one.Context(), l)
				w.Release(again)
				w.Release(one)
			}
			inner := w.Acquire(ctx, m)
			counts("2")
			// From inside of one member's hold the others are still found.
			one := w.Acquire(inner.Context(), locktest.Members(m)[1])
			two := w.Acquire(one.Context(), locktest.Members(m)[0])
			three := w.Acquire(two.Context(), locktest.Members(m)[1])
			w.Release(three)
			w.Release(two)
			w.Release(one)
			w.Release(inner)
			counts("1")
		}
		other := another(w2).Client(redlatch.Config{})
		_, err := other.Lock("x").Acquire(h.Context())
		w.WantErr(err, redlatch.ErrReentry)
		w.Release(h)
		_, err = m.Acquire(h.Context())
		w.WantErr(err, redlatch.ErrNotHeld)
		_, err = a.Lock("x").Acquire(h.Context())
		w.WantErr(err, redlatch.ErrNotHeld)
		w.WantNothing()
		w2.WantNothing()
	})
}

func TestMembersAreNeitherGivenNorHadWithoutARequest(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
		h := w.Acquire(bg, m)
		member := h.Members()[0].ID()
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, c.Lock("a")) })
		synctest.Wait()
		w.Release(h)
		plain := <-next
		if plain.ID() == member {
			t.Error("a member was handed on")
		}
		got := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, m) })
		synctest.Wait()
		owner := plain.ID()
		w.Release(plain)
		h = <-got
		if h.Members()[0].ID() == owner {
			t.Error("a member was handed over")
		}
		w.Release(h)
		w.WantNothing()
	})
}

func TestClosingOneClientEndsTheHoldOfAll(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		m := redlatch.MultiLock(a.Lock("a"), b.Lock("b"))
		h := w.Acquire(bg, m)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		<-h.Context().Done()
		w.WantErr(h.Err(), redlatch.ErrClosed)
		w.WantErr(h.Release(bg), redlatch.ErrClosed)
		_, err := m.Acquire(bg)
		w.WantErr(err, redlatch.ErrClosed)
		if w.Server.Exists("a") {
			t.Error("a is left behind")
		}
	})
}

func TestForceReleaseOfSeveralLocksReleasesEveryMember(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		names := func(c *redlatch.Client) *redlatch.Lock { return redlatch.MultiLock(c.Lock("a"), c.Lock("b")) }
		h := w.Acquire(bg, names(c))
		if released, err := admin.ForceRelease(bg, names(other)); !released || err != nil {
			t.Errorf("%v, %v", released, err)
		}
		if h.Context().Err() == nil {
			t.Error("the holder was not told before")
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		if released, err := admin.ForceRelease(bg, names(other)); released || err != nil {
			t.Errorf("%v, %v", released, err)
		}
		w.WantNothing()
	})
}

func TestADroppedHoldOfSeveralLocksIsReleased(t *testing.T) {
	w := locktest.InRealTime(t)
	var dropped atomic.Int64
	c := w.Client(redlatch.Config{}, observe.Hooks{Dropped: func(observe.DroppedEvent) { dropped.Add(1) }})
	m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
	member := func() *redlatch.Hold { return w.Acquire(bg, m).Members()[0] }()
	runtime.GC()
	runtime.GC()
	if member.Err() != nil {
		t.Error("dropped while a member's hold is in use")
	}
	runtime.KeepAlive(member)
	member = nil //nolint:wastedassign // dropped here
	for end := time.Now().Add(locktest.Generous); dropped.Load() < 2 || w.Server.Exists("a") || w.Server.Exists("b"); {
		if time.Now().After(end) {
			t.Fatalf("%d dropped", dropped.Load())
		}
		runtime.GC()
		time.Sleep(100 * time.Millisecond)
	}
	red := redlatch.RedLock(c.Lock("r"))
	w.Acquire(bg, red) // and dropped
	next := locktest.Later(func() *redlatch.Hold { return w.AcquireWithin(bg, red, locktest.Generous) })
	for end := time.Now().Add(locktest.Generous); ; {
		select {
		case h := <-next:
			w.Release(h)
			return
		case <-time.After(100 * time.Millisecond):
			runtime.GC()
		}
		if time.Now().After(end) {
			t.Fatal("a dropped hold of a red lock keeps the others of its process waiting")
		}
	}
}
