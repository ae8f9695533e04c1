package locks

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// What miniredis cannot vouch for: real servers that stop answering or die, and
// the scripts on real Redis and Valkey.
func TestRedLockOnRealServers(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for _, a := range drivers.Adapters {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			kinds := testserver.Kinds()
			servers := make([]*testserver.Server, 3)
			for i := range servers {
				servers[i] = testserver.Start(t, kinds[i%len(kinds)])
			}
			red := func(outage time.Duration) *redlatch.Lock {
				locks := make([]*redlatch.Lock, len(servers))
				for i, s := range servers {
					locks[i] = locktest.ClientOf(t, a.Open(t, drivers.Single(s.Addr())), redlatch.Config{OutageTimeout: outage, CloseTimeout: time.Millisecond}).Lock("leader")
				}
				return redlatch.RedLock(locks...)
			}
			// Who waited for a server that hangs would wait for longer than generous.
			m, other := red(2*locktest.Generous), red(2*locktest.Generous)
			impatient := red(time.Second)
			var inside atomic.Int64
			sections := func() {
				t.Helper()
				var wg sync.WaitGroup
				for _, m := range []*redlatch.Lock{m, other} {
					wg.Go(func() {
						for range 5 {
							if _, err := m.TryDo(bg, locktest.Generous, func(ctx context.Context) error {
								if inside.Add(1) != 1 {
									t.Error("two holders")
								}
								inside.Add(-1)
								return ctx.Err()
							}); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
			}
			sections()
			servers[1].Pause() // takes requests, answers nothing
			ctx, cancel := context.WithTimeout(bg, locktest.Generous)
			defer cancel()
			h, err := m.Acquire(ctx)
			if err != nil {
				t.Fatalf("a hung minority hinders the acquisition: %v", err)
			}
			if err := h.Release(ctx); err != nil {
				t.Errorf("a hung minority hinders the release: %v", err)
			}
			servers[1].Resume()
			servers[2].Kill()
			sections()
			servers[0].Kill()
			if _, err := impatient.TryAcquire(ctx, 0); err == nil {
				t.Error("acquired with a majority down")
			}
			if _, err := impatient.Acquire(ctx); !errors.Is(err, redlatch.ErrUnavailable) {
				t.Errorf("with a majority down: %v", err)
			}
			if ctx.Err() != nil {
				t.Error("with a majority down calls do not end")
			}
			var keys []string
			if !locktest.Within(locktest.Generous, func() bool {
				keys = servers[1].Keys()
				return len(keys) == 0
			}) {
				t.Errorf("left behind: %q", keys)
			}
		})
	}
}
