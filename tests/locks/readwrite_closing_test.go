package locks

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A reader that joins others and needs a longer lease than they have waits for the
// server. It did so for Config.OutageTimeout, whatever became of its client.
func TestAReaderThatJoinsOthersHearsAtOnceThatItsClientEnds(t *testing.T) {
	ends := map[string]func(c *redlatch.Client) error{
		"shutdown": func(c *redlatch.Client) error {
			ctx, cancel := context.WithTimeout(bg, time.Minute)
			defer cancel()
			return c.Shutdown(ctx)
		},
		"close": (*redlatch.Client).Close,
	}
	for name, end := range ends {
		for _, kind := range []string{"beside", "inside", "owner"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					var silent atomic.Bool
					c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: blackHole(&silent, 0)})
					l := c.ReadWriteLock("rates").Read()
					owner := redlatch.WithOwner(bg)
					first := w.Acquire(owner, l)
					ctx := map[string]context.Context{"beside": bg, "inside": first.Context(), "owner": owner}[kind]
					silent.Store(true)
					joined := locktest.Later(func() error { _, err := locktest.With(l, redlatch.Lease(time.Hour)).Acquire(ctx); return err })
					time.Sleep(4 * time.Second)
					if !locktest.NoneYet(joined) {
						w.Fatal("it waits for nothing")
					}
					start := time.Now()
					ended := locktest.Later(func() error { return end(c) })
					w.WantErr(<-joined, redlatch.ErrClosed)
					if d := time.Since(start); d > 0 {
						t.Errorf("heard %v later", d)
					}
					silent.Store(false)
					_ = first.Release(bg)
					w.OK(<-ended)
					synctest.Wait()
				})
			})
		}
	}
}

// So does who raises the leases of some members because the others took long.
func TestWhoLevelsTheLeasesOfSeveralHearsAtOnceOfAShutdown(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var silent atomic.Bool
		a, b := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: blackHole(&silent, 0)}), w.Client(redlatch.Config{})
		other := w.Acquire(bg, w.Client(redlatch.Config{}).Lock("b"))
		m := redlatch.MultiLock(a.Lock("a", redlatch.Lease(2*time.Second)), b.Lock("b", redlatch.Lease(2*time.Second)))
		done := locktest.Later(func() error { _, err := m.Acquire(bg); return err })
		time.Sleep(450 * time.Millisecond)
		silent.Store(true)
		w.Release(other)
		time.Sleep(10 * time.Millisecond)
		if !w.Server.Exists("b") || !locktest.NoneYet(done) {
			w.Fatal("it waits for something else")
		}
		start := time.Now()
		down := locktest.Later(func() error { return b.Shutdown(bg) })
		w.WantErr(<-done, redlatch.ErrClosed)
		w.OK(<-down)
		if d := time.Since(start); d > 600*time.Millisecond { // it gives a release half a second
			t.Errorf("heard %v later", d)
		}
		silent.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
	})
}
