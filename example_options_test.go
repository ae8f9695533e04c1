package redlatch_test

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/redlatch/redlatch"
)

// The lock is free after a minute at the latest, even if the work hangs. Extend
// raises the lease, and never shortens it.
func ExampleLease() {
	ctx := context.Background()
	hold, err := newClient().Lock("orders:42", redlatch.Lease(time.Minute)).Acquire(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()

	if err := ship(hold.Context(), 42); err != nil {
		return
	}
	if err := hold.Extend(ctx, 5*time.Minute); err != nil {
		log.Print(err) // the lease has ended, or the server does not answer
		return
	}
	_ = ship(hold.Context(), 43)
}

// The import lives through outages of four minutes. If its process dies, others
// wait for five minutes at most.
func ExampleWatchdog() {
	imports := newClient().Lock("import", redlatch.Watchdog(5*time.Minute))
	_ = imports.Do(context.Background(), func(ctx context.Context) error { return ship(ctx, 42) })
}

// A caller that has the lock already is refused. Without the option it would enter
// once more.
func ExampleNonReentrant() {
	orders := newClient().Lock("orders:42", redlatch.NonReentrant())
	_ = orders.Do(context.Background(), func(ctx context.Context) error {
		_, err := orders.TryAcquire(ctx, 0)
		if errors.Is(err, redlatch.ErrReentry) {
			log.Print("this code is inside of the lock already")
		}
		return ship(ctx, 42)
	})
}

// Two functions that know nothing of each other take the same lock for one order,
// as one thread does in Java.
func ExampleWithOwner() {
	ctx := redlatch.WithOwner(context.Background())
	orders := newClient().Lock("orders:42")
	work := func() error {
		hold, err := orders.Acquire(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = hold.Release(ctx) }()
		return ship(hold.Context(), 42)
	}
	_ = orders.Do(ctx, func(context.Context) error { return work() }) // work enters once more, by its owner
}

// For a readiness probe. A liveness probe must not ask: see the page about
// production.
func ExampleClient_Healthy() {
	ctx, cancel := context.WithTimeout(context.Background(), 800*time.Millisecond)
	defer cancel()
	if err := newClient().Healthy(ctx); err != nil {
		log.Print("not ready: ", err)
	}
}
