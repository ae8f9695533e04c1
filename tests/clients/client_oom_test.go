package clients

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A server that is out of memory takes permits back, and lets a holder be told
// that its lock is released by force, before somebody else has it.
func TestAServerWithoutMemoryTakesBack(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, server *testserver.Server) {
		client := func() *redlatch.Client {
			return locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(server.Addr())), redlatch.Config{})
		}
		a, b, c := client(), client(), client()
		no := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		s := semaphore.NewExpirable(a, "pool", 0)
		_, err := s.TrySetPermits(bg, 3)
		no(err)
		ps, err := locktest.Each(s.Acquire(bg, 2))
		no(err)
		h, err := a.FairLock("fair").Acquire(bg)
		no(err)
		var both atomic.Bool
		next := locktest.Later(func() error {
			_, err := b.FairLock("fair").TryAcquire(bg, locktest.Generous)
			both.Store(err == nil && h.Err() == nil)
			return err
		})
		if !locktest.Within(locktest.Generous, func() bool {
			n, err := server.Do("LLEN", "redisson_lock_queue:{fair}")
			return err == nil && n == int64(1)
		}) {
			t.Fatal("nobody waits")
		}
		server.MustDo("CONFIG", "SET", "maxmemory", "1")
		defer server.MustDo("CONFIG", "SET", "maxmemory", "0")
		no(ps[0].Release(bg))
		no(s.Release(bg, ps[1].ID()))
		asked := time.Now()
		if freed, err := admin.ForceRelease(bg, c.FairLock("fair")); !freed || err != nil {
			t.Errorf("freed %v, %v", freed, err)
		}
		inTime := time.Since(asked) < time.Second // longer is nobody waited for
		no(<-next)
		if inTime && both.Load() {
			t.Error("two live holds")
		}
	})
}
