package locks

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
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

// another returns a world with a server of its own in the same bubble.
func another(w *locktest.World) *locktest.World {
	other := locktest.NewWorld(w.T)
	other.Timeout = w.Timeout
	return other
}

// takes records the order of a client's takes and releases, "+a" and "-a".
type takes struct {
	mu  sync.Mutex
	log []string
	tap locktest.Tap
}

func (r *takes) client(w *locktest.World, cfg redlatch.Config) *redlatch.Client {
	r.tap.Keyed = func(s string, keys, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		reply, err := next()
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case s == "multilock.take" && reply.Kind == driver.ReplyInt:
			r.log = append(r.log, fmt.Sprint("+", keys))
		case s == "multilock.take":
			r.log = append(r.log, fmt.Sprint("?", keys))
		case s == "lock.take" && reply.Kind == driver.ReplyInt:
			r.log = append(r.log, "+"+keys[0])
		case s == "lock.take":
			r.log = append(r.log, "?"+keys[0])
		case s == "lock.release":
			r.log = append(r.log, "-"+keys[0])
		}
		return reply, err
	}
	return w.Tapped(cfg, &r.tap)
}

func (r *takes) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

func TestMembersAreAcquiredByNameAndReleasedInReverse(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		r := &takes{}
		c := r.client(w, redlatch.Config{})
		h := w.Acquire(bg, redlatch.MultiLock(c.Lock("c", redlatch.Fenced()), c.Lock("a", redlatch.Fenced()), redisson.SpinLock(c, "b", nil, redlatch.Fenced()), c.StripedLock("d", 1, redlatch.Fenced()).For("x")))
		if n := len(h.Members()); n != 4 || h.Members()[0].Token() != 1 {
			t.Fatalf("%d holds, tokens %d", n, h.Members()[0].Token())
		}
		w.Release(h)
		want := []string{"+a", "+b", "+c", "+d:0", "-d:0", "-c", "-b", "-a"}
		if got := r.all(); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		w.WantErr(h.Err(), redlatch.ErrNotHeld)
		w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
		w.WantErr(context.Cause(h.Context()), redlatch.ErrNotHeld)
		if !h.Expires().IsZero() {
			t.Errorf("a released hold is trusted until %v", h.Expires())
		}
		for _, name := range []string{"a", "b", "c", "d:0"} {
			w.Server.Del("redisson_lock_token:{" + name + "}")
		}
		w.WantNothing()
	})
}

// Of one name the clients' names decide, whatever the arguments' order.
func TestMembersOfOneNameAreAcquiredByTheirClientsNames(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		w2 := another(w)
		east, west := w.Client(redlatch.Config{ServerName: "east"}), w2.Client(redlatch.Config{ServerName: "west"})
		for _, m := range []*redlatch.Lock{
			redlatch.MultiLock(east.Lock("a"), west.Lock("a")),
			redlatch.MultiLock(west.Lock("a"), east.Lock("a")),
		} {
			h := w.Acquire(bg, m)
			if owner := h.Members()[0].ID(); w.Server.HGet("a", owner) != "1" {
				t.Errorf("the first to be acquired was not east's: %s", owner)
			}
			w.Release(h)
		}
		w.WantNothing()
		w2.WantNothing()
	})
}

func TestMembersThatCannotBeAreRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for name, m := range map[string]*redlatch.Lock{
			"none":          redlatch.MultiLock(),
			"none, red":     redlatch.RedLock(),
			"nil":           redlatch.MultiLock(c.Lock("a"), nil),
			"nil, red":      redlatch.RedLock(nil),
			"twice":         redlatch.MultiLock(c.Lock("a"), c.Lock("b"), c.Lock("a")),
			"twice, kinds":  redlatch.MultiLock(c.Lock("a"), c.Lock("a", redlatch.Fenced())),
			"a bad name":    redlatch.MultiLock(c.Lock("a"), c.Lock("a{")),
			"one client":    redlatch.RedLock(c.Lock("a"), c.Lock("b")),
			"no stripes":    redlatch.MultiLock(c.StripedLock("s", 0).For("x")),
			"bad name, red": redlatch.RedLock(c.Lock("")),
		} {
			_, err := m.Acquire(bg)
			if err == nil {
				t.Errorf("%s: acquired", name)
			}
			if _, err2 := m.TryAcquire(bg, 0); err == nil || err2 == nil || err.Error() != err2.Error() {
				t.Errorf("%s: Acquire says %v, Try says %v", name, err, err2)
			}
			if _, err := admin.LockInfo(bg, m); err == nil {
				t.Errorf("%s: Info works", name)
			}
			if _, err := admin.ForceRelease(bg, m); err == nil {
				t.Errorf("%s: ForceRelease works", name)
			}
			if err := m.Do(bg, func(context.Context) error { return nil }); err == nil {
				t.Errorf("%s: Do works", name)
			}
		}
		m := redlatch.MultiLock(c.Lock("a"))
		if _, err := m.Acquire(nil); err == nil { //nolint:staticcheck // on purpose
			t.Error("a nil context")
		}
		if _, err := m.TryAcquire(bg, -1); err == nil {
			t.Error("a negative wait")
		}
		if _, err := redlatch.MultiLock(c.Lock("a", redlatch.Lease(1))).Acquire(bg); err == nil {
			t.Error("a lease of a nanosecond")
		}
		w.WantNothing()
	})
}

// Two clients of one server would wait for each other for ever.
func TestALockThatTwoClientsHaveOnOneServerIsFoundOut(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		for name, m := range map[string]*redlatch.Lock{
			"multi": redlatch.MultiLock(a.Lock("a"), b.Lock("a")),
			"red":   redlatch.RedLock(a.Lock("a"), b.Lock("a"), w.Client(redlatch.Config{}).Lock("b")),
		} {
			_, err := m.TryAcquire(bg, 0)
			if name == "multi" {
				w.WantErr(err, redlatch.ErrReentry)
				_, err = m.Acquire(bg)
				w.WantErr(err, redlatch.ErrReentry)
			} else if err == nil {
				h := w.Acquire(bg, m) // a majority without it
				w.Release(h)
			}
			time.Sleep(5 * time.Minute)
			w.WantNothing()
		}
		_, err := redlatch.RedLock(a.Lock("a"), b.Lock("a")).Acquire(bg)
		w.WantErr(err, redlatch.ErrReentry)
		time.Sleep(time.Minute)
		w.WantNothing()
	})
}

// redisson #1160: two multi locks with members in another order.
func TestMultiLocksInOppositeOrderDoNotDeadlock(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) { locktest.InFakeTime(t, func(w *locktest.World) { oppositeOrder(w, delay) }) })
	}
}

// oppositeOrder has two processes take two locks, each in its own order, from
// servers that are so far away.
func oppositeOrder(w *locktest.World, delay time.Duration) {
	far := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		time.Sleep(delay)
		defer time.Sleep(delay)
		return next()
	}
	t := w.T
	w1, w2 := another(w), another(w)
	// The names are equal and the clients have none, so nothing but the
	// arguments' order is left to decide: the opposite one.
	var wg sync.WaitGroup
	start := time.Now()
	var inside atomic.Int64
	for p := range 2 {
		a, b := w1.Tapped(redlatch.Config{}, &locktest.Tap{Hook: far}), w2.Tapped(redlatch.Config{}, &locktest.Tap{Hook: far})
		members := []*redlatch.Lock{a.Lock("x"), b.Lock("x")}
		if p == 1 {
			slices.Reverse(members)
		}
		wg.Go(func() {
			for range 50 {
				err := redlatch.MultiLock(members...).Do(bg, func(context.Context) error {
					if inside.Add(1) != 1 {
						t.Error("two holders")
					}
					time.Sleep(10 * time.Millisecond)
					inside.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	d := time.Since(start)
	t.Logf("100 sections of 10 ms took %v", d)
	if d > 100*(500*time.Millisecond+10*delay) {
		t.Error("hardly any progress")
	}
	time.Sleep(5 * time.Minute)
	w1.WantNothing()
	w2.WantNothing()
}

// What is held while another member is waited for is given back after half a
// second, and then that member is waited for with nothing in hand.
func TestAMultiLockDoesNotSitOnMembersWhileItWaits(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		r := &takes{}
		c, other := r.client(w, redlatch.Config{}), w.Client(redlatch.Config{})
		busy := w.Acquire(bg, other.Lock("b"))
		start := time.Now()
		got := locktest.Later(func() *redlatch.Hold {
			return w.Acquire(bg, redlatch.MultiLock(c.Lock("a", redlatch.Fenced()), c.Lock("b")))
		})
		time.Sleep(400 * time.Millisecond)
		if !w.Server.Exists("a") {
			t.Error("a was not taken first")
		}
		time.Sleep(200 * time.Millisecond)
		if w.Server.Exists("a") {
			t.Error("a is still held after 600 ms of waiting for b")
		}
		if _, err := other.Lock("a").TryAcquire(bg, 0); err != nil {
			t.Errorf("a: %v", err)
		} else if _, err := admin.ForceRelease(bg, other.Lock("a")); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Second)
		before := len(r.all())
		w.Release(busy)
		h := <-got
		if d := time.Since(start); d > 21*time.Second {
			t.Errorf("it took %v", d)
		}
		if last := r.all()[before:]; !slices.Equal(last, []string{"+b", "+a"}) {
			t.Errorf("after b was released: %v, want b first", last)
		}
		w.Release(h)
		w.Server.Del("redisson_lock_token:{a}")
		w.WantNothing()
	})
}

func TestAMultiLockHasOneDeadlineForAllMembers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		var others []*redlatch.Hold
		for _, name := range []string{"b", "c"} {
			others = append(others, w.Acquire(bg, other.Lock(name)))
		}
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"), c.Lock("c"))
		for _, wait := range []time.Duration{0, 200 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second} {
			start := time.Now()
			_, err := m.TryAcquire(bg, wait)
			var busy *redlatch.BusyError
			if d := time.Since(start); !errors.As(err, &busy) || d < wait || d > wait+50*time.Millisecond {
				t.Errorf("Wait(%v): %v after %v", wait, err, d)
			}
			if wait == 0 && (busy.Name != "b" || busy.Owner != others[0].ID()) {
				t.Errorf("busy with %+v", busy)
			}
			ctx, cancel := context.WithTimeout(bg, wait+time.Second)
			start = time.Now()
			_, err = m.Acquire(ctx)
			w.WantErr(err, redlatch.ErrBusy, context.DeadlineExceeded)
			if d := time.Since(start); d != wait+time.Second {
				t.Errorf("a context of %v: %v", wait+time.Second, d)
			}
			cancel()
		}
		synctest.Wait()
		if w.Server.Exists("a") {
			t.Error("a is left behind")
		}
		for _, h := range others {
			w.Release(h)
		}
		w.WantNothing()
	})
}

func TestTryOfAMultiLockTakesAllOrNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		m := redlatch.MultiLock(c.Lock("a"), c.Lock("b"))
		busy := w.Acquire(bg, other.Lock("b"))
		start := time.Now()
		_, err := m.TryAcquire(bg, 0)
		w.WantErr(err, redlatch.ErrBusy)
		if !redlatch.IsRetryable(err) || time.Since(start) > 10*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if w.Server.Exists("a") {
			t.Error("a is left behind")
		}
		w.Release(busy)
		h, err := m.TryAcquire(bg, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := admin.LockInfo(bg, m)
		if err != nil || info.Name != "a,b" || info.Kind != redlatch.KindMultiLock || !info.Held() || info.Holders != nil {
			t.Errorf("Info: %+v, %v", info, err)
		}
		if all := info.Members; len(all) != 2 || all[0].Name != "a" || all[1].Holders[0].Owner != h.Members()[1].ID() {
			t.Errorf("Info of the members: %+v", all)
		}
		if err := w.Server.Set("odd", "not a lock"); err != nil {
			t.Fatal(err)
		}
		info, err = admin.LockInfo(bg, redlatch.MultiLock(other.Lock("odd"), c.Lock("a")))
		if err == nil || !strings.Contains(err.Error(), "odd") {
			t.Errorf("the error is %v", err)
		}
		if all := info.Members; len(all) != 2 || !all[0].Held() || !reflect.DeepEqual(all[1], admin.Info{Name: "odd"}) {
			t.Errorf("Info with a member that is no lock: %+v", all)
		}
		w.Server.Del("odd")
		w.Release(h)
		w.WantNothing()
	})
}

// redisson #4050: members that stay locked after an acquisition that failed.
func TestNothingIsLeftOfAMultiLockThatIsGivenUp(t *testing.T) {
	for _, when := range []time.Duration{1, 5 * time.Millisecond, 12 * time.Millisecond, 25 * time.Millisecond, 40 * time.Millisecond} {
		t.Run(when.String(), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					time.Sleep(5 * time.Millisecond)
					reply, err := next()
					time.Sleep(5 * time.Millisecond)
					return reply, err
				}}
				c, other := w.Tapped(redlatch.Config{}, d), w.Client(redlatch.Config{})
				busy := w.Acquire(bg, other.Lock("d"))
				ctx, cancel := context.WithTimeout(bg, when)
				defer cancel()
				_, err := redlatch.MultiLock(c.Lock("a"), c.Lock("b"), c.Lock("c"), c.Lock("d")).Acquire(ctx)
				w.WantErr(err, redlatch.ErrBusy, context.DeadlineExceeded)
				time.Sleep(time.Second)
				if keys := w.Keys(); !slices.Equal(keys, []string{"d"}) {
					t.Errorf("left behind: %v", keys)
				}
				w.Release(busy)
			})
		})
	}
}

func TestALostReplyLeavesNothingOfAMultiLock(t *testing.T) {
	for lost := range 12 {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var n atomic.Int64
				d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					reply, err := next()
					if k := int(n.Add(1)); k > lost && k <= lost+2 {
						return driver.Reply{}, locktest.ErrReplyLost
					}
					return reply, err
				}}
				c, other := w.Tapped(redlatch.Config{}, d), w.Client(redlatch.Config{})
				m := redlatch.MultiLock(c.Lock("a"), c.Lock("b", redlatch.Fenced()), c.Lock("c"))
				busy := w.Acquire(bg, other.Lock("c"))
				if _, err := m.TryAcquire(bg, time.Second); !errors.Is(err, redlatch.ErrBusy) && !errors.Is(err, redlatch.ErrUnavailable) {
					t.Error(err)
				}
				w.Release(busy)
				h := w.Acquire(bg, m)
				for _, h := range h.Members() {
					if w.Count(h) != "1" {
						t.Errorf("%s has count %q", h.Name(), w.Count(h))
					}
				}
				w.Release(h)
				time.Sleep(15 * time.Second)
				w.Server.Del("redisson_lock_token:{b}")
				w.WantNothing()
			})
		})
	}
}

func TestTheMemberThatDoesNotAnswerDelaysTheReleaseOfNoOther(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		hung := another(w)
		a, b := w.Client(redlatch.Config{}), hung.Client(redlatch.Config{})
		h := w.Acquire(bg, redlatch.MultiLock(a.Lock("a"), b.Lock("b")))
		hung.Server.SetError("LOADING hung")
		done := locktest.Later(func() error { return h.Release(bg) })
		time.Sleep(pace + time.Millisecond)
		if w.Server.Exists("a") {
			t.Error("a is still held while b does not answer")
		}
		w.WantErr(<-done, redlatch.ErrUnavailable)
		hung.Server.SetError("")
		time.Sleep(10 * time.Minute)
		hung.WantNothing()
	})
}

const pace = 100 * time.Millisecond

func TestAMemberThatIsDownFailsAfterTheOutageTimeout(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		down := another(w)
		a, b := w.Client(redlatch.Config{}), down.Client(redlatch.Config{})
		down.Server.SetError("LOADING down")
		for _, m := range []*redlatch.Lock{
			redlatch.MultiLock(a.Lock("a"), b.Lock("b")),
			redlatch.MultiLock(b.Lock("a"), b.Lock("b")), // together
		} {
			start := time.Now()
			_, err := m.Acquire(bg)
			w.WantErr(err, redlatch.ErrUnavailable)
			if d := time.Since(start); d < 10*time.Second || d > 12*time.Second {
				t.Errorf("after %v", d)
			}
		}
		w.WantNothing()
		down.Server.SetError("")
		time.Sleep(10 * time.Minute)
		down.WantNothing()
	})
}

// The first member's lease is over before the last one is there, each time.
func TestALeaseTooShortForItsMembersIsGivenUp(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(15 * time.Millisecond)
			defer time.Sleep(15 * time.Millisecond)
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		m := redlatch.MultiLock(c.Lock("a", redlatch.Fenced()), c.Lock("b", redlatch.Fenced()), c.Lock("c", redlatch.Fenced()), c.Lock("d", redlatch.Fenced()))
		start := time.Now()
		_, err := locktest.With(m, redlatch.Lease(100*time.Millisecond)).Acquire(bg)
		w.WantErr(err, redlatch.ErrUnavailable)
		if d := time.Since(start); d < 10*time.Second || d > 12*time.Second {
			t.Errorf("after %v", d)
		}
		_, err = locktest.With(m, redlatch.Lease(100*time.Millisecond)).TryAcquire(bg, time.Second)
		w.WantErr(err, redlatch.ErrBusy)
		w.Release(w.Acquire(bg, locktest.With(m, redlatch.Lease(time.Second))))
		time.Sleep(5 * time.Minute)
		for _, key := range w.Keys() {
			if len(key) == 1 {
				t.Errorf("left behind: %s", key)
			}
		}
	})
}

// An errgroup ends its context with the error of the goroutine that has failed
// first, which may be about a member.
func TestACauseIsNotTakenForAMember(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		other, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		hb := w.Acquire(bg, other.FairLock("b"))
		ctx, cancel := context.WithCancelCause(bg)
		done := locktest.Later(func() error {
			_, err := redlatch.MultiLock(c.FairLock("a"), c.FairLock("b")).Acquire(ctx)
			return err
		})
		time.Sleep(100 * time.Millisecond) // it has a, and waits for b
		_, busy := other.FairLock("a").TryAcquire(bg, 0)
		cancel(busy)
		err := <-done
		if errors.Is(err, redlatch.ErrReentry) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		w.Release(hb)
	})
}

// The members that were held when a Backoff panicked were nobody's, and renewed
// for as long as the process lived.
func TestABackoffThatPanicsLeavesNoMemberHeld(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		busy := w.Acquire(bg, other.Lock("b"))
		bad := redisson.SpinLock(c, "b", func(int) time.Duration { panic("no idea") })
		for _, first := range []*redlatch.Lock{c.Lock("a"), c.Lock("a", redlatch.Fenced()), c.ReadWriteLock("a").Read()} {
			func() {
				defer func() {
					if r := recover(); r != "no idea" {
						t.Errorf("recovered %v", r)
					}
				}()
				_, err := redlatch.MultiLock(first, bad).Acquire(bg)
				t.Errorf("Acquire returned %v", err)
			}()
			synctest.Wait()
			if w.Server.Exists("a") || c.Stats().Holds != 0 {
				t.Fatalf("a is held: %+v", c.Stats())
			}
		}
		w.Release(busy)
	})
}

// A MultiLock is a Lock: what is asked of it as of a single one has an answer, or
// a refusal that says what to do.
func TestAMultiLockIsALock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		both := redlatch.MultiLock(c.Lock("b"), c.Lock("a"))
		h := w.Acquire(bg, redlatch.MultiLock(c.Lock("c"), both, other.Lock("d")))
		if h.Name() != "a,b,c,d" || len(h.Members()) != 4 || h.ID() != "" || h.Token() != 0 {
			t.Errorf("%q of %d, %q, %d", h.Name(), len(h.Members()), h.ID(), h.Token())
		}
		for i, m := range h.Members() {
			if alone := m.Members(); len(alone) != 1 || alone[0] != m || m.ID() == "" || m.Name() != string(rune('a'+i)) {
				t.Errorf("%s, %s: %v", m.Name(), m.ID(), alone)
			}
		}
		inner := w.Acquire(h.Context(), both)
		if redlatch.HoldFrom(inner.Context()) != inner || redlatch.HoldFrom(h.With(bg)) != h {
			t.Error("the hold is not found")
		}
		w.Release(inner)
		red := redlatch.RedLock(c.Lock("r"), other.Lock("r2"))
		_, detached := h.Detach()
		_, ofRed := redlatch.MultiLock(c.Lock("x"), red).Acquire(bg)
		_, ofMulti := redlatch.RedLock(both, other.Lock("r2")).TryAcquire(bg, 0)
		_, ofBad := redlatch.MultiLock(c.Lock("x"), redlatch.MultiLock()).Acquire(bg)
		for word, err := range map[string]error{
			"call ReleaseID and": both.ReleaseID(bg, h.Members()[0].ID()), "ExtendID of each": both.ExtendID(bg, h.Members()[0].ID(), time.Minute),
			"one by one": detached, "is a RedLock": ofRed, "is several locks": ofMulti, "at least one": ofBad,
		} {
			if !errors.Is(err, redlatch.ErrInvalid) || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v", word, err)
			}
		}
		if held, err := admin.ForceRelease(bg, both); !held || err != nil {
			t.Errorf("ForceRelease: %t, %v", held, err)
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.WantNothing()
	})
}
