package redlatchvalkey_test

import (
	"context"
	"fmt"
	"log"

	"github.com/valkey-io/valkey-go"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redlatchvalkey"
)

func Example() {
	locks, err := redlatchvalkey.Open("valkey://localhost:6379", redlatch.Config{})
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

// The program's own client serves redlatch too.
func ExampleUse() {
	options := valkey.ClientOption{InitAddress: []string{"localhost:6379"}}
	client, err := valkey.NewClient(options)
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close()

	locks, err := redlatch.New(redlatchvalkey.Use(client, options), redlatch.Config{})
	if err != nil {
		log.Print(err)
		return
	}
	defer locks.Close()
}

// A client as Open makes it, but for one option of valkey-go.
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
	options := redlatchvalkey.Options(plan)
	options.PipelineMultiplex = -1 // one connection for all requests
	locks, err := plan.Open(func() (driver.Redis, error) { return redlatchvalkey.New(options) })
	if err != nil {
		log.Print(err)
		return
	}
	defer locks.Close()
}
