package topologies

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Twins are a primary and its replica, which take each other's place.
type twins struct {
	primary, replica *testserver.Server
	swap             func()
}

// pairs have the rules of single servers, and those of a cluster.
var pairs = map[string]func(t *testing.T, k testserver.Kind) twins{
	"single servers": func(t *testing.T, k testserver.Kind) twins {
		a := testserver.Start(t, k, "--repl-diskless-sync-delay", "0")
		b := testserver.StartReplica(t, a)
		within(t, "a replica", func() bool { return linked(b) })
		return twins{a, b, func() { a.MustDo("FAILOVER") }}
	},
	"a shard of a cluster": func(t *testing.T, k testserver.Kind) twins {
		c := testserver.StartOneShard(t, k)
		return twins{c.Nodes[0], c.Nodes[1], func() { c.Nodes[1].MustDo("CLUSTER", "FAILOVER") }}
	},
}

// A name leads to a primary, which becomes a replica and keeps its connections;
// then the name leads to the new primary. Nothing is lost if that takes less than
// half a lease.
func TestNothingIsLostWhenANameMoves(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	const lease = 30 * time.Second
	for _, kind := range testserver.Kinds() {
		for what, start := range pairs {
			for _, adapter := range drivers.Adapters {
				t.Run(string(kind)+"/"+what+"/"+adapter.Name, func(t *testing.T) {
					t.Parallel()
					p := start(t, kind)
					var now atomic.Pointer[testserver.Server]
					now.Store(p.primary)
					name := faultnet.New(func(ctx context.Context) (net.Conn, error) { return now.Load().Dial(ctx) })
					t.Cleanup(name.Close)
					addr, err := name.Listen()
					if err != nil {
						t.Fatal(err)
					}
					open := func() driver.Redis { return adapter.Open(t, drivers.Single(addr)) }
					h := setUp(t, p.primary, open, "name", lease, lease)
					p.swap()
					within(t, "the replica is the primary", func() bool { return role(p.replica) == "master" && role(p.primary) == "slave" })
					now.Store(p.replica)
					moved := time.Now()
					h.server = p.replica
					for _, x := range h.holds {
						h.eventually(x.what+" is renewed", func() bool {
							return x.what == "lease" || x.Err() != nil || x.Expires().After(moved.Add(lease))
						})
					}
					h.wantHeld()
					h.wantWaiting()
					h.awaitListeners()
					h.giveUp()
					h.wantServed(soon, "barrier", "rate")
					h.arrive()
					h.wantServed(soon)
					h.leave()
				})
			}
		}
	}
}
