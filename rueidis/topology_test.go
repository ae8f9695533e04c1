package rueidis_test

import (
	"testing"
	"time"

	client "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/drivertest"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/rueidis"
)

// What a closed cluster client leaves for some seconds: it closes connections to
// nodes that are no more, and puts off asking for the topology.
const (
	cleanup = "github.com/redis/rueidis.(*clusterClient)._refresh.func2"
	refresh = "github.com/redis/rueidis.(*call).DelayDo.func1"
)

func newDriver(t *testing.T, opt client.ClientOption) redlatch.Redis {
	t.Helper()
	d, err := rueidis.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func TestContractCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers")
	}
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			c := testserver.StartCluster(t, kind)
			drivertest.RunCluster(t, drivertest.ClusterConfig{
				New: func(t *testing.T) redlatch.Redis {
					return newDriver(t, client.ClientOption{InitAddress: c.Addrs(), ConnWriteTimeout: time.Second})
				},
				Fail:    func(key string) { c.PrimaryOf(key).Kill() },
				Sharded: true,
				Leaves:  []string{cleanup, refresh},
			})
		})
	}
}

func TestContractSentinel(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers")
	}
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := testserver.StartSentinels(t, kind)
			drivertest.RunFailover(t, drivertest.FailoverConfig{
				New: func(t *testing.T) redlatch.Redis {
					return newDriver(t, client.ClientOption{
						InitAddress: s.Addrs(), ConnWriteTimeout: time.Second, Sentinel: client.SentinelOption{MasterSet: s.Name},
					})
				},
				Fail: s.Data[0].Kill,
			})
		})
	}
}
