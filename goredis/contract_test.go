package goredis_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/drivertest"
	"github.com/redlatch/redlatch/goredis"
	"github.com/redlatch/redlatch/internal/testserver"
)

var admin = drivertest.Admin{User: testserver.Admin, Password: testserver.AdminPassword}

// open leaves retries at go-redis' default, which would send a script four times.
func open(t *testing.T, addr string) redlatch.Redis {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, DialTimeout: time.Second, ReadTimeout: 1500 * time.Millisecond, WriteTimeout: 1500 * time.Millisecond,
	})
	t.Cleanup(func() {
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
	})
	return goredis.Use(rdb)
}

func TestContractEmbedded(t *testing.T) {
	drivertest.Run(t, drivertest.Config{New: open})
}

// withReplicas starts a server with two replicas.
func withReplicas(t *testing.T, kind testserver.Kind) (*testserver.Server, []drivertest.Replica) {
	t.Helper()
	s := testserver.Start(t, kind, "--repl-diskless-sync-delay", "0")
	var replicas []drivertest.Replica
	for range 2 {
		replicas = append(replicas, testserver.StartReplica(t, s))
	}
	return s, replicas
}

func TestContractServers(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers")
	}
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s, replicas := withReplicas(t, kind)
			drivertest.Run(t, drivertest.Config{New: open, Dial: s.Dial, Admin: admin, Restart: s.Restart, Sharded: true, Replicas: replicas})
		})
	}
}
