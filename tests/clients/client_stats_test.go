package clients

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// wantStats checks what a client has to do when everybody has come to rest.
func wantStats(w *locktest.World, when string, c *redlatch.Client, want redlatch.Stats) {
	w.Helper()
	synctest.Wait()
	if got := c.Stats(); got != want {
		w.Errorf("%s: %+v, want %+v", when, got, want)
	}
}

// Each type has its waiters somewhere else: one that is forgotten there looks idle
// while its callers hang.
func TestWhoeverWaitsForAnyTypeCounts(t *testing.T) {
	for kind, of := range locktest.MemberKinds {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				holder, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				held := w.Acquire(bg, locktest.MemberKinds["write"](holder, "x"))
				if kind != "read" && kind != "write" {
					w.Release(held)
					held = w.Acquire(bg, of(holder, "x"))
				}
				wantStats(w, "nobody has asked", c, redlatch.Stats{})
				const n = 7
				ctx, cancel := context.WithCancel(bg)
				var wg sync.WaitGroup
				for i := range n {
					wg.Go(func() {
						h, err := of(c, "x").Acquire(ctx)
						if err == nil {
							time.Sleep(time.Second)
							w.Release(h)
						} else if !errors.Is(err, redlatch.ErrBusy) {
							t.Error(err)
						}
					})
					if i == 0 {
						time.Sleep(time.Second)
						wantStats(w, "one waits", c, redlatch.Stats{Waiters: 1})
					}
				}
				time.Sleep(5 * time.Second)
				wantStats(w, "all wait", c, redlatch.Stats{Waiters: n})
				wantStats(w, "the holder", holder, redlatch.Stats{Holds: 1})
				w.Release(held)
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				if got := c.Stats(); got.Holds+got.Waiters != n || got.Holds == 0 {
					t.Errorf("some have it: %+v", got)
				}
				cancel()
				wg.Wait()
				wantStats(w, "in the end", c, redlatch.Stats{})
			})
		})
	}
}

// What is lost or not renewed is counted once, whoever learns of it how often.
func TestStatsCountWhatEventsTell(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lost, failed atomic.Uint64
		var mute atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: locktest.Failing(&mute, locktest.ErrReplyLost)}, observe.Hooks{
			Lost:        func(observe.LostEvent) { lost.Add(1) },
			RenewFailed: func(e observe.RenewFailedEvent) { failed.Add(uint64(e.Holds)) },
		})
		s := w.Permits(c, 5)
		var kept []any
		for i := range 3 {
			kept = append(kept, w.Acquire(bg, c.Lock(string(rune('a'+i)))), w.Acquire(bg, c.FairLock(string(rune('k'+i)))), w.Permit(s))
		}
		inner := w.Acquire(kept[0].(*redlatch.Hold).Context(), c.Lock("a"))
		detached, err := semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(time.Hour)).Acquire(bg, 1)
		w.OK(err)
		w.Detach(detached)
		wantStats(w, "at first", c, redlatch.Stats{Holds: 7, Permits: 3})
		if released, err := admin.ForceRelease(bg, c.Lock("b")); !released || err != nil {
			t.Fatal(released, err)
		}
		wantStats(w, "after a force release", c, redlatch.Stats{Holds: 6, Permits: 3, Lost: 1})
		mute.Store(true)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := c.Stats(); got.RenewalsDue != 8 || got.RenewalLag < 20.0/30 || got.RenewalLag > 0.75 || got.Holds != 6 || got.Permits != 3 || got.Lost != 1 || got.RenewalsFailed != failed.Load() || failed.Load() == 0 {
			t.Errorf("in an outage: %+v, and %d failed renewals were told of", got, failed.Load())
		}
		time.Sleep(20 * time.Second)
		wantStats(w, "when all is lost", c, redlatch.Stats{Lost: 10, RenewalsFailed: failed.Load()})
		if lost.Load() != 10 {
			t.Errorf("%d losses were told of", lost.Load())
		}
		mute.Store(false)
		_ = inner.Release(bg)
		for _, x := range kept {
			_ = x.(interface {
				Release(ctx context.Context) error
			}).Release(bg)
		}
	})
}

// A closed client has nothing to do; a metric may still be read.
func TestStatsWorkAfterClose(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("x"))
		got := locktest.Acquiring(c.Lock("x"))
		p := w.Permit(w.Permits(c, 1))
		wantStats(w, "before", c, redlatch.Stats{Holds: 1, Permits: 1, Waiters: 1})
		w.OK(c.Close())
		w.WantErr((<-got).Err, redlatch.ErrClosed)
		wantStats(w, "after", c, redlatch.Stats{})
		w.WantErr(h.Err(), redlatch.ErrClosed)
		w.WantErr(p.Err(), redlatch.ErrClosed)
	})
}

// A reader that only tries stands in a group with others until the answer is
// there.
func TestAReaderThatTriesDoesNotCountAsWaiting(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.ClientOver(10*time.Millisecond, redlatch.Config{})
		read := c.ReadWriteLock("orders").Read()
		tried := locktest.Later(func() error {
			h, err := read.TryAcquire(bg, 0)
			if err != nil {
				return err
			}
			return h.Release(bg)
		})
		time.Sleep(time.Millisecond)
		if n := c.Stats().Waiters; n != 0 {
			t.Errorf("%d callers wait", n)
		}
		w.OK(<-tried)
	})
}
