package goredis_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

func BenchmarkRun(b *testing.B) {
	rdb := redis.NewClient(&redis.Options{Addr: testserver.Start(b, testserver.Redis).Addr()})
	defer rdb.Close()
	s := driver.NewScript("one", "return 1")
	d, ctx, keys, args := redlatchgoredis.Use(rdb), context.Background(), []string{"key"}, []string{"30000", "owner"}
	if _, err := d.Run(ctx, s, keys, args); err != nil {
		b.Fatal(err)
	}
	b.Run("goredis", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if n, err := rdb.EvalSha(ctx, s.SHA(), keys, args[0], args[1]).Int64(); err != nil || n != 1 {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("driver", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if reply, err := d.Run(ctx, s, keys, args); err != nil || reply.Int != 1 {
				b.Fatal(reply, err)
			}
		}
	})
}
