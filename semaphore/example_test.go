package semaphore_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/semaphore"
)

func newClient() *redlatch.Client { return nil }

func ship(ctx context.Context, port int) error { return ctx.Err() }

// At most eight ports are used at a time, over all processes.
func ExampleNew() {
	ctx, ports := context.Background(), semaphore.New(newClient(), "ports", 8)

	ran, err := ports.TryDo(ctx, 2, time.Minute, func(ctx context.Context) error {
		return ship(ctx, 42)
	})
	if !ran {
		fmt.Println("not within a minute:", err)
	}
}

// At most five at a time, over all processes, may use a device. The permit of a
// process that dies is free again after half a minute.
func ExampleNewExpirable() {
	ctx, scanners := context.Background(), semaphore.NewExpirable(newClient(), "scanners", 5)

	_, err := scanners.TryDo(ctx, 1, time.Minute, func(ctx context.Context) error {
		return ship(ctx, 42) // ctx ends if the permit is lost
	})
	if err != nil {
		log.Print(err)
	}
}
