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
