package interop

import (
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// What a client with a prefix says to be a lock, Java has by a name with that
// prefix in it, and so the other way round.
func TestAPrefixIsAPartOfTheNameInJava(t *testing.T) {
	eachPair(t, peer.Plain, func(t *testing.T, w *world) {
		at := len(w.name) / 2
		c := newGoClient(t, w.driver, w.at, redlatch.Config{WatchdogTimeout: goWatchdog, CloseTimeout: generous, Prefix: w.name[:at]})
		l := c.Lock(w.name[at:])
		j := w.javaLock("t1")
		h, err := l.TryAcquire(w.ctx, 0)
		w.must(err)
		if j.try(0, 0) {
			t.Error("Java has the lock as well")
		}
		w.must(h.Release(w.ctx))
		if !j.try(0, 0) {
			t.Error("Java does not get the lock")
		}
		_, err = l.TryAcquire(w.ctx, 0)
		w.is(err, redlatch.ErrBusy)
		j.unlock()
	})
}
