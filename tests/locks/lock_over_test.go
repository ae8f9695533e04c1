package locks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// What is over can be trusted no longer, and has the token that it had, whoever
// has the lock after it.
func TestAHoldThatIsOverSaysNothingOfTheNextOne(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		first := w.Acquire(bg, locktest.With(l, redlatch.Fenced()))
		token := first.Token()
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
		synctest.Wait()
		w.Release(first)
		second := <-next // the same owner in Redis
		if token == 0 || first.Token() != token || second.Token() != 0 {
			t.Errorf("tokens %d, then %d of the first hold and %d of the second", token, first.Token(), second.Token())
		}
		if !first.Expires().IsZero() || second.Expires().IsZero() {
			t.Errorf("the first is trusted until %v, the second until %v", first.Expires(), second.Expires())
		}
		w.Release(second)

		gone := w.Acquire(bg, l)
		_, err := admin.ForceRelease(bg, w.Client(redlatch.Config{}).Lock("orders"))
		w.OK(err)
		synctest.Wait()
		w.WantErr(gone.Err(), redlatch.ErrLost)
		lease := w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Second)))
		permits := semaphore.NewExpirable(c, "pool", 1)
		permit, err := permits.Acquire(context.Background(), 1)
		w.OK(err)
		if permit.Expires().IsZero() {
			t.Error("a live permit is not trusted")
		}
		w.OK(permit.Release(bg))
		time.Sleep(time.Second) // nobody has looked
		for what, at := range map[string]time.Time{"revoked": gone.Expires(), "lease": lease.Expires(), "permit": permit.Expires()} {
			if !at.IsZero() {
				t.Errorf("%s: trusted until %v", what, at)
			}
		}
		_, _ = gone.Release(bg), lease.Release(bg)
	})
}
