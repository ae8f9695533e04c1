package redlatch_test

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/redlatch/redlatch"
)

// Two accounts at once, in whatever order they are named: nobody deadlocks.
func ExampleMultiLock() {
	client := newClient()
	both := redlatch.MultiLock(client.Lock("account:17"), client.Lock("account:4"))
	ran, err := both.TryDo(context.Background(), 5*time.Second, func(ctx context.Context) error {
		return ship(ctx, 17) // ctx ends if either lock is lost
	})
	if !ran && errors.Is(err, redlatch.ErrBusy) {
		log.Print("somebody has one of them: ", err)
	}
}

// Keys of one striped lock, several at a time, in whatever order.
func ExampleClient_StripedLock() {
	orders := newClient().StripedLock("orders", 64)
	hold, err := orders.For("42", "43").Acquire(context.Background())
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(context.Background()) }()
	_ = ship(hold.Context(), 42)
}

// Three primaries that know nothing of each other: the lock is held as long as
// two of them say so.
func ExampleRedLock() {
	var locks []*redlatch.Lock
	for range 3 {
		locks = append(locks, newClient().Lock("leader", redlatch.Lease(10*time.Second))) // each client has a Redis of its own
	}
	hold, err := redlatch.RedLock(locks...).Acquire(context.Background())
	if errors.Is(err, redlatch.ErrUnavailable) {
		log.Print("most of the servers are down: ", err)
		return
	} else if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(context.Background()) }()
	_ = ship(hold.Context(), 42)
}

// Every acquisition has a higher token than the one before. The resource that
// gets it with each write refuses a lower one than it has seen.
func ExampleFenced() {
	hold, err := newClient().Lock("orders:42", redlatch.Fenced()).Acquire(context.Background())
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(context.Background()) }()
	_ = write(hold.Context(), hold.Token())
}

func write(context.Context, int64) error { return nil }
