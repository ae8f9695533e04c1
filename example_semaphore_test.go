package redlatch_test

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
)

// At most eight ports are used at a time, over all processes.
func ExampleClient_Semaphore() {
	ctx, ports := context.Background(), newClient().Semaphore("ports")
	_, _ = ports.TrySetPermits(ctx, 8, 0) // whoever comes first

	if err := ports.Acquire(ctx, 2, redlatch.Wait(time.Minute)); err != nil {
		return // redlatch.ErrBusy: not within a minute
	}
	defer func() { _ = ports.Release(ctx, 2) }()
	_ = ship(ctx, 42)
}
