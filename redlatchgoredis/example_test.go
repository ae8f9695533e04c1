package redlatchgoredis_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

// The README opens with this program.
func Example() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	client, err := redlatch.New(redlatchgoredis.Use(rdb), redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	err = client.Lock("orders:42").Do(context.Background(), func(ctx context.Context) error {
		return ship(ctx, 42) // ctx ends if the lock is lost
	})
	if err != nil {
		log.Print(err)
	}
}

func ship(context.Context, int) error { return nil }
