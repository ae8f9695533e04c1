package redisson_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redisson"
)

// In Java redisson.getMap("accounts", StringCodec.INSTANCE).getLock("42") has this
// name.
func ExampleEntry() {
	name := redisson.Entry{Object: "accounts", Key: "42"}.Lock()
	fmt.Println(name) // for client.Lock
	// Output: {accounts}:RE0IojEvPTY8Dofe3IkBNA:lock
}

// The accounts of a transfer are locked together, or not at all.
func ExampleGroupLock() {
	from, to := "DE02", "FR14"
	both := redisson.GroupLock(newClient(), "accounts", []string{from, to})
	_, err := both.TryDo(context.Background(), 2*time.Second, func(ctx context.Context) error {
		return ship(ctx, 42)
	})
	if err != nil {
		log.Print(err)
	}
}

// Very short sections of very many locks, where subscriptions would cost more
// than trying again.
func ExampleSpinLock() {
	counter := redisson.SpinLock(newClient(), "counter", redisson.Exponential(time.Millisecond, 32*time.Millisecond))
	_ = counter.Do(context.Background(), func(ctx context.Context) error { return ship(ctx, 1) })
}

func newClient() *redlatch.Client { return nil }

func ship(context.Context, int) error { return nil }

// A backoff of the program's own: soon at first, and then once in a second.
func ExampleBackoff() {
	counter := redisson.SpinLock(newClient(), "counter", func(n int) time.Duration {
		if n <= 10 {
			return time.Millisecond
		}
		return time.Second
	})
	_ = counter.Do(context.Background(), func(ctx context.Context) error { return ship(ctx, 1) })
}
