package redlatch_test

import (
	"context"
	"log"
)

// Many may read a price list while nobody changes it.
func ExampleClient_ReadWriteLock() {
	ctx, prices := context.Background(), newClient().ReadWriteLock("prices")

	err := prices.Read().Do(ctx, func(ctx context.Context) error {
		return ship(ctx, 42) // ctx ends if the hold is lost
	})
	if err != nil {
		log.Print(err)
	}

	// Change it, and go on reading what was written: other readers get in as
	// soon as the write hold is released, and no other writer in between.
	write, err := prices.Write().Acquire(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	read, err := prices.Read().Acquire(write.Context())
	_ = write.Release(ctx)
	if err == nil {
		defer func() { _ = read.Release(ctx) }()
	}
}
