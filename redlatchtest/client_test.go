package redlatchtest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestClientInBubble(t *testing.T) {
	leaktest.Check(t)
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(t, redlatch.Config{})
		ctx := context.Background()
		hold, err := c.Lock("job").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // 360 renewals
		if err := hold.Err(); err != nil {
			t.Fatalf("after an hour: %v", err)
		}
		if _, err := c.Lock("job").Try(ctx); !errors.Is(err, redlatch.ErrBusy) {
			t.Fatalf("a second acquisition: %v", err)
		}
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLose(t *testing.T) {
	leaktest.Check(t)
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(t, redlatch.Config{})
		hold, err := c.Lock("job").Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		Lose(hold)
		if err := hold.Err(); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("the hold says %v", err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("the loss took %v to be noticed", d)
		}
		defer func() {
			if recover() == nil {
				t.Error("a lost hold was lost again")
			}
		}()
		Lose(hold)
	})
}
