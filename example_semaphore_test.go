package redlatch_test

import (
	"context"
	"fmt"
	"time"
)

// At most eight ports are used at a time, over all processes.
func ExampleClient_Semaphore() {
	ctx, ports := context.Background(), newClient().Semaphore("ports")
	_, _ = ports.TrySetPermits(ctx, 8) // whoever comes first

	ran, err := ports.TryDo(ctx, 2, time.Minute, func(ctx context.Context) error {
		return ship(ctx, 42)
	})
	if !ran {
		fmt.Println("not within a minute:", err)
	}
}
