package interop

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// Neither side's spin lock tells or listens: a waiter of either gets in by
// trying again.
func TestSpinLocksAreSilent(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		javaUnlockWakesGo(t, w)

		j := w.javaLock("t1")
		h := w.goHolds(redlatch.Lease(long))
		javaWaiter := w.javaWaits(j)
		w.release(h)
		w.inSoon(javaWaiter)
		w.holds(w.javaOwner("t1"), "1")
		if n := w.listeners(); n != 0 {
			t.Errorf("%d subscriptions of the lock's channel", n)
		}
		j.unlock()
		w.free()
		if info, _ := w.server.MustDo("INFO", "commandstats").(string); strings.Contains(info, "cmdstat_publish:") {
			t.Error("something was published")
		}
	}, peer.Spin)
}
