package redlatch_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
)

// The zero value is right for most programs. This one has a Redis with others, and
// work that must not hang for ever.
func ExampleConfig() {
	client, err := redlatch.New(openRedis(), redlatch.Config{
		Prefix:        "billing:",       // before each name in Redis
		MaxHold:       time.Hour,        // then a hold is lost, even if its process lives
		OutageTimeout: 30 * time.Second, // then a call fails with ErrUnavailable
		Identity:      redlatch.Identity{Name: "billing", Labels: map[string]string{"zone": "a"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

// What others read of a client, in their errors and in redlatch show.
func ExampleIdentity() {
	fmt.Println(redlatch.Identity{Name: "billing", Host: "host-7", PID: 4121})
	// Output: billing@host-7 pid 4121
}

// A Java service whose settings are not Redisson's defaults.
func ExampleRedisson() {
	client, err := redlatch.New(openRedis(), redlatch.Config{
		WatchdogTimeout: 20 * time.Second, // its lockWatchdogTimeout
		Redisson: redlatch.Redisson{
			Codec:               "org.redisson.codec.Kryo5Codec", // for redisson.GroupLock
			FairLockWaitTimeout: time.Minute,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

// Two replicas must know of each acquisition and of each renewal, so that a
// failover to one of them does not lose a lock.
func ExampleAcks() {
	client, err := redlatch.New(openRedis(), redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

// Servers of a cluster that know sharded Pub/Sub, and Java services that do not
// use it. With PubSubAuto this client would not hear their releases.
func ExamplePubSub() {
	client, err := redlatch.New(openRedis(), redlatch.Config{Redisson: redlatch.Redisson{PubSub: redlatch.PubSubClassic}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

// The work may take as long as its process lives, but not longer than an hour.
func ExampleMaxHold() {
	err := newClient().Lock("import", redlatch.MaxHold(time.Hour)).Do(context.Background(), func(ctx context.Context) error {
		return ship(ctx, 42) // ctx ends after an hour
	})
	if err != nil {
		log.Print(err) // then a *LostError with the reason LostMaxHold
	}
}

// Whoever waits reads in the error what the lock is held for.
func ExampleNote() {
	_ = newClient().Lock("import", redlatch.Note("the import of Friday")).Do(context.Background(), func(ctx context.Context) error {
		return ship(ctx, 42)
	})
}

// A function deep inside finds the hold that it runs under, and its fencing token.
func ExampleHoldFrom() {
	orders := newClient().Lock("orders:42", redlatch.Fenced())
	_ = orders.Do(context.Background(), func(ctx context.Context) error {
		return write(ctx, redlatch.HoldFrom(ctx).Token())
	})
}

// A writer gets its turn before readers that come after it. All say so, also those
// that only read.
func ExampleReadWriteLock_PreferWriters() {
	prices := newClient().ReadWriteLock("prices").PreferWriters()
	_ = prices.Read().Do(context.Background(), func(ctx context.Context) error { return ship(ctx, 42) })
}
