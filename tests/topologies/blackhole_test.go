package topologies

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// TestABlackHole silences one primary of a cluster, and its replica, for longer
// than a lease. Nobody who has something at another node notices.
func TestABlackHole(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	c := testserver.StartCluster(t, testserver.Redis)
	where := drivers.Cluster(c)
	where.Timeout = 500 * time.Millisecond
	silent := []*testserver.Server{c.Nodes[1], c.Nodes[4]}
	const lease = 30 * time.Second // a busy machine may be late by a third of it
	var all []*border
	for _, adapter := range drivers.Adapters {
		all = append(all, settle(t, adapter.Name, client(t, adapter.Open(t, where), redlatch.Config{WatchdogTimeout: lease})))
	}
	c.DeadAfter(time.Second)
	for _, s := range silent {
		s.Pause()
	}
	var longest time.Duration
	for end := time.Now().Add(lease + time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, b := range all {
			for _, x := range b.well {
				if left := time.Until(x.Expires()); x.Err() != nil || left < lease/4 {
					t.Fatalf("%s: %s, of a node that answers, has %v left of %v: %v", b.adapter, x.what, left, lease, x.Err())
				}
			}
			longest = max(longest, b.pass())
		}
	}
	t.Logf("meanwhile a free lock at a node that answers took %v at most", longest)
	for _, b := range all {
		for _, x := range b.silent {
			var lost *redlatch.LostError
			if !errors.As(x.Err(), &lost) || lost.Reason != redlatch.LostExpired {
				t.Errorf("%s: %s, of the silent node, ended with %v", b.adapter, x.what, x.Err())
			}
		}
	}
	for _, s := range silent {
		s.Resume()
	}
	for _, b := range all {
		for _, x := range b.well {
			if err := x.Release(t.Context()); err != nil {
				t.Errorf("%s: Release of %s: %v", b.adapter, x.what, err)
			}
		}
		for _, x := range b.silent {
			within(t, b.adapter+" acquires when the node and its replica answer again", func() bool {
				_, err := b.client.Lock(x.what + " again").Acquire(t.Context())
				if err != nil && !errors.Is(err, redlatch.ErrNotAcknowledged) { // the replica may be late
					t.Errorf("%s: Acquire when the node answers again: %v", b.adapter, err)
				}
				return err == nil || t.Failed()
			})
		}
	}
}

// A border is where a client has something at the last slots of one node and at
// the first slots of the next.
type border struct {
	*testing.T
	adapter      string
	client       *redlatch.Client
	free         []string // names of locks at nodes that will answer
	well, silent []*held
}

// settle makes a client acquire something of each type in slots at both ends of
// the node that will be silent, and beyond.
func settle(t *testing.T, adapter string, c *redlatch.Client) *border {
	t.Helper()
	// More of the silent node than there are batches in flight at a time.
	const wells, silents, width = 60, 600, 650
	from, to := 16384/3, 2*16384/3 // of the silent node
	b := &border{T: t, adapter: adapter, client: c}
	var mu sync.Mutex
	var wg sync.WaitGroup
	// Where slots lie, and how many are to have something there.
	sides := []struct {
		from, to, n int
		silent      bool
	}{
		{from - width, from, wells, false},
		{from, from + width, silents, true},
		{to - width, to, silents, true},
		{to, to + width, wells, false},
	}
	few := make(chan struct{}, 20)
	for i := range 60_000 {
		name := fmt.Sprint(adapter, " ", i)
		slot := wire.Slot(name)
		for j := range sides {
			side := &sides[j]
			if slot < side.from || slot >= side.to {
				continue
			}
			if side.n--; side.n < 0 {
				if !side.silent {
					b.free = append(b.free, name)
				}
				continue
			}
			few <- struct{}{}
			wg.Go(func() {
				defer func() { <-few }()
				x := &held{what: name, holding: b.acquire(i%4, name)}
				mu.Lock()
				defer mu.Unlock()
				if side.silent {
					b.silent = append(b.silent, x)
				} else {
					b.well = append(b.well, x)
				}
			})
		}
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return b
}

func (b *border) acquire(kind int, name string) (x holding) {
	var err error
	switch kind {
	case 0:
		x, err = b.client.Lock(name).Acquire(b.Context())
	case 1:
		x, err = b.client.ReadWriteLock(name).Read().Acquire(b.Context())
	case 2:
		x, err = b.client.ReadWriteLock(name).Write().Acquire(b.Context())
	default:
		s := semaphore.NewExpirable(b.client, name, 0)
		if _, err = s.TrySetPermits(b.Context(), 1); err == nil {
			x, err = s.Acquire(b.Context(), 1)
		}
	}
	if err != nil {
		b.Errorf("%s: Acquire of %q: %v", b.adapter, name, err)
	}
	return x
}

// pass acquires and releases a free lock, and returns how long that takes.
func (b *border) pass() time.Duration {
	start := time.Now()
	name := b.free[start.UnixMilli()%int64(len(b.free))]
	hold, err := b.client.Lock(name).Acquire(b.Context())
	if err == nil {
		err = hold.Release(b.Context())
	}
	if err != nil {
		b.Errorf("%s: %v", b.adapter, err)
	}
	return time.Since(start)
}
