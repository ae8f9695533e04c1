package goredis_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/adaptertest"
)

// open leaves retries at go-redis' default, which would send a script four times.
func open(t *testing.T, addr string, timeout time.Duration) driver.Redis {
	t.Helper()
	return use(t, redis.NewClient(&redis.Options{Addr: addr, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout}))
}

func TestContractEmbedded(t *testing.T) { adaptertest.Embedded(t, open) }

func TestContractServers(t *testing.T) { adaptertest.Servers(t, open) }
