package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
)

// An error says who has the lock, and for how long.
func ExampleBusyError() {
	// In a program err is that of TryAcquire, TryDo or Acquire.
	var err error = &redlatch.BusyError{Name: "orders:42", Kind: redlatch.KindLock, By: "billing@host-7 pid 4121", RetryAfter: 3 * time.Second}

	var busy *redlatch.BusyError
	if errors.As(err, &busy) {
		fmt.Println(busy.Name, "is with", busy.By)
		if busy.RetryAfter > 0 {
			fmt.Println("come back in", busy.RetryAfter)
		}
	}
	fmt.Println(errors.Is(err, redlatch.ErrBusy))
	// Output:
	// orders:42 is with billing@host-7 pid 4121
	// come back in 3s
	// true
}

// The work ends with its hold, and the cause of its context says how the hold was
// lost.
func ExampleLostError() {
	err := newClient().Lock("orders:42").Do(context.Background(), func(ctx context.Context) error {
		err := ship(ctx, 42)
		var lost *redlatch.LostError
		if errors.As(context.Cause(ctx), &lost) {
			log.Printf("%s was lost: %s", lost.Name, lost.Reason)
		}
		return err
	})
	if errors.Is(err, redlatch.ErrLost) {
		log.Print("somebody else may have it now: what was shipped has to be looked at")
	}
}

// An operator's release is no reason to try again, and the end of a server is one.
func ExampleLossReason() {
	err := newClient().Lock("orders:42").Do(context.Background(), func(ctx context.Context) error { return ship(ctx, 42) })
	var lost *redlatch.LostError
	if !errors.As(err, &lost) {
		return
	}
	switch lost.Reason {
	case redlatch.LostRevoked, redlatch.LostMaxHold:
		log.Print("somebody wants this to stop: ", err)
	case redlatch.LostExpired, redlatch.LostGone, redlatch.LostLease:
		log.Print("try again: ", err)
	}
}

// A job tries again for as long as that can help.
func ExampleIsRetryable() {
	orders := newClient().Lock("orders:42")
	for {
		ran, err := orders.TryDo(context.Background(), time.Second, func(ctx context.Context) error { return ship(ctx, 42) })
		if ran || !redlatch.IsRetryable(err) {
			log.Print("it is over: ", err)
			return
		}
		log.Print("once more: ", err)
	}
}

// The acquisition was given back, because a failover could have lost it.
func ExampleAckError() {
	_, err := newClient().Lock("orders:42").TryAcquire(context.Background(), time.Second)
	var ack *redlatch.AckError
	if errors.As(err, &ack) {
		log.Print("too few replicas know of it: ", ack)
	}
}
