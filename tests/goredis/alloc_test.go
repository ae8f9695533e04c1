//go:build !race

package goredis_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

// The race detector makes a sync.Pool forget on purpose, so this is not for it.
func TestAPairAllocatesLittleMoreThanTwoScripts(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: testserver.Start(t, testserver.Redis).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	c, err := redlatch.New(redlatchgoredis.Use(rdb), redlatch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx := t.Context()

	const one = "return 1"
	sha := redis.NewScript(one).Hash()
	if err := rdb.Eval(ctx, one, nil).Err(); err != nil {
		t.Fatal(err)
	}
	keys, take, release := []string{"orders:42"}, []any{"30000", "owner"}, []any{"owner", "channel", "0"}
	plain := testing.AllocsPerRun(2000, func() {
		for _, args := range [][]any{take, release} {
			if err := rdb.EvalSha(ctx, sha, keys, args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	})
	lock := c.Lock("orders:42")
	pair := testing.AllocsPerRun(2000, func() {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if pair > plain+10 {
		t.Errorf("to acquire and release a lock allocates %v times, and two scripts %v times", pair, plain)
	}
	t.Logf("allocations: %v, and %v of two scripts", pair, plain)
}
