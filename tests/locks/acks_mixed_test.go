package locks

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Members of clients with policies of their own: what one requires fails the
// whole, at once and by name, in whatever place it is.
func TestAMultiLockFailsWithTheMemberThatIsNotAcknowledged(t *testing.T) {
	for strict := range 3 {
		for _, once := range []bool{false, true} {
			locktest.InFakeTime(t, func(w *locktest.World) {
				configs := []redlatch.Config{{Acks: redlatch.AckOff}, {Acks: redlatch.AckBestEffort}, {Acks: redlatch.AckOff}}
				configs[strict] = redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 2}
				var locks []*redlatch.Lock
				var ds []*locktest.Acker
				for i, cfg := range configs {
					cfg.ServerName = fmt.Sprint(i)
					c, d := w.Acking(cfg, 2, 1)
					locks, ds = append(locks, c.Lock(fmt.Sprint("lock-", i))), append(ds, d)
				}
				m := redlatch.MultiLock(locks...)
				start := time.Now()
				_, err := m.TryAcquire(bg, waitOf(once))
				w.WantAck(err, fmt.Sprint("lock-", strict), 1, 2)
				if took, tries := time.Since(start), len(ds[strict].Takes()); took > 2*time.Second || tries != 1 {
					t.Errorf("took %v and %d tries", took, tries)
				}
				locktest.Settled()
				w.WantLocksGone()
			})
		}
	}
}

// A red lock needs a majority of members that are acknowledged, and leaves nothing
// at those that are not.
func TestAMemberThatIsNotAcknowledgedHasNoVote(t *testing.T) {
	for mute := range 4 {
		for _, once := range []bool{false, true} {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var locks []*redlatch.Lock
				for i := range 3 {
					acked := 1
					if i < mute {
						acked = 0
					}
					c, _ := w.Acking(redlatch.Config{ServerName: fmt.Sprint(i), Acks: redlatch.AckRequired, AckReplicas: 1}, 1, acked)
					locks = append(locks, c.Lock(fmt.Sprint("lock-", i)))
				}
				m := redlatch.RedLock(locks...)
				h, err := m.TryAcquire(bg, waitOf(once))
				if mute > 1 {
					w.WantAck(err, "", 0, 1)
				} else {
					w.OK(err)
					time.Sleep(2 * time.Second)
					if n := len(h.Members()); n != 3-mute {
						t.Errorf("%d members, %d are mute", n, mute)
					}
					if w.Server.Exists("lock-0") != (mute == 0) {
						t.Error("what is not acknowledged has stayed")
					}
					time.Sleep(time.Minute)
					w.OK(h.Release(bg))
				}
				locktest.Settled()
				w.WantLocksGone()
			})
		}
	}
}

// A release gives a fair lock to whoever is next. Who needs replicas takes it
// himself: they may not know of that release.
func TestAFairLockIsNotGivenToWhoNeedsReplicas(t *testing.T) {
	for acked := range 2 {
		locktest.InFakeTime(t, func(w *locktest.World) {
			other := w.Client(redlatch.Config{}).FairLock("name")
			c, d := w.Acking(redlatch.Config{Acks: redlatch.AckAny}, 1, 1)
			h := w.Acquire(bg, other)
			second := locktest.Acquiring(c.FairLock("name"))
			time.Sleep(time.Second)
			third := locktest.Acquiring(other)
			time.Sleep(3 * time.Second)
			d.Takes()
			d.Follow(1, acked)
			w.Release(h)
			released := time.Now()
			o := <-second
			if acked == 1 {
				w.OK(o.Err)
				if n := len(d.Takes()); n != 1 {
					t.Errorf("waited for replicas %d times", n)
				}
				w.Release(o.Hold)
			} else {
				w.WantAck(o.Err, "name", 0, 1)
			}
			o = <-third
			w.OK(o.Err)
			if took := time.Since(released); took > 1100*time.Millisecond {
				t.Errorf("the third had to wait for %v", took)
			}
			w.Release(o.Hold)
			locktest.Settled()
			w.WantLocksGone()
		})
	}
}

// Readers of one process wait for replicas together, once, and fail together.
func TestReadersAreAcknowledgedTogether(t *testing.T) {
	for acked := range 2 {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, acked)
			l := c.ReadWriteLock("name").Read()
			var readers []<-chan locktest.Outcome
			for range 5 {
				readers = append(readers, locktest.Acquiring(l))
			}
			synctest.Wait()
			for _, r := range readers {
				o := <-r
				if acked == 0 {
					w.WantAck(o.Err, "name", 0, 1)
					continue
				}
				w.OK(o.Err)
				defer w.Release(o.Hold)
			}
			if got := d.Takes(); len(got) != 1 {
				t.Errorf("waited for replicas after %v", got)
			}
			locktest.Settled()
			if acked == 0 {
				w.WantLocksGone()
				return
			}
			// Who needs a longer lease than the others have needs replicas for it.
			d.Follow(1, 0)
			_, err := locktest.With(l, redlatch.Lease(time.Hour)).Acquire(bg)
			w.WantAck(err, "name", 0, 1)
			w.Release(w.Acquire(bg, l))
			d.Follow(1, 1)
			w.Release(w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Hour))))
		})
	}
}

// Replicas that are silent keep waiting callers waiting, and nothing else: holds
// are renewed and released in time.
func TestAThousandCallersThatWaitForReplicasAreInNobodysWay(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckBestEffort}, 1, 1)
		holds := make([]*redlatch.Hold, 20)
		for i := range holds {
			holds[i] = w.Acquire(bg, c.Lock(fmt.Sprint("held-", i)))
		}
		time.Sleep(10*time.Second - time.Millisecond) // they are about to be renewed
		d.Follow(1, 0)
		callers := make([]<-chan locktest.Outcome, 1000)
		for i := range callers {
			callers[i] = locktest.Acquiring(c.Lock(fmt.Sprint("name-", i)))
		}
		time.Sleep(500 * time.Millisecond)
		start := time.Now()
		for _, h := range holds {
			if left := time.Until(h.Expires()); left < 28*time.Second {
				t.Errorf("trusted for %v", left)
			}
			w.Release(h)
		}
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("releases took %v", took)
		}
		for _, caller := range callers {
			o := <-caller
			w.OK(o.Err)
			w.Release(o.Hold)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("together they took %v", took)
		}
		locktest.Settled()
		w.WantLocksGone()
	})
}

// Beside what an acquisition failed with it says what to do about it.
func TestWhatAnAckErrorSays(t *testing.T) {
	err := error(&redlatch.AckError{Name: "orders", Want: 2, Got: 1, Timeout: time.Second})
	if got, want := err.Error(), `redlatch: "orders" was acknowledged by 1 of 2 replicas within 1s (Config.Acks)`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	cause := errors.New("why")
	wrapped := fmt.Errorf("outer: %w", &redlatch.AckError{Name: "orders", Err: cause})
	for _, target := range []error{redlatch.ErrNotAcknowledged, cause} {
		if !errors.Is(wrapped, target) {
			t.Errorf("%v is not %v", wrapped, target)
		}
	}
	others := []error{redlatch.ErrBusy, redlatch.ErrLost, redlatch.ErrUnavailable, redlatch.ErrClosed, redlatch.ErrNotHeld}
	if slices.ContainsFunc(others, func(other error) bool { return errors.Is(err, other) }) {
		t.Errorf("%v is something else as well", err)
	}
	if !redlatch.IsRetryable(err) || redlatch.IsRetryable(wrapped) {
		t.Error("replicas that are silent may answer the next time; a server without WAIT never will")
	}
}

// Who gets nothing has nothing that replicas could lack: no event tells of it.
func TestABusyLockIsNoMatterOfReplicas(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{
			Acks: redlatch.AckBestEffort,
		}, 1, 1, observe.Hooks{NotAcknowledged: func(e observe.NotAcknowledgedEvent) { t.Errorf("%+v", e) }})
		h := w.Acquire(bg, w.Client(redlatch.Config{}).Lock("name"))
		d.Follow(1, 0)
		_, err := c.Lock("name").TryAcquire(bg, 0)
		w.WantErr(err, redlatch.ErrBusy)
		_, err = c.Lock("name").TryAcquire(bg, 5*time.Second)
		w.WantErr(err, redlatch.ErrBusy)
		w.Release(h)
	})
}
