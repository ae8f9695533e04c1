package goredis

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A route returns the node at which to subscribe to a channel. It may do I/O,
// and is called by one goroutine at a time. attempt counts the failures since
// the last confirmation.
type route func(ctx context.Context, channel string, attempt int) (*redis.Client, error)

// alone is the route to a single server.
func alone(c *redis.Client) route {
	return func(context.Context, string, int) (*redis.Client, error) { return c, nil }
}

// owner is the route of sharded channels: the node that has the channel's slot.
func owner(c *redis.ClusterClient) route {
	return func(ctx context.Context, channel string, attempt int) (*redis.Client, error) {
		if attempt > 0 {
			c.ReloadState(ctx)
		}
		return c.MasterForKey(ctx, channel)
	}
}

// anyNode is the route of classic channels in a cluster, whose nodes pass every
// message on to all others: one node serves all channels, and another one after
// a failure.
func anyNode(c *redis.ClusterClient) route {
	var node *redis.Client
	last := 0
	return func(ctx context.Context, _ string, attempt int) (*redis.Client, error) {
		failed := attempt > last
		last = attempt
		if node != nil && !failed {
			return node, nil
		}
		var mu sync.Mutex
		var all []*redis.Client
		err := c.ForEachMaster(ctx, func(_ context.Context, m *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, m)
			return nil
		})
		switch {
		case err != nil:
			return nil, err
		case len(all) == 0:
			return nil, errors.New("goredis: the cluster has no primaries")
		}
		node = all[rand.IntN(len(all))] //nolint:gosec // spreads load
		return node, nil
	}
}
