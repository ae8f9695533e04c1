package redlatchrueidis_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
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
