package goredis_test

import (
	"context"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/goredis"
)

func Example() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379", ReadTimeout: 2 * time.Second})
	defer rdb.Close()

	locks, err := redlatch.New(goredis.Use(rdb), redlatch.Config{})
	if err != nil {
		log.Print(err)
		return
	}
	defer locks.Close()

	err = locks.Lock("invoices").Do(context.Background(), func(ctx context.Context) error {
		return rdb.Incr(ctx, "invoices:next").Err() // ctx ends when the lock is lost
	})
	if err != nil {
		log.Print(err)
	}
}
