package fairlock

import (
	"testing"
	"testing/synctest"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// handOver has somebody hold the lock, another wait for it, and the first release it.
func handOver(w *locktest.World, from *redlatch.Hold, to *redlatch.Client) *redlatch.Hold {
	w.Helper()
	next := w.Waiting(bg, to.FairLock("orders"))
	w.Release(from)
	h := w.Got(next)
	synctest.Wait()
	return h
}

// A caller asks once more when its subscription is confirmed: the lock may have been given
// to it before. Who listens already need not.
func TestWhoComesAgainAsksOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Mortal()
		h := w.Acquire(bg, a.FairLock("orders"))
		for i, want := range []int64{2, 1, 1, 2} {
			if i == 3 {
				w.WantQuiet() // it was too long ago
			}
			before := b.Takes.Load()
			h = handOver(w, h, b.Client)
			if n := b.Takes.Load() - before; n != want {
				t.Errorf("%d. it asked %d times, want %d", i, n, want)
			}
			h = handOver(w, h, a)
		}
		w.Release(h)
		w.WantNothing()
	})
}

// A crowd that comes once does not leave a crowd of subscriptions.
func TestSparePlacesAreFewAndEndWithTheirClient(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		var crowd []<-chan locktest.Outcome
		for range 50 {
			crowd = append(crowd, w.Waiting(bg, b.FairLock("orders")))
		}
		w.Release(h)
		for _, c := range crowd {
			w.Release(w.Got(c))
		}
		synctest.Wait()
		if n := len(w.Server.PubSubChannels("redisson*")); n != 16 {
			t.Errorf("%d subscriptions are left, want 16", n)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if left := w.Server.PubSubChannels("redisson*"); len(left) > 0 {
			t.Errorf("still subscribed: %q", left)
		}
	})
}
