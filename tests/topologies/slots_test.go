package topologies

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A client for a single server has one endpoint in front of a cluster, which
// refuses requests about keys of several slots. Nothing is lost, and all that is
// done with one request elsewhere is done.
func TestOneEndpointInFrontOfShardsLosesNothing(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		for _, adapter := range drivers.Adapters {
			t.Run(string(kind)+"/"+adapter.Name, func(t *testing.T) {
				t.Parallel()
				s := testserver.StartOneShard(t, kind).Nodes[0]
				place := drivers.Single(s.Addr())
				place.Timeout = 3 * time.Second
				c := client(t, adapter.Open(t, place), redlatch.Config{WatchdogTimeout: 24 * time.Second})
				ctx := t.Context()
				var mu sync.Mutex
				held := map[string]holding{}
				hold := func(name string, x holding, err error) {
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					held[name] = x
				}
				var all sync.WaitGroup
				for what, of := range locktest.MemberKinds {
					all.Go(func() {
						for i := range 50 {
							name := fmt.Sprint(what, i)
							x, err := of(c, name).Acquire(ctx)
							hold(name, x, err)
						}
					})
				}
				all.Go(func() {
					for i := range 50 {
						name := fmt.Sprint("permit", i)
						sem := semaphore.NewExpirable(c, name, 0)
						_, err := sem.TrySetPermits(ctx, 1)
						if err != nil {
							t.Error(err)
						}
						x, err := sem.Acquire(ctx, 1)
						hold(name, x, err)
					}
				})
				all.Go(func() {
					var members []*redlatch.Lock
					for i := range 20 {
						members = append(members, c.Lock(fmt.Sprint("member", i)))
					}
					for i := range 2 {
						x, err := redlatch.MultiLock(members[10*i : 10*i+10]...).Acquire(ctx)
						hold(fmt.Sprint("multi", i), x, err)
					}
				})
				all.Wait()
				end := time.Now().Add(time.Minute) // two leases and a half
				var lost []string
				for name, x := range held {
					within(t, name+" is renewed", func() bool { return x.Err() != nil || x.Expires().After(end) })
					if err := x.Err(); err != nil {
						lost = append(lost, fmt.Sprint(name, ": ", err))
					}
				}
				slices.Sort(lost)
				if len(lost) > 0 {
					t.Errorf("%d of %d are lost: %q", len(lost), len(held), lost[:min(len(lost), 5)])
				}
				for name, x := range held {
					if err := x.Release(ctx); err != nil && !errors.Is(err, redlatch.ErrLost) {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
	}
}

// A client for a single server that is at one node of a cluster does not wait for
// what will never come.
func TestOneNodeOfAClusterIsNoServerForTheOthers(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			servers := testserver.StartCluster(t, kind)
			for _, adapter := range drivers.Adapters {
				ctx := t.Context()
				open := func(cfg redlatch.Config) *redlatch.Client {
					return client(t, adapter.Open(t, drivers.Single(servers.Nodes[0].Addr())), cfg)
				}
				c, hasty := open(redlatch.Config{}), open(redlatch.Config{OutageTimeout: 2 * time.Second})
				here, elsewhere := 0, 0
				for i := range 60 {
					name := fmt.Sprint(adapter.Name, i)
					start := time.Now()
					hold, err := c.Lock(name).Acquire(ctx)
					switch {
					case servers.PrimaryOf(name) != servers.Nodes[0]:
						elsewhere++
						if took := time.Since(start); took > generous/2 || err == nil || redlatch.IsRetryable(err) || !strings.Contains(err.Error(), "use a cluster client") {
							t.Errorf("%s: %s, which is elsewhere: after %v %v", adapter.Name, name, took, err)
						}
					case err != nil:
						t.Errorf("%s: %s, which is here: %v", adapter.Name, name, err)
					default:
						here++
						if err := hold.Release(ctx); err != nil {
							t.Errorf("%s: %s: %v", adapter.Name, name, err)
						}
					}
				}
				if here == 0 || elsewhere == 0 {
					t.Errorf("%d here, %d elsewhere", here, elsewhere)
				}
				name := adapter.Name
				for servers.PrimaryOf(name) != servers.Nodes[0] {
					name += "'"
				}
				hold, err := hasty.Lock(name).Acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := hold.Release(ctx); err != nil {
					t.Error(err)
				}
				servers.MoveSlot(name)
				if _, err = hasty.Lock(name).Acquire(ctx); !errors.Is(err, redlatch.ErrUnavailable) || !redlatch.IsRetryable(err) || !strings.Contains(err.Error(), "use a cluster client") {
					t.Errorf("%s: %s, which was here: %v", adapter.Name, name, err)
				}
			}
		})
	}
}
