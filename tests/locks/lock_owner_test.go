package locks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A caller under WithOwner may wait twice: for another acquisition of the same
// owner, then for the lock. Wait bounds both together.
func TestWaitBoundsAllWaitingUnderWithOwner(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		foreign := w.Acquire(bg, w.Client(redlatch.Config{}).Lock("orders"))
		l, owner := w.Client(redlatch.Config{}).Lock("orders"), redlatch.WithOwner(bg)
		first := locktest.Later(func() error { _, err := l.TryAcquire(owner, 3*time.Second); return err })
		synctest.Wait()
		start := time.Now()
		_, err := l.TryAcquire(owner, 5*time.Second)
		w.WantErr(err, redlatch.ErrBusy)
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("waited for %v", waited)
		}
		w.WantErr(<-first, redlatch.ErrBusy)
		w.Release(foreign)
	})
}

func TestAnOwnerNestedInAHoldKeepsItsTurn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		g := w.Acquire(bg, l)
		sc := redlatch.WithOwner(g.Context())
		a1 := w.Acquire(sc, l)
		a2 := w.Acquire(sc, l)
		bc := locktest.Later(func() *redlatch.Hold { return w.Acquire(g.Context(), l) })
		synctest.Wait()
		w.Release(a1)
		synctest.Wait()
		var b *redlatch.Hold
		select {
		case b = <-bc:
			if a2.Err() == nil {
				t.Error("b, nested in g, is live together with a2, which is under an owner nested in g")
			}
			w.Release(a2)
		default:
			w.Release(a2)
			b = <-bc
		}
		w.Release(b)
		w.Release(g)
	})
}

func TestTryUnderWithOwnerDoesNotWait(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		f := w.Acquire(bg, other.Lock("orders"))
		ctx := redlatch.WithOwner(bg)
		hc := locktest.Later(func() *redlatch.Hold { return w.Acquire(ctx, c.Lock("orders")) })
		synctest.Wait()
		start := time.Now()
		tc := locktest.Later(func() error {
			h, err := c.Lock("orders").TryAcquire(ctx, 0)
			if h != nil {
				w.Release(h)
			}
			return err
		})
		time.Sleep(time.Minute)
		select {
		case err := <-tc:
			w.WantErr(err, redlatch.ErrBusy)
		default:
			t.Errorf("Try has waited for %v", time.Since(start))
		}
		w.Release(f)
		w.Release(<-hc)
	})
}

func TestUnderWithOwnerEverythingIsOneOwner(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		ctx := redlatch.WithOwner(bg)
		a := w.Acquire(ctx, l)
		b := w.Acquire(ctx, l)
		if a.ID() != b.ID() || w.Count(a) != "2" {
			t.Fatalf("owners %s and %s, count %s", a.ID(), b.ID(), w.Count(a))
		}
		_, err := l.TryAcquire(redlatch.WithOwner(bg), 0)
		w.WantErr(err, redlatch.ErrBusy)
		w.Release(a)
		w.Release(b)
		again := w.Acquire(ctx, l)
		w.Release(again)
		_, err = c.Lock("other", redlatch.NonReentrant()).Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Lock("other", redlatch.NonReentrant()).Acquire(ctx)
		w.WantErr(err, redlatch.ErrReentry)
	})
}
