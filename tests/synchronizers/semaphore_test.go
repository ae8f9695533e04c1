package synchronizers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func wantSemaphore(w *locktest.World, when, want string) {
	w.Helper()
	if got, _ := w.Server.Get(locktest.SemaphoreName); got != want {
		w.Errorf("%s: Redis has %q permits, want %q", when, got, want)
	}
}

// scMessages returns a function that returns what has been published about the
// semaphore since it was called last.
func scMessages(w *locktest.World) func() []string {
	return w.Messages(wire.Prefix(wire.SemaphoreChannel, locktest.SemaphoreName))
}

func TestSemaphoreCountsAsRedissons(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := semaphore.New(c, locktest.SemaphoreName, 0)
		said := scMessages(w)
		want := func(when, permits string, messages ...string) {
			t.Helper()
			wantSemaphore(w, when, permits)
			if got := said(); !slices.Equal(got, messages) {
				t.Errorf("%s: published %q, want %q", when, got, messages)
			}
		}
		count := func(want int) {
			t.Helper()
			if n, err := s.Available(bg); err != nil || n != want {
				t.Errorf("Available = %d, %v; want %d", n, err, want)
			}
		}
		yes := func(want bool) func(bool, error) {
			return func(got bool, err error) {
				t.Helper()
				if err != nil || got != want {
					t.Errorf("got %v, %v; want %v", got, err, want)
				}
			}
		}

		count(0)
		w.OK(s.TryAcquire(bg, 0, 0))
		w.OK(s.Acquire(bg, 0))
		w.OK(s.Release(bg, 0))
		w.WantErr(s.TryAcquire(bg, 1, 0), redlatch.ErrUninitialized)
		yes(false)(s.ReleaseIfExists(bg, 3))
		want("without a semaphore", "")
		if n, err := s.Drain(bg); n != 0 || err != nil {
			t.Errorf("Drain of nothing = %d, %v", n, err)
		}
		yes(false)(s.Delete(bg))
		want("still without", "")

		w.OK(s.Release(bg, 2))
		want("a release makes it", "2", "2")
		yes(false)(s.TrySetPermits(bg, 9))
		want("there is one", "2")
		w.OK(s.Acquire(bg, 2))
		w.WantErr(s.TryAcquire(bg, 1, 0), redlatch.ErrBusy)
		want("taken", "0")
		yes(true)(s.ReleaseIfExists(bg, 3))
		want("released", "3", "3")
		w.OK(s.AddPermits(bg, 4))
		want("added", "7", "7")
		w.OK(s.AddPermits(bg, -15))
		want("taken away", "-8", "0") // Redisson's listeners throw on a negative number
		count(-8)
		w.WantErr(s.TryAcquire(bg, 1, 0), redlatch.ErrBusy)
		w.OK(s.Release(bg, 1))
		want("less than none", "-7", "0")
		if n, err := s.Drain(bg); n != -7 || err != nil {
			t.Errorf("Drain = %d, %v", n, err)
		}
		want("drained", "0")
		yes(true)(s.Delete(bg))
		want("deleted", "")
		yes(true)(s.TrySetPermitsFor(bg, 5, time.Minute))
		want("made", "5", "5")
		if n, err := s.Drain(bg); n != 5 || err != nil {
			t.Errorf("Drain = %d, %v", n, err)
		}
		w.OK(s.AddPermits(bg, 6))
		want("drained and added", "6", "6")
		if ttl := w.Server.TTL(locktest.SemaphoreName); ttl != time.Minute {
			t.Errorf("its TTL is %v", ttl)
		}
		time.Sleep(time.Minute)
		count(0)
		want("over", "")
		yes(true)(s.TrySetPermitsFor(bg, math.MaxInt32, time.Microsecond))
		if ttl := w.Server.TTL(locktest.SemaphoreName); ttl != time.Millisecond {
			t.Errorf("the TTL of a microsecond is %v", ttl)
		}
		// Nothing else stays but what a late request must find.
		time.Sleep(11 * time.Minute)
		w.WantNoKeys()
	})
}

func TestSemaphoreRefusesBadInput(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Semaphore(c, 5)
		var none context.Context
		second := func(_ any, err error) error { return err }
		for _, x := range []struct {
			err  error
			says string
		}{
			{s.Acquire(bg, -1), "-1 permits"},
			{s.TryAcquire(bg, -1, 0), "negative"},
			{s.Release(bg, -1), "negative"},
			{second(s.ReleaseIfExists(bg, -1)), "negative"},
			{second(s.TrySetPermits(bg, -1)), "negative"},
			{second(s.TrySetPermitsFor(bg, 1, -time.Second)), "TTL of -1s"},
			{s.Release(bg, math.MaxInt32+1), "2147483647"},
			{s.AddPermits(bg, math.MinInt), "permits"},
			{s.AddPermits(bg, -math.MaxInt32-1), "2147483647"},
			{s.Acquire(none, 1), "nil context"},
			{s.Release(none, 1), "nil context"},
			{second(s.Available(none)), "nil context"},
			{s.TryAcquire(bg, 1, -1), "negative"},
			{semaphore.New(c, "a{b", 0).Acquire(bg, 1), "without a '}'"},
			{semaphore.New(c, "", 0).Release(bg, 1), "empty"},
			{second(semaphore.New(c, "", 0).Drain(bg)), "empty"},
		} {
			if x.err == nil || !strings.Contains(x.err.Error(), x.says) {
				t.Errorf("got %v, want an error that says %q", x.err, x.says)
			}
		}
		wantSemaphore(w, "after bad input", "5")

		w.Server.HSet("lock", "field", "1")
		wrong := semaphore.New(c, "lock", 0)
		for _, err := range []error{
			wrong.Acquire(bg, 1), wrong.TryAcquire(bg, 1, 0), wrong.Release(bg, 1), wrong.AddPermits(bg, 1),
			second(wrong.Drain(bg)), second(wrong.Available(bg)), second(wrong.Delete(bg)), second(wrong.ReleaseIfExists(bg, 1)),
		} {
			var re *driver.RunError
			if !errors.As(err, &re) || re.Code != "WRONGTYPE" || redlatch.IsRetryable(err) {
				t.Errorf("of a lock: %v", err)
			}
		}
		if !w.Server.Exists("lock") {
			t.Error("the lock is gone")
		}
	})
}

func TestATextIsNotTakenForNoPermits(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		w.OK(w.Server.Set("x", "text"))
		expirable := semaphore.NewExpirable(c, "x", 0)
		for what, ask := range map[string]func(context.Context) (int, error){
			"semaphore": semaphore.New(c, "x", 0).Available, "latch": latch.New(c, "x").Count,
			"expirable": expirable.Available, "acquired": expirable.Acquired, "all": expirable.Permits,
		} {
			var wrong *driver.RunError
			if n, err := ask(bg); !errors.As(err, &wrong) || wrong.Code != "WRONGTYPE" || !strings.Contains(err.Error(), `"x" is "text"`) {
				t.Errorf("%s: %d, %v", what, n, err)
			}
		}
	})
}

func TestAWaiterGetsItsPermitsWhenThereAreEnough(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		s := w.Semaphore(c, 0)
		got := locktest.AcquiringPermits(bg, s, 2)
		w.OK(semaphore.New(other, locktest.SemaphoreName, 0).Release(bg, 1))
		if !locktest.NoneYet(got) {
			t.Fatal("one is enough for two")
		}
		w.OK(semaphore.New(other, locktest.SemaphoreName, 0).AddPermits(bg, 1))
		synctest.Wait()
		if len(got) == 0 {
			t.Fatal("nobody told it")
		}
		w.OK(<-got)
		wantSemaphore(w, "after it", "0")
	})
}

func TestAWaitForPermitsEndsInTime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Semaphore(c, 1)
		start := time.Now()
		err := s.TryAcquire(bg, 2, 3*time.Second)
		var busy *redlatch.BusyError
		if d := time.Since(start); d != 3*time.Second || !errors.As(err, &busy) || busy.Cause != nil || !redlatch.IsRetryable(err) {
			t.Errorf("after %v: %v", d, err)
		}
		if want := `redlatch: semaphore "ports" was not acquired`; err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
		w.WantErr(s.TryAcquire(bg, 2, 0), redlatch.ErrBusy)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		err = s.Acquire(ctx, 2)
		w.WantErr(err, redlatch.ErrBusy, context.DeadlineExceeded)
		err = s.Acquire(ctx, 1)
		w.WantErr(err, redlatch.ErrBusy, context.DeadlineExceeded)
		w.WantErr(s.AddPermits(ctx, 1), context.DeadlineExceeded)
		wantSemaphore(w, "after all", "1")
	})
}

// Nobody is told of what is done past us, nor hears what is lost on the way.
func TestALostMessageCostsAPoll(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		s := w.Semaphore(w.Client(redlatch.Config{}), 0)
		got := locktest.AcquiringPermits(bg, s, 3)
		time.Sleep(10 * time.Second)
		_ = w.Server.Set(locktest.SemaphoreName, "3")
		start := time.Now()
		w.OK(<-got)
		if d := time.Since(start); d > 2400*time.Millisecond {
			t.Errorf("it took %v", d)
		}
	})
}

// Redisson publishes what is left, what was added, or what may be had at most, and
// numbers below zero too: a message says that something has changed.
func TestTheNumberInAMessageIsNotBelieved(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Semaphore(c, 0)
		e := semaphore.NewExpirable(c, "permits", 0)
		set, err := e.TrySetPermits(bg, 0)
		w.OK(err)
		got := locktest.AcquiringPermits(bg, s, 2)
		permit := locktest.Later(func() error { _, err := e.Acquire(bg, 1); return err })
		for _, lie := range []string{"1000000", "-7", "0", "99999999999999999999", "two", ""} {
			time.Sleep(100 * time.Millisecond)
			w.Server.Publish(wire.Prefix(wire.SemaphoreChannel, locktest.SemaphoreName), lie)
			w.Server.Publish(wire.Prefix(wire.SemaphoreChannel, "permits"), lie)
			if !set || !locktest.NoneYet(got) || !locktest.NoneYet(permit) {
				t.Fatalf("%q: there was nothing", lie)
			}
		}
		for name, x := range map[string]<-chan error{locktest.SemaphoreName: got, "permits": permit} {
			_ = w.Server.Set(name, "2")
			start := time.Now()
			w.Server.Publish(wire.Prefix(wire.SemaphoreChannel, name), "-7")
			w.OK(<-x)
			if took := time.Since(start); took > 5*time.Millisecond {
				t.Errorf("%s: woken after %v", name, took)
			}
		}
	})
}

// Who wants many is not overtaken by those who want few, wherever the permits
// come from.
func TestPermitsGoToWhoAskedFirst(t *testing.T) {
	for _, remote := range []bool{false, true} {
		for _, noHandOff := range []bool{false, true} {
			t.Run(fmt.Sprintf("remote=%v/%v", remote, noHandOff), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c := w.Client(redlatch.Config{NoHandOff: noHandOff})
					s := w.Semaphore(c, 0)
					from := s
					if remote {
						from = semaphore.New(w.Client(redlatch.Config{}), locktest.SemaphoreName, 0)
					}
					var order []int
					var wg sync.WaitGroup
					wants := []int{1, 5, 1, 2, 7, 1, 1}
					for i, n := range wants {
						wg.Go(func() {
							if err := s.Acquire(bg, n); err != nil {
								t.Error(err)
							}
							order = append(order, i)
						})
						synctest.Wait()
					}
					for _, n := range wants {
						for range n {
							w.OK(from.Release(bg, 1))
							synctest.Wait()
						}
						time.Sleep(10 * time.Millisecond) // turns
					}
					wg.Wait()
					if !slices.IsSorted(order) {
						t.Errorf("order %v", order)
					}
					wantSemaphore(w, "in the end", "0")
				})
			})
		}
	}
}

func TestTryOvertakesNobody(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		s := w.Semaphore(c, 2)
		got := locktest.AcquiringPermits(bg, s, 3)
		w.WantErr(s.TryAcquire(bg, 1, 0), redlatch.ErrBusy)
		w.OK(semaphore.New(other, locktest.SemaphoreName, 0).TryAcquire(bg, 1, 0)) // it cannot know
		w.OK(semaphore.New(other, locktest.SemaphoreName, 0).Release(bg, 2))
		w.OK(<-got)
		wantSemaphore(w, "after it", "0")
	})
}

// As many tries succeed as there are permits, if they come at the same time.
func TestTriesAtTheSameTimeShareWhatIsThere(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.ClientOver(time.Millisecond, redlatch.Config{})
		s := w.Semaphore(c, 7)
		var got atomic.Int64
		var wg sync.WaitGroup
		try := func(n int) {
			if err := s.TryAcquire(bg, n, 0); err == nil {
				got.Add(int64(n))
			} else if !errors.Is(err, redlatch.ErrBusy) {
				t.Error(err)
			}
		}
		wg.Go(func() { try(100) }) // too many: not in the way of the others
		for range 20 {
			wg.Go(func() { try(1) })
		}
		wg.Wait()
		if got.Load() != 7 {
			t.Errorf("%d of 7 permits were had", got.Load())
		}
		wantSemaphore(w, "after them", "0")
	})
}

// A cancelled caller's permits are for the next one, whether its request was
// in flight or not.
func TestACancelledWaiterHoldsUpNobody(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		s := w.Semaphore(c, 2)
		ctx, cancel := context.WithCancel(bg)
		many := locktest.AcquiringPermits(ctx, s, 3)
		few := locktest.AcquiringPermits(bg, s, 2)
		if !locktest.NoneYet(few) {
			t.Fatal("overtaken")
		}
		cancel()
		w.WantErr(<-many, redlatch.ErrBusy, context.Canceled)
		synctest.Wait()
		if len(few) == 0 {
			t.Fatal("the next one was not asked for at once")
		}
		w.OK(<-few)
		w.OK(semaphore.New(other, locktest.SemaphoreName, 0).Release(bg, 2))
		wantSemaphore(w, "in the end", "2")
	})
}

func TestAnAbandonedRequestsPermitsGoOn(t *testing.T) {
	for _, next := range []bool{false, true} {
		t.Run(fmt.Sprintf("next=%v", next), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				slow := false
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					if slow {
						time.Sleep(50 * time.Millisecond)
					}
					return r, err
				}})
				s := w.Semaphore(c, 2)
				slow = true
				ctx, cancel := context.WithCancel(bg)
				got := locktest.AcquiringPermits(ctx, s, 2)
				start := time.Now()
				cancel()
				w.WantErr(<-got, context.Canceled)
				if time.Since(start) > 0 {
					t.Error("the caller waited for the server")
				}
				wantSemaphore(w, "meanwhile", "0")
				if next {
					w.OK(s.Acquire(bg, 2))
					if d := time.Since(start); d != 50*time.Millisecond {
						t.Errorf("the next one waited %v", d)
					}
					w.OK(s.Release(bg, 2))
				}
				time.Sleep(200 * time.Millisecond)
				wantSemaphore(w, "in the end", "2")
			})
		})
	}
}

func TestAGrantThatMeetsACancellationIsNotLost(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		s := w.Semaphore(w.Client(redlatch.Config{}), 1)
		for range 20 {
			w.OK(s.TryAcquire(bg, 1, time.Minute))
			ctx, cancel := context.WithCancel(bg)
			got := locktest.AcquiringPermits(ctx, s, 1)
			cancel()
			w.OK(s.Release(bg, 1)) // most often before the waiter runs
			w.WantErr(<-got, redlatch.ErrBusy, context.Canceled)
			time.Sleep(10 * time.Millisecond)
			wantSemaphore(w, "after both", "1")
		}
	})
}

func TestCloseEndsWaitersAndKeepsWhatIsReleased(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{}
		c := w.Tapped(redlatch.Config{}, d)
		s := w.Semaphore(c, 3)
		w.OK(s.Acquire(bg, 3))
		got := locktest.AcquiringPermits(bg, s, 5)
		w.OK(s.Release(bg, 1))
		synctest.Wait()
		d.Hook = func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(50 * time.Millisecond)
			return next()
		}
		w.OK(s.Release(bg, 1))
		w.OK(c.Close())
		w.WantErr(<-got, redlatch.ErrClosed)
		wantSemaphore(w, "after Close", "2")
		w.WantErr(s.Acquire(bg, 1), redlatch.ErrClosed)
		w.WantErr(s.TryAcquire(bg, 1, 0), redlatch.ErrClosed)
		w.WantErr(s.AddPermits(bg, 1), redlatch.ErrClosed)
		_ = s.Release(bg, 1) // too late; it may be done, and must end
		time.Sleep(100 * time.Millisecond)
		if n := d.Subs.Load(); n != 0 {
			t.Errorf("%d subscriptions", n)
		}
	})
}
