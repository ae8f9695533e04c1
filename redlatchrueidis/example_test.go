package redlatchrueidis_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

func Example() {
	redis, err := redlatchrueidis.New(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
	if err != nil {
		log.Print(err)
		return
	}
	defer redis.Close()

	locks, err := redlatch.New(redis, redlatch.Config{})
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
