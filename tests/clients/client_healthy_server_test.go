package clients

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// With each adapter a probe sees that a server stands still, gives up when its
// context ends, and sees that the server is back.
func TestHealthyFollowsARealServer(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		for _, adapter := range drivers.Adapters {
			t.Run(adapter.Name, func(t *testing.T) {
				c := locktest.ClientOf(t, adapter.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
				hold, err := c.Lock("orders").Acquire(bg)
				if err != nil {
					t.Fatal(err)
				}
				wantHealthy(t, c)
				s.Pause()
				ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
				err = c.Healthy(ctx)
				cancel()
				s.Resume()
				if !errors.Is(err, redlatch.ErrUnavailable) {
					t.Errorf("while the server stood still: %v", err)
				}
				wantHealthy(t, c)
				if err := hold.Release(bg); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// wantHealthy waits until a client is healthy: a connection has to be made, and a
// subscription to be confirmed.
func wantHealthy(t *testing.T, c *redlatch.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	for {
		err := c.Healthy(ctx)
		if err == nil {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}
