package locks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Redisson issues 4822, 4706 and 6025: a re-entry that replicas did not
// acknowledge was tried again, and counted each time.
func TestAReentryThatIsNotAcknowledgedIsNotCounted(t *testing.T) {
	for kind, of := range locktest.MemberKinds {
		if kind == "read" || kind == "non-re-entry" {
			continue // Redis does not learn of the one, the other is refused
		}
		for _, scoped := range []bool{false, true} {
			t.Run(kind, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, 1)
					l, ctx := of(c, "name"), bg
					if scoped {
						ctx = redlatch.WithOwner(bg)
					}
					outer := w.Acquire(ctx, l)
					if !scoped {
						ctx = outer.Context()
					}
					inner := w.Acquire(ctx, l)
					if !scoped {
						ctx = inner.Context()
					}
					two := nest(w, "name")
					d.Follow(1, 0)
					for range 3 {
						_, err := l.Acquire(ctx)
						w.WantAck(err, "name", 0, 1)
						locktest.Settled()
						if got := nest(w, "name"); got != two {
							t.Fatalf("Redis has %s, want %s as before", got, two)
						}
					}
					d.Follow(1, 1)
					third := w.Acquire(ctx, l)
					if got := nest(w, "name"); got == two {
						t.Errorf("a third hold is not counted: %s", got)
					}
					time.Sleep(time.Minute)
					for _, h := range []*redlatch.Hold{third, inner, outer} {
						w.Release(h)
					}
					locktest.Settled()
					w.WantLocksGone()
				})
			})
		}
	}
}

// nest returns the fields of a lock and their values; of a group's, whose values
// have times, only how often it was entered.
func nest(w *locktest.World, name string) string {
	w.Helper()
	fields, err := w.Server.HKeys(name)
	w.OK(err)
	slices.Sort(fields)
	s := ""
	for _, f := range fields {
		if v := w.Server.HGet(name, f); len(v) < 8 {
			s += f + "=" + v + " "
		}
	}
	return s
}

// The outer hold is released while the inner one waits for replicas in vain.
func TestAnOuterHoldIsReleasedUnderAReentryThatIsNotAcknowledged(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckAny}, 1, 1)
		l := c.Lock("name")
		outer := w.Acquire(bg, l)
		d.Follow(1, 0)
		inner := locktest.Later(func() error { _, err := l.Acquire(outer.Context()); return err })
		synctest.Wait()
		released := locktest.Later(func() error { return outer.Release(bg) })
		next := locktest.Acquiring(w.Client(redlatch.Config{}).Lock("name"))
		w.WantErr(<-inner, redlatch.ErrNotHeld) // it would not have had anything to nest in
		w.OK(<-released)
		w.Release((<-next).Hold)
		locktest.Settled()
		w.WantLocksGone()
	})
}

// What goes from one goroutine to the next was acknowledged when it was acquired.
func TestALockThatIsPassedOnIsNotAcknowledgedAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckAny}, 1, 1)
		l := c.Lock("name")
		h := w.Acquire(bg, l)
		d.Takes()
		d.Follow(1, 0)
		for range 200 { // turns too
			next := locktest.Acquiring(l)
			synctest.Wait()
			w.Release(h)
			o := <-next
			w.OK(o.Err)
			h = o.Hold
			time.Sleep(time.Millisecond / 2)
		}
		w.Release(h)
		if got := d.Takes(); len(got) > 0 {
			t.Errorf("waited for replicas after %v", got)
		}
	})
}

// Where renewals need replicas, so does what takes their place: a lock that keeps
// being handed on in one process is trusted no longer than replicas know it.
func TestALockThatIsHandedOnNeedsReplicasAsItsRenewalsDo(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, 1)
		l := c.Lock("name")
		h := w.Acquire(bg, l)
		last := time.Now()
		d.Follow(1, 0)
		for {
			next := locktest.Acquiring(l)
			time.Sleep(10 * time.Millisecond)
			w.Release(h)
			o := <-next
			if o.Err != nil {
				w.WantAck(o.Err, "name", 0, 1)
				break
			}
			h = o.Hold
			if h.Expires().Sub(last) > 30*time.Second {
				t.Fatalf("trusted until %v after the last acknowledgement", h.Expires().Sub(last))
			}
		}
		locktest.Settled()
		w.WantLocksGone()
		if len(d.Takes()) == 0 {
			t.Error("nobody asked")
		}
	})
}

// Who is handed a lock with a lease or a token of his own gets something new,
// whether his process has had it for long or not.
func TestALeaseOrATokenIsAcknowledgedWhenALockIsHandedOn(t *testing.T) {
	for _, after := range []time.Duration{time.Microsecond, 20 * time.Millisecond} {
		for _, opt := range []redlatch.PlainOption{redlatch.Lease(time.Minute), redlatch.Fenced()} {
			for acked := range 2 {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c, d := w.Acking(redlatch.Config{Acks: redlatch.AckAny}, 1, 1)
					l := c.Lock("name")
					h := w.Acquire(bg, l)
					d.Takes()
					var first atomic.Bool
					d.Answer(func(string, []string, int) (int, error) { // only the first may be without an answer
						if first.CompareAndSwap(false, true) {
							return acked, nil
						}
						return 1, nil
					})
					next, after2 := locktest.Acquiring(locktest.With(l, opt)), locktest.Later(func() locktest.Outcome { time.Sleep(time.Second / 2); return <-locktest.Acquiring(l) })
					time.Sleep(after)
					w.Release(h)
					o := <-next
					// If the first has not got it, the other may be at it already.
					if got := d.Takes(); len(got) != 1 && (acked == 1 || len(got) != 2) {
						t.Errorf("after %v: waited for replicas after %v", after, got)
					}
					if acked == 1 {
						w.OK(o.Err)
						w.Release(o.Hold)
					} else {
						w.WantAck(o.Err, "name", 0, 1)
					}
					o = <-after2
					w.OK(o.Err)
					w.Release(o.Hold)
					locktest.Settled()
					w.WantLocksGone()
				})
			}
		}
	}
}

// keepers acquire something that lasts.
func keepers(w *locktest.World, c *redlatch.Client) map[string]func(opts ...redlatch.HoldOption) *redlatch.Hold {
	all := map[string]func(opts ...redlatch.HoldOption) *redlatch.Hold{
		"permit": func(opts ...redlatch.HoldOption) *redlatch.Hold {
			s := semaphore.NewExpirable(c, "permits", 0)
			_, err := s.TrySetPermits(bg, 1)
			w.OK(err)
			p, err := semaphore.NewExpirable(c, s.Name(), 0, opts...).Acquire(bg, 1)
			w.OK(err)
			return p
		},
	}
	for kind, of := range locktest.MemberKinds {
		all[kind] = func(opts ...redlatch.HoldOption) *redlatch.Hold {
			l := of(c, kind)
			for _, o := range opts {
				l = locktest.With(l, o)
			}
			return w.Acquire(bg, l)
		}
	}
	return all
}

// A hold whose renewals replicas do not acknowledge is tried to be renewed, and
// lost in time: 30 s after the last acknowledgement, while the primary has it yet.
func TestAHoldIsTrustedNoLongerThanReplicasKnowIt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var failed, lost atomic.Int64
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, 1, observe.Hooks{
			RenewFailed: func(e observe.RenewFailedEvent) {
				if short := (*redlatch.AckError)(nil); errors.As(e.Err, &short) {
					failed.Add(1)
					if strings.Contains(short.Name, ":timeout") {
						t.Errorf("a renewal of %q has failed", short.Name)
					}
				}
			},
			Lost: func(observe.LostEvent) { lost.Add(1) },
		})
		holds := map[string]*redlatch.Hold{}
		for kind, acquire := range keepers(w, c) {
			holds[kind] = acquire()
		}
		time.Sleep(time.Minute + 5*time.Second) // renewals at 10 s, 20 s ... are acknowledged
		d.Follow(1, 0)
		last := time.Now().Add(-5 * time.Second)
		time.Sleep(20 * time.Second)
		for kind, h := range holds {
			if h.Err() != nil || h.Expires().After(last.Add(30*time.Second)) || h.Expires().Before(last.Add(29*time.Second)) {
				t.Errorf("%s: %v, trusted for %v after its last acknowledgement", kind, h.Err(), h.Expires().Sub(last))
			}
		}
		if failed.Load() < 10 {
			t.Errorf("%d renewals have failed", failed.Load())
		}
		time.Sleep(time.Until(last.Add(30*time.Second - time.Millisecond)))
		for kind, h := range holds {
			w.WantErr(context.Cause(h.Context()), redlatch.ErrLost)
			w.WantErr(h.Release(bg), redlatch.ErrLost)
			_ = kind
		}
		w.Settle()
		if lost.Load() != int64(len(holds)) {
			t.Errorf("%d of %d were lost", lost.Load(), len(holds))
		}
	})
}

// Replicas that come back in time cost no hold.
func TestAHoldOutlivesReplicasThatAreSilentForAWhile(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, 1)
		holds := map[string]*redlatch.Hold{}
		for kind, acquire := range keepers(w, c) {
			holds[kind] = acquire()
		}
		for range 5 {
			d.Follow(1, 0)
			time.Sleep(15 * time.Second)
			d.Follow(1, 1)
			time.Sleep(15 * time.Second)
		}
		for kind, h := range holds {
			if err := h.Release(bg); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	})
}

// Where only acquisitions need replicas, nothing else waits for them.
func TestRenewalsDoNotWaitForReplicasUnlessAskedTo(t *testing.T) {
	for _, policy := range []redlatch.Acks{redlatch.AckAny, redlatch.AckBestEffort} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c, d := w.Acking(redlatch.Config{Acks: policy}, 1, 1)
			holds := map[string]*redlatch.Hold{}
			for kind, acquire := range keepers(w, c) {
				holds[kind] = acquire()
			}
			leased := w.Acquire(bg, c.Lock("leased", redlatch.Lease(5*time.Second)))
			d.Takes()
			d.Follow(1, 0)
			w.OK(leased.Extend(bg, time.Hour))
			time.Sleep(time.Minute)
			for kind, h := range holds {
				if err := h.Release(bg); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			w.Release(leased)
			if got := d.Takes(); !slices.Equal(got, []string{"expirable.release"}) { // a permit's, at the end
				t.Errorf("waited for replicas after %v", got)
			}
		})
	}
}

// That a lock is gone the primary knows by itself, however silent its replicas
// are.
func TestALossIsToldWithoutReplicas(t *testing.T) {
	for _, lease := range []bool{false, true} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, 1)
			var opts []redlatch.HoldOption
			if lease {
				opts = append(opts, redlatch.Lease(time.Hour))
			}
			holds := map[string]*redlatch.Hold{}
			for kind, acquire := range keepers(w, c) {
				holds[kind] = acquire(opts...)
			}
			d.Follow(1, 0)
			w.Server.FlushAll()
			if lease {
				for kind, h := range holds {
					if err := h.Extend(bg, 2*time.Hour); !errors.Is(err, redlatch.ErrLost) {
						t.Errorf("%s: Extend: %v", kind, err)
					}
				}
			}
			time.Sleep(15 * time.Second) // a renewal of each kind
			for kind, h := range holds {
				if err := h.Err(); !errors.Is(err, redlatch.ErrLost) {
					t.Errorf("%s: %v", kind, err)
				}
			}
		})
	}
}

func TestAnExtensionThatIsNotAcknowledgedDoesNotCount(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1, Prefix: "app:"}, 1, 1)
		for kind, acquire := range keepers(w, c) {
			d.Follow(1, 1)
			h := acquire(redlatch.Lease(10 * time.Second))
			d.Follow(1, 0)
			before := h.Expires()
			name := h.Name()
			w.WantAck(h.Extend(bg, time.Minute), name, 0, 1)
			if h.Expires() != before || h.Err() != nil {
				t.Errorf("%s: trusted for %v more than before, %v", kind, h.Expires().Sub(before), h.Err())
			}
			if kind == "permit" {
				w.WantAck(semaphore.NewExpirable(c, "permits", 0).Extend(bg, h.ID(), time.Minute), name, 0, 1)
				d.Follow(1, 1)
				w.OK(semaphore.NewExpirable(c, "permits", 0).Extend(bg, h.ID(), time.Minute))
			} else {
				d.Follow(1, 1)
				w.OK(h.Extend(bg, time.Minute))
			}
			if left := time.Until(h.Expires()); left < 58*time.Second {
				t.Errorf("%s: an extension that was acknowledged counts for %v", kind, left)
			}
			time.Sleep(30 * time.Second)
			w.OK(h.Release(bg))
		}
	})
}
