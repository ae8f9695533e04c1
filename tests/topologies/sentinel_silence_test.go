package topologies

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
)

// Every sentinel goes silent once, while a client library asks it who is the
// primary. A library that waits for it for ever follows no failover. (go-redis
// asks a sentinel only when it connects.)
func TestASilentSentinelKeepsNobodyFromAFailover(t *testing.T) {
	t.Parallel()
	s := testserver.StartSentinels(t, testserver.Redis)
	var clients []*redlatch.Client
	for _, adapter := range []drivers.Adapter{drivers.Rueidis, drivers.Valkeygo} {
		var armed, silent atomic.Bool
		ways := map[string]*faultnet.Proxy{}
		for _, n := range s.Sentinels {
			way := faultnet.New(n.Dial)
			t.Cleanup(way.Close)
			way.SetRule(faultnet.First(func(r faultnet.Request) bool {
				if !armed.Load() || r.Args[0] == "PING" {
					return false
				}
				silent.Store(true)
				return true
			}, faultnet.StallReply))
			ways[n.Addr()] = way
		}
		dial := func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if way := ways[addr]; way != nil {
				return way.Dial(ctx)
			}
			return dialer.DialContext(ctx, "tcp", addr)
		}
		place := drivers.Sentinel(s)
		place.Timeout = 3 * time.Second
		place.Rueidis.DialCtxFn, place.Valkeygo.DialCtxFn = dial, dial
		c := client(t, adapter.Open(t, place), redlatch.Config{OutageTimeout: soon})
		released(t, acquired(t, c.Lock(adapter.Name)))
		clients = append(clients, c)
		armed.Store(true)
		within(t, "a sentinel is silent", silent.Load)
	}
	old, err := s.Primary()
	if err != nil {
		t.Fatal(err)
	}
	var next *testserver.Server
	within(t, "another primary", func() bool {
		_, _ = s.Sentinels[0].Do("SENTINEL", "FAILOVER", s.Name) // refused while one goes on
		next, err = s.Primary()
		return err == nil && next != old && role(next) == "master"
	})
	host, port := split(next.Addr())
	ask(old, "REPLICAOF", host, port)
	for _, c := range clients {
		released(t, acquired(t, c.Lock("after the failover")))
	}
}
