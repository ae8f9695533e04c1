package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
)

// At most eight ports are used at a time, over all processes.
func ExampleClient_Semaphore() {
	ctx, ports := context.Background(), newClient().Semaphore("ports")
	_, _ = ports.TrySetPermits(ctx, 8) // whoever comes first

	err := ports.Do(ctx, 2, func(ctx context.Context) error {
		return ship(ctx, 42)
	}, redlatch.Wait(time.Minute))
	if errors.Is(err, redlatch.ErrNotRun) {
		fmt.Println("not within a minute:", err)
	}
}
