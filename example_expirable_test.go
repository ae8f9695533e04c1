package redlatch_test

import (
	"context"
	"log"
	"time"
)

// At most five at a time, over all processes, may use a device. The permit of a
// process that dies is free again after half a minute.
func ExampleClient_ExpirableSemaphore() {
	ctx, scanners := context.Background(), newClient().ExpirableSemaphore("scanners")
	if _, err := scanners.TrySetPermits(ctx, 5); err != nil { // once; later calls change nothing
		log.Print(err)
	}

	_, err := scanners.TryDo(ctx, time.Minute, func(ctx context.Context) error {
		return ship(ctx, 42) // ctx ends if the permit is lost
	})
	if err != nil {
		log.Print(err)
	}
}
