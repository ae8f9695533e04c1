package redlatchgoredis

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A route returns the nodes at any of which a channel can be subscribed, the first
// choice first. It may do I/O, and is called by one goroutine at a time. anew says
// that what was known before may have led to failures.
type route func(channel string, anew bool) ([]*redis.Client, error)

// alone is the route to a single server.
func alone(c *redis.Client) route {
	return func(string, bool) ([]*redis.Client, error) { return []*redis.Client{c}, nil }
}

// owner is the route of sharded channels: the node that has the channel's slot.
func owner(c *redis.ClusterClient) route {
	return func(channel string, anew bool) ([]*redis.Client, error) {
		ctx := context.Background()
		if anew {
			c.ReloadState(ctx)
		}
		node, err := c.MasterForKey(ctx, channel)
		return []*redis.Client{node}, err
	}
}

// anyNode is the route of classic channels in a cluster, whose nodes pass every
// message on to all others. A random one comes first, which spreads load.
func anyNode(c *redis.ClusterClient) route {
	return func(string, bool) ([]*redis.Client, error) {
		var mu sync.Mutex
		var all []*redis.Client
		err := c.ForEachMaster(context.Background(), func(_ context.Context, m *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, m)
			return nil
		})
		if err == nil && len(all) == 0 {
			err = errors.New("redlatchgoredis: the cluster has no primaries")
		}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) //nolint:gosec // spreads load
		return all, err
	}
}
