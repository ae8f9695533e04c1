package redlatchgoredis_test

import (
	"context"
	"log"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

// The README opens with this program.
func Example() {
	client, err := redlatchgoredis.Open("redis://localhost:6379", redlatch.Config{})
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

// The program's own client serves redlatch, too. It stays open when the client of
// redlatch is closed.
func ExampleUse() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()

	client, err := redlatch.New(redlatchgoredis.Use(rdb), redlatch.Config{})
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close()
}

func ship(context.Context, int) error { return nil }

// Settings of the program, for what a URL does not say.
func ExampleOpenSettings() {
	settings, err := connect.Parse("rediss+sentinel://sentinel1,sentinel2/orders")
	if err != nil {
		log.Fatal(err)
	}
	settings.Credentials = connect.Fixed("app", connect.Secret(os.Getenv("REDIS_PASSWORD")))
	client, err := redlatchgoredis.OpenSettings(settings, redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

// Many callers at once, and no hook of the client needs their contexts.
func ExampleSharedPipelines() {
	client, err := redlatchgoredis.Open("redis://localhost:6379", redlatch.Config{}, redlatchgoredis.SharedPipelines())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}
