package rueidis_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/drivertest"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/tests/internal/adaptertest"
)

// What a closed cluster client leaves for some seconds: it closes connections to
// nodes that are no more, and puts off asking for the topology. One that was
// redirected closes its old connection in the same way.
const (
	cleanup = "github.com/redis/rueidis.(*clusterClient)._refresh.func2"
	refresh = "github.com/redis/rueidis.(*call).DelayDo.func1"

	redirect = "github.com/redis/rueidis.(*standalone).redirectToPrimary.func1"
)

// timeout is how long a topology waits for what is silent. What dies in these
// tests is not.
const timeout = 10 * time.Second

func newDriver(t *testing.T, opt rueidis.ClientOption) driver.Redis {
	t.Helper()
	d, err := redlatchrueidis.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// onEach runs a test on every kind of server, and with Use on one.
func onEach(t *testing.T, test func(*testing.T, testserver.Kind, func(*testing.T, rueidis.ClientOption) driver.Redis)) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, kind, newDriver)
		})
	}
	t.Run("use", func(t *testing.T) {
		t.Parallel()
		test(t, testserver.Redis, use)
	})
}

func TestContractCluster(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.Kind, open func(*testing.T, rueidis.ClientOption) driver.Redis) {
		c := testserver.StartCluster(t, kind)
		drivertest.RunCluster(t, drivertest.ClusterConfig{
			New: func(t *testing.T) driver.Redis {
				return open(t, rueidis.ClientOption{InitAddress: c.Addrs(), ConnWriteTimeout: timeout})
			},
			Fail: func(key string) {
				c.DeadAfter(time.Second)
				c.PrimaryOf(key).Kill()
			},
			Sharded: kind.Sharded(),
			Nodes:   c.Addrs(),
			Admin:   adaptertest.Admin,
		})
	})
}

func TestContractSentinel(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.Kind, open func(*testing.T, rueidis.ClientOption) driver.Redis) {
		s := testserver.StartSentinels(t, kind)
		drivertest.RunFailover(t, drivertest.FailoverConfig{
			New: func(t *testing.T) driver.Redis {
				return open(t, rueidis.ClientOption{
					InitAddress: s.Addrs(), ConnWriteTimeout: timeout, Sentinel: rueidis.SentinelOption{MasterSet: s.Name},
				})
			},
			Fail: func() {
				s.DeadAfter(time.Second / 2)
				s.Data[0].Kill()
			},
		})
	})
}
