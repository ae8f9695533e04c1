package redlatchrueidis

import (
	"context"
	"sync"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

// Primaries implements [driver.Redis].
func (d *Driver) Primaries(ctx context.Context) ([]driver.Primary, error) {
	client, err := d.commands.wait()
	if err != nil {
		return nil, d.creds.Mask(err)
	}
	if client.Mode() != rueidis.ClientModeCluster {
		return []driver.Primary{primary{client, &d.creds}}, nil
	}
	// A node that does not say that it is a replica counts as a primary: asking
	// it for keys is how a listing finds out that it is incomplete.
	ctx = context.WithoutCancel(ctx)
	var mu sync.Mutex
	var all []driver.Primary
	var wg sync.WaitGroup
	nodes := client.Nodes()
	if len(nodes) == 0 { // a node that cannot tell yet was asked: rueidis asks again when a command needs a node
		d.breaks.Learn()
		nodes = client.Nodes()
	}
	if len(nodes) == 0 {
		return nil, adapter.ErrNoNodes
	}
	wg.Go(d.breaks.Learn)
	for _, node := range nodes {
		wg.Go(func() {
			role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
			if err == nil && len(role) > 0 {
				if s, _ := role[0].ToString(); s == "slave" {
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, primary{node, &d.creds})
		})
	}
	wg.Wait()
	return all, nil
}

// learnNodes asks which nodes a cluster has, and which slots each serves.
func (d *Driver) learnNodes() {
	if d.traits.Cluster {
		d.breaks.Cluster(d.slots)
	}
}

// slots asks which node serves what.
func (d *Driver) slots() (ranges []adapter.Range, err error) {
	ctx, release := d.bound(context.Background())
	defer release()
	client, err := d.commands.get(ctx)
	if err != nil {
		return nil, err
	}
	all, err := client.Do(ctx, atAnyPrimary(client.B().ClusterSlots().Build())).ToArray()
	for _, x := range all {
		r, _ := x.ToArray()
		if len(r) < 3 { // from, to, the primary, and its replicas
			continue
		}
		node, _ := r[2].ToArray()
		if len(node) < 3 { // host, port, id
			continue
		}
		from, _ := r[0].AsInt64()
		to, _ := r[1].AsInt64()
		id, _ := node[2].ToString()
		ranges = append(ranges, adapter.Range{From: int(from), To: int(to), Node: id})
	}
	return ranges, err
}

type primary struct {
	client rueidis.Client
	creds  *adapter.Credentials
}

// Scan implements [driver.Primary].
func (p primary) Scan(ctx context.Context, cursor uint64, kind, pattern string, count int) (keys []string, next uint64, err error) {
	cmd := p.client.B().Scan().Cursor(cursor).Match(pattern).Count(int64(count)).Type(kind).Build()
	e, err := p.client.Do(context.WithoutCancel(ctx), cmd).AsScanEntry()
	return e.Elements, e.Cursor, p.creds.Mask(err)
}
