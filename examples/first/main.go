// Command first is the program of the README.
package main

import (
	"context"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

func main() {
	client, err := redlatchgoredis.Open("redis://localhost:6379", redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	err = client.Lock("orders:42").Do(context.Background(), func(ctx context.Context) error {
		log.Print("the lock is ours") // ctx ends if it is lost
		return nil
	})
	if err != nil {
		log.Print(err)
	}
}
