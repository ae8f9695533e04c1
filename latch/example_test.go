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

// Three workers begin together: each does so when all three are ready.
func ExampleLatch_CountDownAndWait() {
	ctx, begin := context.Background(), latch.New(newClient(), "run:42:begin")
	if _, err := begin.TrySetCount(ctx, 3); err != nil { // the first of them sets it
		log.Print(err)
	}
	minute, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := begin.CountDownAndWait(minute)
	if errors.Is(err, latch.ErrCounted) { // this one was counted: do not count it again
		err = begin.Wait(ctx)
	}
	if err != nil {
		log.Print(err)
	}
}

func newClient() *redlatch.Client { return nil }
