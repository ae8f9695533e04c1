package redlatchtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchtest"
)

// work is what is tested: it does its job until the lock is lost.
func work(ctx context.Context, locks *redlatch.Client, started chan<- *redlatch.Hold) error {
	hold, err := locks.Lock("job").Acquire(ctx)
	if err != nil {
		return err
	}
	started <- hold
	<-hold.Context().Done()
	return hold.Err()
}

// A test of what a program does when it loses a lock in the middle of its work. It
// takes milliseconds, and the hour in it is free.
func Example() {
	var t *testing.T // the test's

	synctest.Test(t, func(t *testing.T) {
		locks := redlatchtest.NewClient(t, redlatch.Config{})
		started, ended := make(chan *redlatch.Hold), make(chan error)
		go func() { ended <- work(context.Background(), locks, started) }()

		hold := <-started
		time.Sleep(time.Hour)
		redlatchtest.Lose(hold)
		if err := <-ended; !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("work ended with %v", err)
		}
	})
}

// A test of what a program does while its server is gone: it waits, and goes on.
// The outage takes no time.
func ExampleServer() {
	var t *testing.T // the test's

	synctest.Test(t, func(t *testing.T) {
		server := redlatchtest.NewServer(t)
		locks := server.Client(redlatch.Config{OutageTimeout: time.Minute})

		server.Stop()
		time.AfterFunc(5*time.Second, server.Start)
		hold, err := locks.Lock("job").Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.Release(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Where there is only a context, the hold is in it.
func ExampleLose() {
	var t *testing.T // the test's

	locks := redlatchtest.NewClient(t, redlatch.Config{})
	err := locks.Lock("job").Do(context.Background(), func(ctx context.Context) error {
		redlatchtest.Lose(redlatch.HoldFrom(ctx))
		return ctx.Err() // the work notices
	})
	if !errors.Is(err, redlatch.ErrLost) {
		t.Errorf("it ended with %v", err)
	}
}
