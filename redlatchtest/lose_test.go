package redlatchtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// The clock of a synctest bubble is decades behind the one outside. A server that is asked by the wrong one of them
// forgets all that it has.
func TestLoseLeavesTheServersOfOtherBubblesAlone(t *testing.T) {
	ctx := context.Background()
	held, lost := make(chan bool), make(chan bool)
	t.Run("bubble", func(t *testing.T) {
		t.Parallel()
		tell := sync.OnceFunc(func() { close(held) })
		defer tell()
		synctest.Test(t, func(t *testing.T) {
			c := NewClient(t, redlatch.Config{})
			h, err := c.Lock("mine").Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			p, err := c.ExpirableSemaphore("mine too").WithPermits(1).Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			tell()
			<-lost
			time.Sleep(15 * time.Second)
			if err := errors.Join(h.Err(), p.Err(), h.Release(ctx), p.Release(ctx)); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("outside", func(t *testing.T) {
		t.Parallel()
		c := NewClient(t, redlatch.Config{})
		<-held
		defer close(lost)
		for range 20 { // it is chance in which order the servers are asked
			h, err := c.Lock("other").Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			Lose(h)
			p, err := c.ExpirableSemaphore("another").WithPermits(1).Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			Lose(p)
		}
	})
}
