package locks

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestMembersOfOneClientAreTakenInOneRoundTrip(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		r := &takes{}
		c, other := r.client(w, redlatch.Config{}), w.Client(redlatch.Config{})
		m := redlatch.MultiLock(c.Lock("c"), c.Lock("a"), redisson.SpinLock(c, "b", nil))
		h := w.Acquire(bg, m)
		for _, h := range h.Members() {
			if w.Count(h) != "1" || w.Server.TTL(h.Name()) != 30*time.Second {
				t.Errorf("%s: count %q, TTL %v", h.Name(), w.Count(h), w.Server.TTL(h.Name()))
			}
		}
		w.Release(h)
		// One that is taken is waited for alone, the others follow together.
		busy := w.Acquire(bg, other.Lock("c"))
		got := locktest.Later(func() *redlatch.Hold {
			return w.Acquire(bg, locktest.With(m, redlatch.Lease(5*time.Second)))
		})
		time.Sleep(100 * time.Millisecond)
		if w.Server.Exists("a") || w.Server.Exists("b") {
			t.Error("some were taken although not all are free")
		}
		w.Release(busy)
		h = <-got
		if ttl := min(w.Server.TTL("a"), w.Server.TTL("b"), w.Server.TTL("c")); ttl != 5*time.Second {
			t.Errorf("TTL %v", ttl)
		}
		// Who re-enters one takes that by itself.
		inner := w.Acquire(h.Context(), m)
		w.Release(inner)
		w.Release(h)
		one := w.Acquire(bg, c.Lock("b"))
		h = w.Acquire(one.Context(), m)
		w.Release(h)
		w.Release(one)
		log := strings.Join(r.all(), " ")
		for _, want := range []string{"+[a b c] -c -b -a ?[a b c] ?c", "+c +[a b] -b -a -c +b"} {
			if !strings.Contains(log, want) {
				t.Errorf("%q is not in %q", want, log)
			}
		}
		w.WantNothing()
	})
}

func TestMembersAreTakenTogetherSlotBySlotInACluster(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		r := &takes{}
		r.tap.Cluster = true
		c := r.client(w, redlatch.Config{})
		h := w.Acquire(bg, redlatch.MultiLock(c.Lock("{x}1"), c.Lock("{y}1"), c.Lock("{x}2"), c.Lock("{y}2"), c.Lock("{z}")))
		w.Release(h)
		if got, want := r.all()[:3], []string{"+[{x}1 {x}2]", "+[{y}1 {y}2]", "+{z}"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		w.WantNothing()
	})
}

func TestALostReplyOfAJointTakeIsReplayed(t *testing.T) {
	for _, executed := range []bool{true, false} {
		for _, times := range []int64{1, 3} {
			t.Run(fmt.Sprint(executed, times), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					var n atomic.Int64
					d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						if s == "multilock.take" && n.Add(1) <= times {
							if executed {
								_, _ = next()
							}
							return driver.Reply{}, locktest.ErrReplyLost
						}
						return next()
					}}
					c := w.Tapped(redlatch.Config{}, d)
					m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
					h := w.Acquire(bg, m)
					for _, h := range h.Members() {
						if w.Count(h) != "1" {
							t.Errorf("%s has count %q", h.Name(), w.Count(h))
						}
					}
					w.Release(h)
					time.Sleep(15 * time.Second)
					w.WantNothing()
				})
			})
		}
	}
}

// A take that is executed late finds its locks held, and changes nothing; or
// free, and then they are released again.
func TestALateJointTakeLeavesNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var args []string
		d := &locktest.Tap{}
		d.Hook = func(s string, a []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "multilock.take" && args == nil {
				args = slices.Clone(a)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}
		c, other := w.Tapped(redlatch.Config{}, d), w.Client(redlatch.Config{})
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
		h := w.Acquire(bg, m)
		late := d.Again("multilock.take", args)
		inner := w.Acquire(h.Context(), c.Lock("a"))
		late()
		if w.Count(inner) != "2" || w.Count(h.Members()[1]) != "1" {
			t.Errorf("counts %s, %s", w.Count(inner), w.Count(h.Members()[1]))
		}
		w.Release(inner)
		w.Release(h)
		foreign := w.Acquire(bg, other.Lock("b"))
		late()
		if w.Server.Exists("a") || w.Count(foreign) != "1" {
			t.Error("a late take of two took one")
		}
		w.Release(foreign)
		late()
		if !w.Server.Exists("a") || !w.Server.Exists("b") {
			t.Fatal("the late take was not executed")
		}
		h2 := w.AcquireWithin(bg, m, 10*time.Second) // meets its own, and pays at once
		w.Release(h2)
		late()
		time.Sleep(15 * time.Second) // half of a lease: it has been released, not forgotten
		w.WantNothing()
	})
}

func TestAJointTakeThatIsGivenUpLeavesNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "multilock.take" {
				time.Sleep(50 * time.Millisecond)
				defer time.Sleep(50 * time.Millisecond)
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
		for _, wait := range []time.Duration{time.Millisecond, 70 * time.Millisecond} {
			start := time.Now()
			_, err := m.TryAcquire(bg, wait)
			w.WantErr(err, redlatch.ErrBusy)
			if time.Since(start) != wait {
				t.Errorf("after %v", time.Since(start))
			}
			plain := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, c.Lock("a")) }) // is inside only when that is settled
			time.Sleep(time.Second)
			w.Release(<-plain)
			w.WantNothing()
		}
		w.Release(w.Acquire(bg, m))
		w.WantNothing()
	})
}

// A key of another type among them refuses the whole.
func TestAJointTakeOfAKeyOfAnotherTypeTakesNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		if err := w.Server.Set("b", "text"); err != nil {
			t.Fatal(err)
		}
		_, err := redlatch.MultiLock(c.Lock("a"), c.Lock("b"), c.Lock("c")).Acquire(bg)
		if err == nil || redlatch.IsRetryable(err) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if keys := w.Keys(); !slices.Equal(keys, []string{"b"}) {
			t.Errorf("left behind: %v", keys)
		}
	})
}

// One of two members that are taken together is forced away before the reply has
// come: the other must not be kept while that one is waited for.
func TestAMemberThatIsRevokedOnTheWayIsNotWaitedForWithTheOthersInHand(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "multilock.take" {
				defer time.Sleep(50 * time.Millisecond)
			}
			return next()
		}}
		c, other := w.Tapped(redlatch.Config{}, d), w.Client(redlatch.Config{})
		got := locktest.Later(func() *redlatch.Hold {
			return w.Acquire(bg, redlatch.MultiLock(c.Lock("a"), c.Lock("b")))
		})
		time.Sleep(10 * time.Millisecond)
		if ok, err := admin.ForceRelease(bg, other.Lock("a")); !ok || err != nil {
			t.Fatal(ok, err)
		}
		thief := w.Acquire(bg, other.Lock("a"))
		time.Sleep(time.Second)
		if w.Server.Exists("b") {
			t.Error("b is held while a is waited for")
		}
		w.Release(thief)
		w.Release(<-got)
		w.WantNothing()
	})
}

// Members that an owner's goroutines share are not taken past it.
func TestAMultiLockUnderWithOwnerIsItsOwners(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
		ctx := redlatch.WithOwner(bg)
		h := w.Acquire(ctx, m)
		again := w.AcquireWithin(ctx, m, time.Second)
		one := w.AcquireWithin(ctx, c.Lock("b"), time.Second)
		if w.Count(one) != "3" {
			t.Errorf("count %s", w.Count(one))
		}
		w.Release(one)
		w.Release(h)
		w.Release(again)
		w.WantNothing()
	})
}

// Who has some members is in haste for the next one. Two servers that need longer
// than that to answer were each too late, whichever came first, for ever.
func TestServersThatAreSlowToAnswerDoNotKeepAMultiLockFromItsCallers(t *testing.T) {
	for _, rtt := range []time.Duration{600 * time.Millisecond, 2 * time.Second} {
		t.Run(rtt.String(), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				far := func(w *locktest.World) *redlatch.Client {
					return w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						time.Sleep(rtt / 2)
						defer time.Sleep(rtt / 2)
						return next()
					}})
				}
				w2 := another(w)
				a, b := far(w), far(w2)
				for _, m := range []*redlatch.Lock{
					redlatch.MultiLock(a.Lock("a"), b.Lock("b")),
					redlatch.MultiLock(a.Lock("a", redlatch.Fenced()), a.Lock("b", redlatch.Fenced()), a.Lock("c", redlatch.Fenced())),
				} {
					w.Release(w.AcquireWithin(bg, m, time.Minute))
				}
				h, err := redlatch.MultiLock(a.Lock("a"), a.Lock("b"), b.Lock("c"), b.Lock("d")).TryAcquire(bg, 0)
				w.OK(err)
				w.Release(h)
				time.Sleep(15 * time.Second)
				w2.WantNothing()
			})
		})
	}
}

// The first member was named, whose key is as it should be.
func TestTheErrorOfOneRequestNamesAllItsMembers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		w.OK(w.Server.Set("b", "text"))
		locks := []*redlatch.Lock{c.Lock("a"), c.Lock("b")}
		for i := range 8 {
			want := `(2 locks: ["a" "b"])`
			if i > 0 {
				locks = append(locks, c.Lock(fmt.Sprint("c", i)))
				want = fmt.Sprintf("(%d locks: [", len(locks))
			}
			_, err := redlatch.MultiLock(locks...).Acquire(bg)
			if text := fmt.Sprint(err); driver.Failure(err).Code != "WRONGTYPE" || !strings.Contains(text, want) || len(text) > 200 {
				t.Errorf("%q does not say %s, or says too much", text, want)
			}
		}
		w.Server.Del("b")
		w.WantLocksGone()
	})
}
