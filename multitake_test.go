package redlatch_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

func TestMembersOfOneClientAreTakenInOneRoundTrip(t *testing.T) {
	inFakeTime(t, func(w *world) {
		r := &takes{}
		c, other := r.client(w, redlatch.Config{}), w.client(redlatch.Config{})
		m := redlatch.MultiLock(c.Lock("c"), c.Lock("a"), c.SpinLock("b", nil))
		h := w.acquireMulti(m, bg)
		for _, h := range h.Holds() {
			if w.count(h) != "1" || w.server.TTL(h.Name()) != 30*time.Second {
				t.Errorf("%s: count %q, TTL %v", h.Name(), w.count(h), w.server.TTL(h.Name()))
			}
		}
		w.releaseMulti(h)
		// One that is taken is waited for alone, the others follow together.
		busy := w.acquire(other.Lock("c"), bg)
		got := later(func() *redlatch.MultiHold { return w.acquireMulti(m, bg, redlatch.Lease(5*time.Second)) })
		time.Sleep(100 * time.Millisecond)
		if w.server.Exists("a") || w.server.Exists("b") {
			t.Error("some were taken although not all are free")
		}
		w.release(busy)
		h = <-got
		if ttl := min(w.server.TTL("a"), w.server.TTL("b"), w.server.TTL("c")); ttl != 5*time.Second {
			t.Errorf("TTL %v", ttl)
		}
		// Who re-enters one takes that by itself.
		inner := w.acquireMulti(m, h.Context())
		w.releaseMulti(inner)
		w.releaseMulti(h)
		one := w.acquire(c.Lock("b"), bg)
		h = w.acquireMulti(m, one.Context())
		w.releaseMulti(h)
		w.release(one)
		log := strings.Join(r.all(), " ")
		for _, want := range []string{"+[a b c] -c -b -a ?[a b c] ?c", "+c +[a b] -b -a -c +b"} {
			if !strings.Contains(log, want) {
				t.Errorf("%q is not in %q", want, log)
			}
		}
		w.wantNothing()
	})
}

func TestMembersAreTakenTogetherSlotBySlotInACluster(t *testing.T) {
	inFakeTime(t, func(w *world) {
		r := &takes{}
		r.tap.cluster = true
		c := r.client(w, redlatch.Config{})
		h := w.acquireMulti(redlatch.MultiLock(c.Lock("{x}1"), c.Lock("{y}1"), c.Lock("{x}2"), c.Lock("{y}2"), c.Lock("{z}")), bg)
		w.releaseMulti(h)
		if got, want := r.all()[:3], []string{"+[{x}1 {x}2]", "+[{y}1 {y}2]", "+{z}"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		w.wantNothing()
	})
}

func TestALostReplyOfAJointTakeIsReplayed(t *testing.T) {
	for _, executed := range []bool{true, false} {
		for _, times := range []int64{1, 3} {
			t.Run(fmt.Sprint(executed, times), func(t *testing.T) {
				inFakeTime(t, func(w *world) {
					var n atomic.Int64
					d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						if s == "multilock.take" && n.Add(1) <= times {
							if executed {
								_, _ = next()
							}
							return driver.Reply{}, errTapUnknown
						}
						return next()
					}}
					c := w.tapped(redlatch.Config{}, d)
					m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
					h := w.acquireMulti(m, bg)
					for _, h := range h.Holds() {
						if w.count(h) != "1" {
							t.Errorf("%s has count %q", h.Name(), w.count(h))
						}
					}
					w.releaseMulti(h)
					time.Sleep(15 * time.Second)
					w.wantNothing()
				})
			})
		}
	}
}

// A take that is executed late finds its locks held, and changes nothing; or
// free, and then they are released again.
func TestALateJointTakeLeavesNothing(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var args []string
		d := &tap{}
		d.hook = func(s string, a []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "multilock.take" && args == nil {
				args = slices.Clone(a)
				return driver.Reply{}, errTapUnknown
			}
			return next()
		}
		c, other := w.tapped(redlatch.Config{}, d), w.client(redlatch.Config{})
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
		h := w.acquireMulti(m, bg)
		late := d.again("multilock.take", args)
		inner := w.acquire(c.Lock("a"), h.Context())
		late()
		if w.count(inner) != "2" || w.count(h.Holds()[1]) != "1" {
			t.Errorf("counts %s, %s", w.count(inner), w.count(h.Holds()[1]))
		}
		w.release(inner)
		w.releaseMulti(h)
		foreign := w.acquire(other.Lock("b"), bg)
		late()
		if w.server.Exists("a") || w.count(foreign) != "1" {
			t.Error("a late take of two took one")
		}
		w.release(foreign)
		late()
		if !w.server.Exists("a") || !w.server.Exists("b") {
			t.Fatal("the late take was not executed")
		}
		h2 := w.acquireMulti(m, bg, redlatch.Wait(10*time.Second)) // meets its own, and pays at once
		w.releaseMulti(h2)
		late()
		time.Sleep(15 * time.Second) // half of a lease: it has been released, not forgotten
		w.wantNothing()
	})
}

func TestAJointTakeThatIsGivenUpLeavesNothing(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "multilock.take" {
				time.Sleep(50 * time.Millisecond)
				defer time.Sleep(50 * time.Millisecond)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
		for _, wait := range []time.Duration{time.Millisecond, 70 * time.Millisecond} {
			start := time.Now()
			_, err := m.Acquire(bg, redlatch.Wait(wait))
			w.wantErr(err, redlatch.ErrBusy)
			if time.Since(start) != wait {
				t.Errorf("after %v", time.Since(start))
			}
			plain := later(func() *redlatch.Hold { return w.acquire(c.Lock("a"), bg) }) // is inside only when that is settled
			time.Sleep(time.Second)
			w.release(<-plain)
			w.wantNothing()
		}
		w.releaseMulti(w.acquireMulti(m, bg))
		w.wantNothing()
	})
}

// A key of another type among them refuses the whole.
func TestAJointTakeOfAKeyOfAnotherTypeTakesNothing(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		if err := w.server.Set("b", "text"); err != nil {
			t.Fatal(err)
		}
		_, err := redlatch.MultiLock(c.Lock("a"), c.Lock("b"), c.Lock("c")).Acquire(bg)
		if err == nil || redlatch.IsRetryable(err) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if keys := w.server.Keys(); !slices.Equal(keys, []string{"b"}) {
			t.Errorf("left behind: %v", keys)
		}
	})
}

// One of two members that are taken together is forced away before the reply has
// come: the other must not be kept while that one is waited for.
func TestAMemberThatIsRevokedOnTheWayIsNotWaitedForWithTheOthersInHand(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "multilock.take" {
				defer time.Sleep(50 * time.Millisecond)
			}
			return next()
		}}
		c, other := w.tapped(redlatch.Config{}, d), w.client(redlatch.Config{})
		got := later(func() *redlatch.MultiHold {
			return w.acquireMulti(redlatch.MultiLock(c.Lock("a"), c.Lock("b")), bg)
		})
		time.Sleep(10 * time.Millisecond)
		if ok, err := other.Lock("a").ForceRelease(bg); !ok || err != nil {
			t.Fatal(ok, err)
		}
		thief := w.acquire(other.Lock("a"), bg)
		time.Sleep(time.Second)
		if w.server.Exists("b") {
			t.Error("b is held while a is waited for")
		}
		w.release(thief)
		w.releaseMulti(<-got)
		w.wantNothing()
	})
}

// Members that an owner's goroutines share are not taken past it.
func TestAMultiLockUnderWithOwnerIsItsOwners(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
		ctx := redlatch.WithOwner(bg)
		h := w.acquireMulti(m, ctx)
		again := w.acquireMulti(m, ctx, redlatch.Wait(time.Second))
		one := w.acquire(c.Lock("b"), ctx, redlatch.Wait(time.Second))
		if w.count(one) != "3" {
			t.Errorf("count %s", w.count(one))
		}
		w.release(one)
		w.releaseMulti(h)
		w.releaseMulti(again)
		w.wantNothing()
	})
}
