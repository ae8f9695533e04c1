package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

var shipping = redlatch.Identity{Name: "shipping", Host: "host-8", PID: 4122}

// A viewer is a loop over Watch.
type viewer struct {
	*testing.T
	stop func()
	over <-chan bool
	seen chan seen

	nameless bool // it cannot know who the clients are
}

// seen is what it was given.
type seen struct {
	admin.Change

	err error
}

// view begins to watch, and returns when it has begun.
func view(t *testing.T, c *redlatch.Client, name string) *viewer {
	t.Helper()
	ctx, cancel := context.WithCancel(bg)
	v := &viewer{T: t, stop: cancel, seen: make(chan seen, 1000)}
	v.over = locktest.Later(func() bool {
		for change, err := range admin.New(c).Watch(ctx, name) {
			v.seen <- seen{change, err}
		}
		return true
	})
	t.Cleanup(cancel)
	if x := <-v.seen; x.err != nil || x.What != admin.ChangeBegins {
		t.Fatalf("it begins with %+v", x)
	}
	return v
}

// wants lets time pass until all was looked at, and wants that these changes were
// seen, as their lines say that do not know by whose clients they are, and no
// other.
func (v *viewer) wants(what string, lines ...string) (last admin.Change) {
	v.Helper()
	time.Sleep(8 * time.Second)
	synctest.Wait()
	var got []string
	for len(v.seen) > 0 {
		x := <-v.seen
		if x.err != nil {
			v.Fatalf("%s: %v", what, x.err)
		}
		last = x.Change
		if x.Holder.Redlatch && x.Holder.By == "" && !v.nameless {
			v.Errorf("%s: %s has no name", what, x)
		}
		x.Holder.By = ""
		got = append(got, x.String())
	}
	if !slices.Equal(got, lines) {
		v.Fatalf("%s: saw %q, want %q", what, got, lines)
	}
	return last
}

// ends wants that the loop ends when its context does, with nothing seen and
// nothing left behind.
func (v *viewer) ends() {
	v.Helper()
	v.stop()
	<-v.over
	if len(v.seen) > 0 {
		v.Errorf("the end of its context is told: %+v", <-v.seen)
	}
}

// A lock is seen to be acquired, waited for, released and lost, whoever has it,
// and its holder does not notice: to subscribe would have cost it turns.
func TestWatchSeesWhoHasALock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other, watcher := w.Client(redlatch.Config{Identity: billing}), w.Client(redlatch.Config{Identity: shipping}), w.Client(redlatch.Config{})
		v := view(w.T, watcher, "orders")
		h := w.Acquire(bg, c.Lock("orders"))
		change := v.wants("acquired", "acquired by "+h.ID())
		if got, want := change.String(), fmt.Sprintf("acquired by billing@host-7 pid 4121 (owner %s)", h.ID()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if change.Holder.Client != c.ID() || !change.Info.Held() || change.Info.Kind != redlatch.KindLock {
			t.Errorf("%+v", change)
		}
		waiter := locktest.Acquiring(other.Lock("orders"))
		synctest.Wait()
		if change = v.wants("waits", "1 waiting"); change.Waiting != 1 {
			t.Errorf("%+v", change)
		}
		w.Listen(func(string, string) {}, "redisson_lock__channel:{orders}") // as a process of Redisson that waits
		v.wants("Redisson waits", "2 waiting")
		w.Release(h)
		next := w.Got(waiter)
		v.wants("passed on", "released by "+h.ID(), "acquired by "+next.ID(), "1 waiting")
		w.Server.Del("orders")
		<-next.Context().Done()
		change = v.wants("lost", "released by "+next.ID(), "lost by "+next.ID()+": gone")
		if got, want := change.String(), fmt.Sprintf("lost by shipping@host-8 pid 4122 (owner %s): gone", next.ID()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if change.Reason != redlatch.LostGone || change.Info.Held() || time.Since(change.At) > 10*time.Second {
			t.Errorf("%+v", change)
		}
		w.Server.HSet("orders", locktest.JavaOwner, "1")
		w.Server.SetTTL("orders", 30*time.Second)
		v.wants("Redisson's", "acquired by "+locktest.JavaOwner)
		time.Sleep(30 * time.Second)
		v.wants("its lease ends", "expired by "+locktest.JavaOwner)
		v.wants("nothing happens")
		v.ends()
	})
}

// Both sides of a read-write lock, the values of a group, the queue of a fair lock
// and permits are told apart.
func TestWatchSeesEveryKindOfLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, watcher := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		for kind, see := range map[string]func(v *viewer){
			"readwrite": func(v *viewer) {
				rw := c.ReadWriteLock("readwrite")
				h := w.Acquire(bg, rw.Write())
				inner := w.Acquire(h.Context(), rw.Read())
				v.wants("both", "acquired by "+h.ID()+", to write", "acquired by "+inner.ID()+", to read")
				w.Release(inner)
				w.Release(h)
				v.wants("free", "released by "+h.ID()+", to write", "released by "+h.ID()+", to read")
			},
			"group": func(v *viewer) {
				h := w.Acquire(bg, redisson.GroupLock(c, "group", []string{"a"}))
				x := v.wants("acquired", "acquired by "+h.ID()+", value "+groupField(w, "group"))
				if x.Info.Kind != redlatch.KindGroup {
					t.Errorf("%+v", x)
				}
				w.Release(h)
				v.wants("free", "released by "+x.Holder.Owner+", value "+x.Holder.Value)
			},
			"fair": func(v *viewer) {
				h := w.Acquire(bg, c.FairLock("fair"))
				v.wants("acquired", "acquired by "+h.ID())
				ctx, cancel := context.WithCancel(bg)
				waiter := w.Waiting(ctx, c.FairLock("fair"))
				if x := v.wants("waits", "1 waiting"); x.Info.Kind != redlatch.KindFair || len(x.Info.Queue) != 1 {
					t.Errorf("%+v", x)
				}
				cancel()
				<-waiter
				v.wants("nobody waits", "0 waiting")
				w.Release(h)
				v.wants("free", "released by "+h.ID())
			},
			"permits": func(v *viewer) {
				s := semaphore.NewExpirable(c, "permits", 2)
				h, err := s.Acquire(bg, 1)
				w.OK(err)
				v.wants("set up, and taken", "acquired by "+h.ID(), "state")
				w.Release(h)
				if x := v.wants("given back", "released by "+h.ID()); x.Info.Free != 2 {
					t.Errorf("%+v", x)
				}
			},
			"kept": func(v *viewer) {
				h := w.Acquire(bg, c.Lock("kept", redlatch.MinHold(20*time.Second)))
				v.wants("acquired", "acquired by "+h.ID())
				w.Release(h)
				x := v.wants("only stays", "released by "+h.ID())
				time.Sleep(10 * time.Second)
				if free := v.wants("free", "state"); !x.Info.Held() || free.Info.Held() {
					t.Errorf("%+v, %+v", x, free)
				}
			},
		} {
			t.Log(kind)
			v := view(w.T, watcher, kind)
			see(v)
			v.ends()
		}
	})
}

func groupField(w *locktest.World, name string) string {
	for field := range w.Fields(name) {
		if !strings.Contains(field, ":") {
			return field
		}
	}
	return ""
}

func TestWatchSeesHowSynchronizersStand(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, watcher := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		for kind, see := range map[string]func(v *viewer){
			"semaphore": func(v *viewer) {
				s := semaphore.New(c, "semaphore", 3)
				w.OK(s.Acquire(bg, 2))
				if x := v.wants("taken", "state"); x.Info.Number != 1 {
					t.Errorf("%+v", x)
				}
				waiter := locktest.AcquiringPermits(bg, s, 2)
				v.wants("waits", "1 waiting")
				w.OK(s.Release(bg, 1))
				w.OK(<-waiter)
				v.wants("got them", "state", "0 waiting")
			},
			"latch": func(v *viewer) {
				l := w.Latch(latch.New(c, "latch"), 2)
				v.wants("set", "state")
				waiter := locktest.WaitFor(bg, l)
				if x := v.wants("waits", "1 waiting"); x.Info.Kind != redlatch.KindLatch || x.Info.CountDowns != 2 {
					t.Errorf("%+v", x)
				}
				w.OK(l.CountDown(bg))
				v.wants("one of two", "state")
				w.OK(l.CountDown(bg))
				w.OK(<-waiter)
				if x := v.wants("open", "state", "0 waiting"); x.Info.Kind != redlatch.KindLatch || x.Info.CountDowns != 0 {
					t.Errorf("%+v", x)
				}
			},
			"limiter": func(v *viewer) {
				l := ratelimit.New(c, "limiter", ratelimit.Rate{Permits: 2, Interval: time.Minute})
				w.TakeRate(l, 1)
				if x := v.wants("taken", "state"); x.Info.Free != 1 || x.Info.Rate.Permits != 2 {
					t.Errorf("%+v", x)
				}
				time.Sleep(time.Minute)
				v.wants("come back", "state")
			},
			"barrier": func(v *viewer) {
				b := barrier.New(c, "barrier", 2)
				await := func() <-chan error {
					c := locktest.Later(func() error { _, err := b.Await(bg); return err })
					synctest.Wait()
					return c
				}
				first := await()
				if x := v.wants("one has come", "state", "1 waiting"); x.Info.Kind != redlatch.KindBarrier || x.Info.Parties != 2 {
					t.Errorf("%+v", x)
				}
				second := await()
				w.OK(<-first)
				w.OK(<-second)
				time.Sleep(8 * time.Second)
				for len(v.seen) > 0 {
					<-v.seen
				}
			},
		} {
			t.Log(kind)
			v := view(w.T, watcher, kind)
			see(v)
			v.ends()
		}
	})
}
