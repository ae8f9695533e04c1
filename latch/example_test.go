package latch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/latch"
)

// One waits until three workers are ready, wherever they run.
func Example() {
	ctx, ready := context.Background(), latch.New(newClient(), "workers:ready")
	if _, err := ready.TrySetCount(ctx, 3); err != nil {
		log.Print(err)
	}

	// Each worker, when it is:
	_ = ready.CountDown(ctx)

	// And who waits for them:
	minute, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := ready.Wait(minute); errors.Is(err, redlatch.ErrBusy) {
		missing, _ := ready.Count(ctx)
		fmt.Println(missing, "workers are not ready yet")
	}
}

func newClient() *redlatch.Client { return nil }
