package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
)

// Four processes go from step to step together.
func Example() {
	ctx, step := context.Background(), barrier.New(newClient(), "simulation:step", 4)
	for range 100 {
		// ... work on this step ...
		index, err := step.Await(ctx)
		if errors.Is(err, barrier.ErrBroken) {
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

func newClient() *redlatch.Client { return nil }

// Who waits together with one that leaves is told so, and all begin anew.
func ExampleBrokenError() {
	ctx, step := context.Background(), barrier.New(newClient(), "simulation:step", 4)
	_, err := step.Await(ctx)
	var broken *barrier.BrokenError
	if errors.As(err, &broken) {
		log.Printf("%s was broken: %s, by %s", broken.Name, broken.Reason, broken.By)
	}
}
