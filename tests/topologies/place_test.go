package topologies

import (
	"cmp"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// topologies start their servers. The names are the columns of the table in
// docs/guarantees.md.
var topologies = []struct {
	name  string
	start func(t *testing.T, k testserver.Kind) drivers.Place
}{
	{"one server", func(t *testing.T, k testserver.Kind) drivers.Place {
		return drivers.Single(testserver.Start(t, k).Addr())
	}},
	{"with a replica", func(t *testing.T, k testserver.Kind) drivers.Place {
		primary := testserver.Start(t, k)
		testserver.StartReplica(t, primary)
		return drivers.Single(primary.Addr())
	}},
	{"Sentinel", func(t *testing.T, k testserver.Kind) drivers.Place {
		return drivers.Sentinel(testserver.StartSentinels(t, k))
	}},
	{"Cluster", func(t *testing.T, k testserver.Kind) drivers.Place {
		return drivers.Cluster(testserver.StartCluster(t, k))
	}},
}

// client returns a client of its own, as another process has it.
func client(t *testing.T, d driver.Redis, cfg redlatch.Config) *redlatch.Client {
	t.Helper()
	cfg.CloseTimeout, cfg.AckTimeout = generous, cmp.Or(cfg.AckTimeout, 10*time.Second) // on a busy machine
	cfg.OutageTimeout = cmp.Or(cfg.OutageTimeout, generous)
	c, err := redlatch.New(d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// within waits until f is true.
func within(t *testing.T, what string, f func() bool) {
	t.Helper()
	if !locktest.Within(3*generous, f) {
		t.Fatalf("it takes too long: %s", what)
	}
}

func split(addr string) (host, port string) {
	host, port, _ = net.SplitHostPort(addr)
	return host, port
}

// role returns what a server says it is: master or slave.
func role(s *testserver.Server) string {
	v, err := s.Do("ROLE")
	if err != nil {
		return ""
	}
	list, _ := v.([]any)
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprint(list[0])
}

// linked says whether a server replicates another one.
func linked(s *testserver.Server) bool {
	v, err := s.Do("INFO", "replication")
	return err == nil && strings.Contains(fmt.Sprint(v), "master_link_status:up")
}

// errorsOf returns how often a server has refused to write because it is a
// replica.
func errorsOf(s *testserver.Server) (n int) {
	text, _ := s.MustDo("INFO", "errorstats").(string)
	_, rest, _ := strings.Cut(text, "errorstat_READONLY:count=")
	_, _ = fmt.Sscanf(rest, "%d", &n)
	return n
}
