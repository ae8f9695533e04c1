package redlatch_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// Redisson issues 4822, 4706 and 6025: a re-entry that replicas did not acknowledge
// was tried again, and counted each time.
func TestAReentryThatIsNotAcknowledgedIsNotCounted(t *testing.T) {
	for kind, of := range memberKinds {
		if kind == "read" || kind == "non-re-entry" {
			continue // Redis does not learn of the one, the other is refused
		}
		for _, scoped := range []bool{false, true} {
			t.Run(kind, func(t *testing.T) {
				inFakeTime(t, func(w *world) {
					c, d := w.acking(redlatch.Config{Acks: 1}, 1, 1)
					l, ctx := of(c, "name"), bg
					if scoped {
						ctx = redlatch.WithOwner(bg)
					}
					outer := w.acquire(l, ctx)
					if !scoped {
						ctx = outer.Context()
					}
					inner := w.acquire(l, ctx)
					if !scoped {
						ctx = inner.Context()
					}
					two := w.nest("name")
					d.follow(1, 0)
					for range 3 {
						_, err := l.Acquire(ctx)
						w.wantAck(err, "name", 0, 1)
						settled()
						if got := w.nest("name"); got != two {
							t.Fatalf("Redis has %s, want %s as before", got, two)
						}
					}
					d.follow(1, 1)
					third := w.acquire(l, ctx)
					if got := w.nest("name"); got == two {
						t.Errorf("a third hold is not counted: %s", got)
					}
					time.Sleep(time.Minute)
					for _, h := range []*redlatch.Hold{third, inner, outer} {
						w.release(h)
					}
					settled()
					w.wantLocksGone()
				})
			})
		}
	}
}

// nest returns the fields of a lock and their values; of a group's, whose values
// have times, only how often it was entered.
func (w *world) nest(name string) string {
	w.Helper()
	fields, err := w.server.HKeys(name)
	w.no(err)
	slices.Sort(fields)
	s := ""
	for _, f := range fields {
		if v := w.server.HGet(name, f); len(v) < 8 {
			s += f + "=" + v + " "
		}
	}
	return s
}

// The outer hold is released while the inner one waits for replicas in vain.
func TestAnOuterHoldIsReleasedUnderAReentryThatIsNotAcknowledged(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, d := w.acking(redlatch.Config{Acks: redlatch.AcksAny}, 1, 1)
		l := c.Lock("name")
		outer := w.acquire(l, bg)
		d.follow(1, 0)
		inner := later(func() error { _, err := l.Acquire(outer.Context()); return err })
		synctest.Wait()
		released := later(func() error { return outer.Release(bg) })
		next := acquiring(w.client(redlatch.Config{}).Lock("name"))
		w.wantErr(<-inner, redlatch.ErrNotHeld) // it would not have had anything to nest in
		w.no(<-released)
		w.release((<-next).hold)
		settled()
		w.wantLocksGone()
	})
}

// What goes from one goroutine to the next was acknowledged when it was acquired.
func TestALockThatIsPassedOnIsNotAcknowledgedAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, d := w.acking(redlatch.Config{Acks: redlatch.AcksAny}, 1, 1)
		l := c.Lock("name")
		h := w.acquire(l, bg)
		d.takes()
		d.follow(1, 0)
		for range 200 { // turns too
			next := acquiring(l)
			synctest.Wait()
			w.release(h)
			o := <-next
			w.no(o.err)
			h = o.hold
			time.Sleep(time.Millisecond / 2)
		}
		w.release(h)
		if got := d.takes(); len(got) > 0 {
			t.Errorf("waited for replicas after %v", got)
		}
	})
}

// Where renewals need replicas, so does what takes their place: a lock that keeps
// being handed on in one process is trusted no longer than replicas know it.
func TestALockThatIsHandedOnNeedsReplicasAsItsRenewalsDo(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, d := w.acking(redlatch.Config{Acks: 1}, 1, 1)
		l := c.Lock("name")
		h := w.acquire(l, bg)
		last := time.Now()
		d.follow(1, 0)
		for {
			next := acquiring(l)
			time.Sleep(10 * time.Millisecond)
			w.release(h)
			o := <-next
			if o.err != nil {
				w.wantAck(o.err, "name", 0, 1)
				break
			}
			h = o.hold
			if h.Expires().Sub(last) > 30*time.Second {
				t.Fatalf("trusted until %v after the last acknowledgement", h.Expires().Sub(last))
			}
		}
		settled()
		w.wantLocksGone()
		if len(d.takes()) == 0 {
			t.Error("nobody asked")
		}
	})
}

// Who is handed a lock with a lease or a token of his own gets something new,
// whether his process has had it for long or not.
func TestALeaseOrATokenIsAcknowledgedWhenALockIsHandedOn(t *testing.T) {
	for _, after := range []time.Duration{time.Microsecond, 20 * time.Millisecond} {
		for _, opt := range []redlatch.Option{redlatch.Lease(time.Minute), redlatch.Fenced()} {
			for acked := range 2 {
				inFakeTime(t, func(w *world) {
					c, d := w.acking(redlatch.Config{Acks: redlatch.AcksAny}, 1, 1)
					l := c.Lock("name")
					h := w.acquire(l, bg)
					d.takes()
					var first atomic.Bool
					d.answer(func(string, []string, int) (int, error) { // only the first may be without an answer
						if first.CompareAndSwap(false, true) {
							return acked, nil
						}
						return 1, nil
					})
					next, after2 := acquiring(l, opt), later(func() outcome { time.Sleep(time.Second / 2); return <-acquiring(l) })
					time.Sleep(after)
					w.release(h)
					o := <-next
					// If the first has not got it, the other may be at it already.
					if got := d.takes(); len(got) != 1 && (acked == 1 || len(got) != 2) {
						t.Errorf("after %v: waited for replicas after %v", after, got)
					}
					if acked == 1 {
						w.no(o.err)
						w.release(o.hold)
					} else {
						w.wantAck(o.err, "name", 0, 1)
					}
					o = <-after2
					w.no(o.err)
					w.release(o.hold)
					settled()
					w.wantLocksGone()
				})
			}
		}
	}
}

// kept is a hold or a permit that a watchdog keeps, or a lease.
type kept interface {
	Context() context.Context
	Err() error
	Expires() time.Time
	Release(ctx context.Context) error
	Extend(ctx context.Context, d time.Duration) error
}

// keepers acquire something that lasts.
func (w *world) keepers(c *redlatch.Client) map[string]func(opts ...redlatch.Option) kept {
	all := map[string]func(opts ...redlatch.Option) kept{
		"permit": func(opts ...redlatch.Option) kept {
			s := c.ExpirableSemaphore("permits")
			_, err := s.TrySetPermits(bg, 1)
			w.no(err)
			p, err := s.Acquire(bg, opts...)
			w.no(err)
			return p
		},
	}
	for kind, of := range memberKinds {
		all[kind] = func(opts ...redlatch.Option) kept { return w.acquire(of(c, kind), bg, opts...) }
	}
	return all
}

// A hold whose renewals replicas do not acknowledge is tried to be renewed, and
// lost in time: 30 s after the last acknowledgement, while the primary has it yet.
func TestAHoldIsTrustedNoLongerThanReplicasKnowIt(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var failed, lost atomic.Int64
		c, d := w.acking(redlatch.Config{Acks: 1, Events: redlatch.Events{
			RenewFailed: func(e redlatch.RenewFailedEvent) {
				if errors.Is(e.Err, redlatch.ErrNotAcknowledged) {
					failed.Add(1)
				}
			},
			Lost: func(redlatch.LostEvent) { lost.Add(1) },
		}}, 1, 1)
		holds := map[string]kept{}
		for kind, acquire := range w.keepers(c) {
			holds[kind] = acquire()
		}
		time.Sleep(time.Minute + 5*time.Second) // renewals at 10 s, 20 s ... are acknowledged
		d.follow(1, 0)
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
			w.wantErr(context.Cause(h.Context()), redlatch.ErrLost)
			w.wantErr(h.Release(bg), redlatch.ErrLost)
			_ = kind
		}
		w.settle()
		if lost.Load() != int64(len(holds)) {
			t.Errorf("%d of %d were lost", lost.Load(), len(holds))
		}
	})
}

// Replicas that come back in time cost no hold.
func TestAHoldOutlivesReplicasThatAreSilentForAWhile(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, d := w.acking(redlatch.Config{Acks: 1}, 1, 1)
		holds := map[string]kept{}
		for kind, acquire := range w.keepers(c) {
			holds[kind] = acquire()
		}
		for range 5 {
			d.follow(1, 0)
			time.Sleep(15 * time.Second)
			d.follow(1, 1)
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
	for _, policy := range []redlatch.Acks{redlatch.AcksAny, redlatch.AcksBestEffort} {
		inFakeTime(t, func(w *world) {
			c, d := w.acking(redlatch.Config{Acks: policy}, 1, 1)
			holds := map[string]kept{}
			for kind, acquire := range w.keepers(c) {
				holds[kind] = acquire()
			}
			leased := w.acquire(c.Lock("leased"), bg, redlatch.Lease(5*time.Second))
			d.takes()
			d.follow(1, 0)
			w.no(leased.Extend(bg, time.Hour))
			time.Sleep(time.Minute)
			for kind, h := range holds {
				if err := h.Release(bg); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			w.release(leased)
			if got := d.takes(); !slices.Equal(got, []string{"expirable.release"}) { // a permit's, at the end
				t.Errorf("waited for replicas after %v", got)
			}
		})
	}
}

// That a lock is gone the primary knows by itself, however silent its replicas are.
func TestALossIsToldWithoutReplicas(t *testing.T) {
	for _, lease := range []bool{false, true} {
		inFakeTime(t, func(w *world) {
			c, d := w.acking(redlatch.Config{Acks: 1}, 1, 1)
			var opts []redlatch.Option
			if lease {
				opts = append(opts, redlatch.Lease(time.Hour))
			}
			holds := map[string]kept{}
			for kind, acquire := range w.keepers(c) {
				holds[kind] = acquire(opts...)
			}
			d.follow(1, 0)
			w.server.FlushAll()
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
	inFakeTime(t, func(w *world) {
		c, d := w.acking(redlatch.Config{Acks: 1}, 1, 1)
		for kind, acquire := range w.keepers(c) {
			d.follow(1, 1)
			h := acquire(redlatch.Lease(10 * time.Second))
			d.follow(1, 0)
			before := h.Expires()
			w.wantAck(h.Extend(bg, time.Minute), "", 0, 1)
			if h.Expires() != before || h.Err() != nil {
				t.Errorf("%s: trusted for %v more than before, %v", kind, h.Expires().Sub(before), h.Err())
			}
			if p, ok := h.(*redlatch.Permit); ok {
				w.wantAck(c.ExpirableSemaphore("permits").Extend(bg, p.ID(), time.Minute), "", 0, 1)
				d.follow(1, 1)
				w.no(c.ExpirableSemaphore("permits").Extend(bg, p.ID(), time.Minute))
			} else {
				d.follow(1, 1)
				w.no(h.Extend(bg, time.Minute))
			}
			if left := time.Until(h.Expires()); left < 58*time.Second {
				t.Errorf("%s: an extension that was acknowledged counts for %v", kind, left)
			}
			time.Sleep(30 * time.Second)
			w.no(h.Release(bg))
		}
	})
}
