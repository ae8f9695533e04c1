package topologies

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/heldport"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// In the middle of a failover a client may be connected to a replica, whose data
// are those of another time: it has never heard of the hold, but cannot know.
func TestAReplicaThatDoesNotKnowAHoldIsNotBelieved(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	primary := testserver.Start(t, testserver.Redis)
	replica := testserver.Start(t, testserver.Redis, "--replicaof", "127.0.0.1", heldport.Hold(t))
	for _, adapter := range drivers.Adapters {
		t.Run(adapter.Name, func(t *testing.T) {
			var now atomic.Pointer[testserver.Server]
			now.Store(primary)
			proxy := faultnet.New(func(ctx context.Context) (net.Conn, error) { return now.Load().Dial(ctx) })
			t.Cleanup(proxy.Close)
			addr, err := proxy.Listen()
			if err != nil {
				t.Fatal(err)
			}
			where := drivers.Single(addr)
			where.Timeout = 2 * time.Second
			c := client(t, adapter.Open(t, where), redlatch.Config{WatchdogTimeout: 20 * time.Second, OutageTimeout: time.Minute})
			ctx := t.Context()
			holds := map[string]*redlatch.Hold{}
			for kind, l := range map[string]*redlatch.Lock{
				"lock": c.Lock("lock"), "write": c.ReadWriteLock("write").Write(), "read": c.ReadWriteLock("read").Read(), "group": redisson.GroupLock(c, "group", []string{"x"}),
			} {
				if holds[kind], err = l.Acquire(ctx); err != nil {
					t.Fatal(kind, err)
				}
			}
			pool := semaphore.NewExpirable(c, "pool", 0)
			if _, err := pool.TrySetPermits(ctx, 1); err != nil {
				t.Fatal(err)
			}
			permit, err := pool.Acquire(ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			released, err := c.Lock("released").Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}

			before := errorsOf(replica)
			now.Store(replica)
			proxy.BreakAll()
			done := make(chan error, 1)
			go func() { done <- released.Release(context.WithoutCancel(ctx)) }()
			within(t, "the replica has been asked", func() bool { return errorsOf(replica) > before+5 })
			for kind, h := range holds {
				if err := h.Err(); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			if err := permit.Err(); err != nil {
				t.Errorf("permit: %v", err)
			}
			now.Store(primary)
			proxy.BreakAll()
			if err := <-done; err != nil {
				t.Errorf("Release: %v", err)
			}
			for kind, h := range holds {
				if err := h.Release(ctx); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			if err := permit.Release(ctx); err != nil {
				t.Errorf("permit: %v", err)
			}
			if _, err := pool.Delete(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
