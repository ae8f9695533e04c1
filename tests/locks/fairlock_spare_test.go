package locks

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// handOver has somebody hold the lock, another wait for it, and the first release
// it.
func handOver(w *locktest.World, from *redlatch.Hold, to *redlatch.Client) *redlatch.Hold {
	w.Helper()
	next := w.Waiting(bg, to.FairLock("orders"))
	w.Release(from)
	h := w.Got(next)
	synctest.Wait()
	return h
}

// A caller asks once more when its subscription is confirmed: the lock may have
// been given to it before. Who listens already need not.
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

// A server, or a machine, that is busy confirms a subscription late: by then its
// caller has come. It would have to ask again, as would every caller after it.
func TestASlowSubscriptionCostsOnlyTheFirstCallersAnotherRequest(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var takes atomic.Int64
		b := w.Tapped(redlatch.Config{}, &locktest.Tap{
			Subscribed: func(channel string, _ bool) {
				if strings.Contains(channel, "orders") {
					time.Sleep(12 * time.Millisecond)
				}
			},
			Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				if s == "fairlock.take" {
					takes.Add(1)
				}
				return next()
			},
		})
		a := w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		for i := range 20 {
			before := takes.Load()
			h = handOver(w, h, b)
			if n := takes.Load() - before; n != 1 && i >= 5 {
				t.Errorf("%d. it asked %d times", i, n)
			}
			h = handOver(w, h, a)
			time.Sleep(5 * time.Millisecond)
		}
		w.Release(h)
		time.Sleep(20 * time.Millisecond) // until the last spare listens
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
