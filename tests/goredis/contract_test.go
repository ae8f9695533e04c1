package goredis_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/drivertest"
	"github.com/redlatch/redlatch/internal/testserver"
)

var admin = drivertest.Admin{User: testserver.Admin, Password: testserver.AdminPassword}

// open leaves retries at go-redis' default, which would send a script four times.
func open(t *testing.T, addr string, timeout time.Duration) driver.Redis {
	t.Helper()
	return use(t, redis.NewClient(&redis.Options{Addr: addr, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout}))
}

func TestContractEmbedded(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	drivertest.Run(t, drivertest.Config{New: open})
}

func TestContractServers(t *testing.T) {
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, drivertest.Config{New: open, Server: servers(kind)})
		})
	}
}

func servers(kind testserver.Kind) func(*testing.T) drivertest.Server {
	return func(t *testing.T) drivertest.Server {
		s := testserver.Start(t, kind, "--repl-diskless-sync-delay", "0")
		return drivertest.Server{
			Dial: s.Dial, Admin: admin, Restart: s.Restart, Sharded: kind.Sharded(),
			Replicas: func() []drivertest.Replica {
				return []drivertest.Replica{testserver.StartReplica(t, s), testserver.StartReplica(t, s)}
			},
		}
	}
}
