package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
)

// One waits until three workers are ready, wherever they run.
func ExampleClient_CountDownLatch() {
	ctx, ready := context.Background(), newClient().CountDownLatch("workers:ready")
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

// Four processes go from step to step together.
func ExampleClient_Barrier() {
	ctx, step := context.Background(), newClient().Barrier("simulation:step", 4)
	for range 100 {
		// ... work on this step ...
		index, err := step.Await(ctx)
		if errors.Is(err, redlatch.ErrBroken) {
			log.Print("one of the others is gone: ", err)
			return
		} else if err != nil {
			log.Print(err)
			return
		}
		if index == 0 {
			fmt.Println("all have come, and this one was the last")
		}
	}
}
