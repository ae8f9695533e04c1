package synchronizers

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// The server refuses a script in the middle, when the user has no right to a
// command, and keeps what it has done until then. No permit must be lost by that,
// nor given to nobody.
func TestAPermitScriptThatIsRefusedHalfWayLosesNoPermit(t *testing.T) {
	locktest.Long(t)
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := testserver.Start(t, kind)
			rdb := locktest.RawGoredis(t, s)
			c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
			take := func(p *semaphore.Expirable) error { _, err := p.Acquire(bg, 1); return err }
			expired := func(p *semaphore.Expirable) {
				rdb.DecrBy(bg, p.Name(), 1)
				rdb.ZAdd(bg, "{"+p.Name()+"}:timeout", redis.Z{Score: 1, Member: "sixteen bytes id"})
			}
			for _, tt := range []struct {
				right  string
				before func(p *semaphore.Expirable)
				do     func(p *semaphore.Expirable) error
			}{
				{"zadd", nil, take},
				{"decrby", nil, take},
				{"pexpire", func(p *semaphore.Expirable) { rdb.PExpire(bg, p.Name(), time.Hour) }, take},
				{"incrby", expired, take},
				{"zremrangebyscore", expired, take},
				{"incrby", nil, func(p *semaphore.Expirable) error {
					held, err := p.Acquire(bg, 1)
					if err != nil {
						t.Error(err)
						return nil
					}
					return held.Release(bg)
				}},
				{"incrby", nil, func(p *semaphore.Expirable) error {
					held, err := semaphore.NewExpirable(c, p.Name(), 0, redlatch.Lease(time.Second)).Acquire(bg, 1)
					if err != nil {
						t.Error(err)
						return nil
					}
					id, err := held.Detach()
					if err != nil {
						t.Error(err)
						return nil
					}
					return p.Release(bg, id)
				}},
			} {
				p := semaphore.NewExpirable(c, "pool-"+tt.right, 0)
				if _, err := p.Delete(bg); err != nil {
					t.Fatal(err)
				}
				if _, err := p.TrySetPermits(bg, 1); err != nil {
					t.Fatal(err)
				}
				if tt.before != nil {
					tt.before(p)
				}
				s.MustDo("ACL", "SETUSER", "default", "-"+tt.right)
				if err := tt.do(p); err == nil || redlatch.IsRetryable(err) {
					t.Errorf("without %s: %v", tt.right, err)
				}
				s.MustDo("ACL", "SETUSER", "default", "+"+tt.right)
				free := 0
				if !locktest.Within(locktest.Generous, func() bool { free, _ = p.Available(bg); return free == 1 }) {
					t.Errorf("without %s: after %v %d are free", tt.right, locktest.Generous, free)
				}
			}
		})
	}
}
