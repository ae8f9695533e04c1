package locks

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// While a slot moves, no script of a fair lock is run that needs more than one
// key. Who waits keeps its place, however long that lasts; not so whose process
// dies meanwhile.
func TestTheWaitersOfAFairLockLiveWhileTheyAreOnlyToldToTryAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var moving, dead atomic.Bool
		var requeued atomic.Int64
		of := func(dies bool) *redlatch.Client {
			return w.Tapped(redlatch.Config{OutageTimeout: time.Hour}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				switch {
				case dies && dead.Load():
					return driver.Reply{}, locktest.ErrReplyLost
				case moving.Load() && (s == "fairlock.take" || s == "fairlock.release"):
					return driver.Reply{}, &driver.RunError{Outcome: driver.NotExecuted, Code: "TRYAGAIN", Err: errors.New("TRYAGAIN Multiple keys request during rehashing of slot")}
				}
				return next()
			}}, observe.Hooks{Requeued: func(observe.RequeuedEvent) { requeued.Add(1) }})
		}
		a, b, c, dying := of(false), of(false), of(false), of(true)
		h := w.Acquire(bg, a.FairLock("orders"))
		gone := w.Waiting(bg, dying.FairLock("orders"))
		var waits []<-chan locktest.Outcome
		for _, c := range []*redlatch.Client{b, c, b} {
			waits = append(waits, w.Waiting(bg, c.FairLock("orders")))
		}
		places := w.Queue("orders")
		moving.Store(true)
		time.Sleep(15 * time.Second)
		dead.Store(true)
		time.Sleep(15 * time.Second)
		if now := w.Queue("orders"); !slices.Equal(now, places) {
			t.Fatalf("%q wait, and these did before: %q", now, places)
		}
		moving.Store(false)
		w.Release(h)
		var all sync.WaitGroup
		var had []string // guarded by the lock
		for _, wait := range waits {
			all.Go(func() {
				h := w.Got(wait)
				had = append(had, h.ID())
				w.Release(h)
			})
		}
		all.Wait()
		if !slices.Equal(had, places[1:]) {
			t.Errorf("they came as %q, and had it as %q", places[1:], had)
		}
		if n := requeued.Load(); n != 0 {
			t.Errorf("%d have lined up again", n)
		}
		dead.Store(false)
		w.Release(w.Got(gone))
		w.WantNothing()
	})
}
