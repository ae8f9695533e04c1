package redlatch_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// Members of clients with policies of their own: what one requires fails the whole,
// at once and by name, in whatever place it is.
func TestAMultiLockFailsWithTheMemberThatIsNotAcknowledged(t *testing.T) {
	for strict := range 3 {
		for _, once := range []bool{false, true} {
			inFakeTime(t, func(w *world) {
				policies := []redlatch.Acks{redlatch.AcksOff, redlatch.AcksBestEffort, redlatch.AcksOff}
				policies[strict] = 2
				var locks []*redlatch.Lock
				var ds []*acker
				for i, policy := range policies {
					c, d := w.acking(redlatch.Config{Name: fmt.Sprint(i), Acks: policy}, 2, 1)
					locks, ds = append(locks, c.Lock(fmt.Sprint("lock-", i))), append(ds, d)
				}
				m := redlatch.MultiLock(locks...)
				acquire := m.Acquire
				if once {
					acquire = m.Try
				}
				start := time.Now()
				_, err := acquire(bg)
				w.wantAck(err, fmt.Sprint("lock-", strict), 1, 2)
				if took, tries := time.Since(start), len(ds[strict].takes()); took > 2*time.Second || tries != 1 {
					t.Errorf("took %v and %d tries", took, tries)
				}
				settled()
				w.wantLocksGone()
			})
		}
	}
}

// A red lock needs a majority of members that are acknowledged, and leaves nothing
// at those that are not.
func TestAMemberThatIsNotAcknowledgedHasNoVote(t *testing.T) {
	for mute := range 4 {
		for _, once := range []bool{false, true} {
			inFakeTime(t, func(w *world) {
				var locks []*redlatch.Lock
				for i := range 3 {
					acked := 1
					if i < mute {
						acked = 0
					}
					c, _ := w.acking(redlatch.Config{Name: fmt.Sprint(i), Acks: 1}, 1, acked)
					locks = append(locks, c.Lock(fmt.Sprint("lock-", i)))
				}
				m := redlatch.RedLock(locks...)
				acquire := m.Acquire
				if once {
					acquire = m.Try
				}
				h, err := acquire(bg)
				if mute > 1 {
					w.wantAck(err, "", 0, 1)
				} else {
					w.no(err)
					time.Sleep(2 * time.Second)
					if n := len(h.Holds()); n != 3-mute {
						t.Errorf("%d members, %d are mute", n, mute)
					}
					if w.server.Exists("lock-0") != (mute == 0) {
						t.Error("what is not acknowledged has stayed")
					}
					time.Sleep(time.Minute)
					w.no(h.Release(bg))
				}
				settled()
				w.wantLocksGone()
			})
		}
	}
}

// A release gives a fair lock to whoever is next. Who needs replicas takes it
// himself: they may not know of that release.
func TestAFairLockIsNotGivenToWhoNeedsReplicas(t *testing.T) {
	for acked := range 2 {
		inFakeTime(t, func(w *world) {
			other := w.client(redlatch.Config{}).FairLock("name")
			c, d := w.acking(redlatch.Config{Acks: redlatch.AcksAny}, 1, 1)
			h := w.acquire(other, bg)
			second := acquiring(c.FairLock("name"))
			time.Sleep(time.Second)
			third := acquiring(other)
			time.Sleep(3 * time.Second)
			d.takes()
			d.follow(1, acked)
			w.release(h)
			released := time.Now()
			o := <-second
			if acked == 1 {
				w.no(o.err)
				if n := len(d.takes()); n != 1 {
					t.Errorf("waited for replicas %d times", n)
				}
				w.release(o.hold)
			} else {
				w.wantAck(o.err, "name", 0, 1)
			}
			o = <-third
			w.no(o.err)
			if took := time.Since(released); took > 1100*time.Millisecond {
				t.Errorf("the third had to wait for %v", took)
			}
			w.release(o.hold)
			settled()
			w.wantLocksGone()
		})
	}
}

// Readers of one process wait for replicas together, once, and fail together.
func TestReadersAreAcknowledgedTogether(t *testing.T) {
	for acked := range 2 {
		inFakeTime(t, func(w *world) {
			c, d := w.acking(redlatch.Config{Acks: 1}, 1, acked)
			l := c.ReadWriteLock("name").Read()
			var readers []<-chan outcome
			for range 5 {
				readers = append(readers, acquiring(l))
			}
			synctest.Wait()
			for _, r := range readers {
				o := <-r
				if acked == 0 {
					w.wantAck(o.err, "name", 0, 1)
					continue
				}
				w.no(o.err)
				defer w.release(o.hold)
			}
			if got := d.takes(); len(got) != 1 {
				t.Errorf("waited for replicas after %v", got)
			}
			settled()
			if acked == 0 {
				w.wantLocksGone()
				return
			}
			// Who needs a longer lease than the others have needs replicas for it.
			d.follow(1, 0)
			_, err := l.Acquire(bg, redlatch.Lease(time.Hour))
			w.wantAck(err, "name", 0, 1)
			w.release(w.acquire(l, bg))
			d.follow(1, 1)
			w.release(w.acquire(l, bg, redlatch.Lease(time.Hour)))
		})
	}
}

// Replicas that are silent keep waiting callers waiting, and nothing else: holds are
// renewed and released in time.
func TestAThousandCallersThatWaitForReplicasAreInNobodysWay(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, d := w.acking(redlatch.Config{Acks: redlatch.AcksBestEffort}, 1, 1)
		holds := make([]*redlatch.Hold, 20)
		for i := range holds {
			holds[i] = w.acquire(c.Lock(fmt.Sprint("held-", i)), bg)
		}
		time.Sleep(10*time.Second - time.Millisecond) // they are about to be renewed
		d.follow(1, 0)
		callers := make([]<-chan outcome, 1000)
		for i := range callers {
			callers[i] = acquiring(c.Lock(fmt.Sprint("name-", i)))
		}
		time.Sleep(500 * time.Millisecond)
		start := time.Now()
		for _, h := range holds {
			if left := time.Until(h.Expires()); left < 28*time.Second {
				t.Errorf("trusted for %v", left)
			}
			w.release(h)
		}
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("releases took %v", took)
		}
		for _, caller := range callers {
			o := <-caller
			w.no(o.err)
			w.release(o.hold)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("together they took %v", took)
		}
		settled()
		w.wantLocksGone()
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
	inFakeTime(t, func(w *world) {
		c, d := w.acking(redlatch.Config{
			Acks:   redlatch.AcksBestEffort,
			Events: redlatch.Events{NotAcknowledged: func(e redlatch.NotAcknowledgedEvent) { t.Errorf("%+v", e) }},
		}, 1, 1)
		h := w.acquire(w.client(redlatch.Config{}).Lock("name"), bg)
		d.follow(1, 0)
		_, err := c.Lock("name").Try(bg)
		w.wantErr(err, redlatch.ErrBusy)
		_, err = c.Lock("name").Acquire(bg, redlatch.Wait(5*time.Second))
		w.wantErr(err, redlatch.ErrBusy)
		w.release(h)
	})
}
