package redlatchvalkey_test

import (
	"context"
	"fmt"
	"log"

	"github.com/valkey-io/valkey-go"

	"github.com/redlatch/redlatch"
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
