package goredis_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/drivertest"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/tests/internal/adaptertest"
)

// redial sleeps for a second between attempts, and does not see that its pool was
// closed.
const redial = "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"

// timeout is how long a topology waits for what is silent. What dies in these
// tests is not.
const timeout = 10 * time.Second

func use(t *testing.T, rdb redis.UniversalClient) driver.Redis {
	t.Helper()
	t.Cleanup(func() {
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
	})
	return redlatchgoredis.Use(rdb)
}

func TestContractCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := testserver.StartCluster(t, kind)
			drivertest.RunCluster(t, drivertest.ClusterConfig{
				New: func(t *testing.T) driver.Redis {
					return use(t, redis.NewClusterClient(&redis.ClusterOptions{
						Addrs: c.Addrs(), DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout,
					}))
				},
				Fail: func(key string) {
					c.DeadAfter(time.Second)
					c.PrimaryOf(key).Kill()
				},
				Sharded: kind.Sharded(),
				Nodes:   c.Addrs(),
				Admin:   adaptertest.Admin,
			})
		})
	}
}

func TestContractSentinel(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := testserver.StartSentinels(t, kind)
			drivertest.RunFailover(t, drivertest.FailoverConfig{
				New: func(t *testing.T) driver.Redis {
					return use(t, redis.NewFailoverClient(&redis.FailoverOptions{
						MasterName: s.Name, SentinelAddrs: s.Addrs(),
						DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout,
					}))
				},
				Fail: func() {
					s.DeadAfter(time.Second / 2)
					s.Data[0].Kill()
				},
			})
		})
	}
}
