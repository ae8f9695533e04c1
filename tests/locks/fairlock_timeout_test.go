package locks

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// With the fairLockWaitTimeout that the Java side has, places are that far apart;
// no waiter of ours that lives is ever one that Redisson would pass over, however
// long it waits; and one of Redisson's that has died keeps those behind it no
// longer than that.
func TestAnotherFairLockWaitTimeoutIsHonoured(t *testing.T) {
	locktest.Long(t)
	for _, timeout := range []time.Duration{5 * time.Second, 20 * time.Second, time.Hour} {
		t.Run(timeout.String(), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var requeued atomic.Int32
				cfg := redlatch.Config{Redisson: redlatch.Redisson{FairLockWaitTimeout: timeout}}
				told := observe.Hooks{Requeued: func(observe.RequeuedEvent) { requeued.Add(1) }}
				a, b := w.Client(cfg, told), w.Client(cfg, told)
				h := w.Acquire(bg, a.FairLock("orders"))
				var waits []<-chan locktest.Outcome
				waitMore := func(n int) {
					for range n {
						waits = append(waits, w.Waiting(bg, b.FairLock("orders")))
					}
				}
				waitMore(3)
				end, ids := scores(w, "orders")
				java := w.JavaWaiter("orders", 1, time.Until(time.UnixMilli(int64(end[ids[2]])))+timeout)
				waitMore(2)
				time.Sleep(3 * time.Second) // who waits asks again
				got, ids := scores(w, "orders")
				for i, id := range ids[1:] {
					if d := got[id] - got[ids[i]]; math.Abs(d-float64(timeout.Milliseconds())) > 0.5 {
						t.Errorf("number %d stands %v ms behind the one before it", i+1, d)
					}
				}
				for range 2000 {
					time.Sleep(time.Second)
					got, ids = scores(w, "orders")
					if left := got[ids[0]] - float64(time.Now().UnixMilli()); left < 0 {
						t.Fatalf("the first one's time was over %v ms ago", -left)
					}
				}
				for range 3 {
					w.Release(h)
					h, waits = w.Got(waits[0]), waits[1:]
				}
				got, ids = scores(w, "orders")
				if ids[0] != java.Owner {
					t.Fatalf("in line are %q", ids)
				}
				over := time.UnixMilli(int64(got[java.Owner])) // nobody is there who would take it
				w.Release(h)
				h = w.Got(waits[0])
				if late := time.Since(over); late < 0 || late > 2*time.Second || over.After(time.Now().Add(timeout)) {
					t.Errorf("the one behind the dead one got the lock %v after its time", late)
				}
				w.Release(h)
				w.Release(w.Got(waits[1]))
				if n := requeued.Load(); n > 0 {
					t.Errorf("%d waiters of ours were passed over", n)
				}
			})
		})
	}
	if _, err := redlatch.New(nil, redlatch.Config{Redisson: redlatch.Redisson{FairLockWaitTimeout: time.Second}}); err == nil {
		t.Error("a second is accepted")
	}
}
