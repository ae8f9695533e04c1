package redlatchrueidis_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

func Example() {
	locks, err := redlatchrueidis.Open("redis://localhost:6379", redlatch.Config{})
	if err != nil {
		log.Print(err)
		return
	}
	defer locks.Close()

	err = locks.Lock("invoices").Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("alone") // ctx ends when the lock is lost
		return nil
	})
	if err != nil {
		log.Print(err)
	}
}

// A client as Open makes it, but for one option of rueidis.
func ExampleOptions() {
	settings, err := connect.Parse("redis://localhost:6379")
	if err != nil {
		log.Print(err)
		return
	}
	plan, err := settings.Plan(redlatch.Config{})
	if err != nil {
		log.Print(err)
		return
	}
	options := redlatchrueidis.Options(plan)
	options.PipelineMultiplex = -1 // one connection for all requests
	locks, err := plan.Open(func() (driver.Redis, error) { return redlatchrueidis.New(options) })
	if err != nil {
		log.Print(err)
		return
	}
	defer locks.Close()
}

// The program's own client serves redlatch, too. It stays open when the client of
// redlatch is closed.
func ExampleUse() {
	options := rueidis.ClientOption{InitAddress: []string{"localhost:6379"}}
	client, err := rueidis.NewClient(options)
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close()
	locks, err := redlatch.New(redlatchrueidis.Use(client, options), redlatch.Config{})
	if err != nil {
		log.Print(err)
		return
	}
	defer locks.Close()
}
