package synchronizers

import (
	"encoding/hex"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// What miniredis cannot vouch for: the scripts on real Redis and Valkey, with ids
// that are no text, and with thousands of permits that have expired, which are
// more than Lua's unpack can take.
func TestPermitsOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, server *testserver.Server) {
		a, b := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(server.Addr())), redlatch.Config{}), locktest.ClientOf(t, drivers.Rueidis.Open(t, drivers.Single(server.Addr())), redlatch.Config{})
		s, other := semaphore.NewExpirable(a, locktest.Pool, 0), semaphore.NewExpirable(b, locktest.Pool, 0)
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		permits := func(free, given int) {
			t.Helper()
			f, err := other.Available(bg)
			check(err)
			g, err := other.Acquired(bg)
			check(err)
			if f != free || g != given {
				t.Errorf("%d free and %d given, want %d and %d", f, g, free, given)
			}
		}
		if set, err := s.TrySetPermits(bg, 0); !set || err != nil {
			t.Fatal(set, err)
		}
		rdb := locktest.RawGoredis(t, server)
		expired := make([]redis.Z, 9000)
		for i := range expired {
			expired[i] = redis.Z{Score: float64(time.Now().UnixMilli() - int64(i) - 5000), Member: fmt.Sprintf("permit %09d", i)}
		}
		check(rdb.ZAdd(bg, locktest.PoolTimes, expired...).Err())
		p, err := s.TryAcquire(bg, 1, locktest.Generous)
		check(err)
		permits(8999, 1)
		check(rdb.ZAdd(bg, locktest.PoolTimes, expired...).Err())
		permits(17999, 1)
		check(p.Release(bg))

		ps, err := locktest.Each(semaphore.NewExpirable(a, s.Name(), 0, redlatch.Lease(time.Hour)).TryAcquire(bg, 9000, locktest.Generous))
		check(err)
		ids := make([]string, len(ps))
		for i, p := range ps {
			ids[i] = p.ID()
		}
		left, err := other.LeaseLeft(bg, ids[8999])
		if err != nil || left < 50*time.Minute || left > time.Hour+time.Second {
			t.Errorf("LeaseLeft: %v, %v", left, err)
		}
		check(other.SetPermits(bg, 9001))
		permits(1, 9000)
		check(s.Release(bg, ids...))
		runtime.KeepAlive(ps) // or else they may have been released, for having been dropped
		permits(9001, 0)

		// From one client to the other, by a message and by the end of a lease.
		check(s.SetPermits(bg, 1))
		p, err = s.TryAcquire(bg, 1, locktest.Generous)
		check(err)
		waiting := locktest.Later(func() error {
			p, err := other.TryAcquire(bg, 1, locktest.Generous)
			check(err)
			return p.Release(bg)
		})
		check(p.Release(bg))
		check(<-waiting)
		raw, _ := hex.DecodeString(javaID)
		check(rdb.ZAdd(bg, locktest.PoolTimes, redis.Z{Score: float64(time.Now().Add(300 * time.Millisecond).UnixMilli()), Member: string(raw)}).Err())
		check(rdb.Set(bg, locktest.Pool, 0, 0).Err())
		p, err = other.TryAcquire(bg, 1, locktest.Generous)
		check(err)
		check(s.Extend(bg, p.ID(), time.Minute))
		check(s.Release(bg, p.ID()))
		permits(1, 0)
		if deleted, err := s.Delete(bg); !deleted || err != nil {
			t.Error(deleted, err)
		}
	})
}
