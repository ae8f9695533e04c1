package redlatchgoredis

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

// Primaries implements [driver.Redis].
func (d *Driver) Primaries(ctx context.Context) ([]driver.Primary, error) {
	if d.single != nil {
		return []driver.Primary{primary{d.single, &d.creds}}, nil
	}
	d.breaks.Learn()
	var mu sync.Mutex
	var all []driver.Primary
	err := d.cluster.ForEachMaster(context.WithoutCancel(ctx), func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, primary{c, &d.creds})
		return nil
	})
	if err == nil && len(all) == 0 {
		err = adapter.ErrNoNodes
	}
	return all, err
}

// slots asks which node serves what.
func (d *Driver) slots() (ranges []adapter.Range, err error) {
	ctx, cancel := d.patient(context.Background())
	defer cancel()
	all, err := d.cluster.ClusterSlots(ctx).Result() //nolint:staticcheck // Redis 6.2 knows no CLUSTER SHARDS
	for _, r := range all {
		if len(r.Nodes) > 0 { // the primary, and its replicas
			ranges = append(ranges, adapter.Range{From: r.Start, To: r.End, Node: r.Nodes[0].ID})
		}
	}
	return ranges, err
}

type primary struct {
	rdb   *redis.Client
	creds *adapter.Credentials
}

// Scan implements [driver.Primary].
func (p primary) Scan(ctx context.Context, cursor uint64, kind, pattern string, count int) (keys []string, next uint64, err error) {
	keys, next, err = p.rdb.ScanType(context.WithoutCancel(ctx), cursor, pattern, int64(count), kind).Result()
	return keys, next, p.creds.Mask(err)
}
