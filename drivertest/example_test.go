package drivertest_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/drivertest"
)

// The whole test of an adapter: open is its function that makes a driver, with
// that time for a script.
func ExampleRun() {
	var t *testing.T // the test's

	drivertest.Run(t, drivertest.Config{
		New: func(t *testing.T, addr string, timeout time.Duration) driver.Redis {
			d, stop := open(addr, timeout)
			t.Cleanup(stop)
			return d
		},
	})
}

// The same with real servers, a new one for each test. What is left nil is not
// tested.
func ExampleServer() {
	var t *testing.T // the test's

	drivertest.Run(t, drivertest.Config{
		New: newDriver,
		Server: func(t *testing.T) drivertest.Server {
			server := start(t)
			return drivertest.Server{
				Dial:     server.dial,
				Admin:    drivertest.Admin{User: "tests", Password: "secret"},
				Restart:  server.restart,
				Sharded:  true,
				Replicas: func() []drivertest.Replica { return []drivertest.Replica{server.replica(), server.replica()} },
			}
		},
	})
}

// What is different in a cluster, beside what Run tests.
func ExampleRunCluster() {
	var t *testing.T // the test's

	cluster := startCluster(t)
	drivertest.RunCluster(t, drivertest.ClusterConfig{
		New:     func(t *testing.T) driver.Redis { return newDriver(t, cluster.nodes[0], 3*time.Second) },
		Fail:    cluster.killPrimaryOf,
		Sharded: true,
		Nodes:   cluster.nodes,
	})
}

// What a driver does when Sentinel puts a replica in the place of the primary.
func ExampleRunFailover() {
	var t *testing.T // the test's

	sentinels := startCluster(t)
	drivertest.RunFailover(t, drivertest.FailoverConfig{
		New:  func(t *testing.T) driver.Redis { return newDriver(t, sentinels.nodes[0], 3*time.Second) },
		Fail: func() { sentinels.killPrimaryOf("") },
	})
}

func newDriver(t *testing.T, addr string, timeout time.Duration) driver.Redis {
	d, stop := open(addr, timeout)
	t.Cleanup(stop)
	return d
}

type process struct{}

func start(*testing.T) *process { return nil }

func (*process) dial(context.Context) (net.Conn, error) { return nil, nil } //nolint:nilnil // never called

func (*process) restart() {}

func (*process) replica() drivertest.Replica { return nil }

type cluster struct{ nodes []string }

func startCluster(*testing.T) *cluster { return nil }

func (*cluster) killPrimaryOf(string) {}

func open(string, time.Duration) (driver.Redis, func()) { return nil, func() {} }
