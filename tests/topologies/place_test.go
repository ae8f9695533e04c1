package topologies

import (
	"cmp"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"
	"github.com/valkey-io/valkey-go"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/goredis"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/rueidis"
	"github.com/redlatch/redlatch/valkeygo"
)

// A place is an arrangement of servers, and how each adapter connects to it.
type place struct {
	goredis  *redis.UniversalOptions
	rueidis  rueidisclient.ClientOption
	valkeygo valkey.ClientOption
	timeout  time.Duration // what each adapter may take for a request; 0: driverTimeout
}

// driverTimeout is long enough for a busy machine.
const driverTimeout = 5 * time.Second

func (p place) requestTimeout() time.Duration { return cmp.Or(p.timeout, driverTimeout) }

// topologies start their servers. The names are the columns of the table in
// docs/guarantees.md.
var topologies = []struct {
	name  string
	start func(t *testing.T, k testserver.Kind) place
}{
	{"one server", func(t *testing.T, k testserver.Kind) place {
		return single(testserver.Start(t, k).Addr())
	}},
	{"with a replica", func(t *testing.T, k testserver.Kind) place {
		primary := testserver.Start(t, k)
		testserver.StartReplica(t, primary)
		return single(primary.Addr())
	}},
	{"Sentinel", func(t *testing.T, k testserver.Kind) place {
		return sentinelOf(testserver.StartSentinels(t, k))
	}},
	{"Cluster", func(t *testing.T, k testserver.Kind) place {
		return clusterOf(testserver.StartCluster(t, k))
	}},
}

func sentinelOf(s *testserver.Sentinels) place {
	return place{
		goredis:  &redis.UniversalOptions{Addrs: s.Addrs(), MasterName: s.Name},
		rueidis:  rueidisclient.ClientOption{InitAddress: s.Addrs(), Sentinel: rueidisclient.SentinelOption{MasterSet: s.Name}},
		valkeygo: valkey.ClientOption{InitAddress: s.Addrs(), Sentinel: valkey.SentinelOption{MasterSet: s.Name}},
	}
}

func clusterOf(c *testserver.Cluster) place {
	return place{
		goredis:  &redis.UniversalOptions{Addrs: c.Addrs(), IsClusterMode: true},
		rueidis:  rueidisclient.ClientOption{InitAddress: c.Addrs()},
		valkeygo: valkey.ClientOption{InitAddress: c.Addrs()},
	}
}

func single(addr string) place {
	return place{
		goredis:  &redis.UniversalOptions{Addrs: []string{addr}},
		rueidis:  rueidisclient.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true},
		valkeygo: valkey.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true},
	}
}

// adapters make drivers that end with the test.
var adapters = []struct {
	name string
	open func(t *testing.T, p place) redlatch.Redis
}{
	{"goredis", func(t *testing.T, p place) redlatch.Redis {
		opt := *p.goredis
		d := p.requestTimeout()
		opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = d, d, d
		rdb := redis.NewUniversalClient(&opt)
		t.Cleanup(func() {
			if err := rdb.Close(); err != nil {
				t.Error(err)
			}
		})
		return goredis.Use(rdb)
	}},
	{"rueidis", func(t *testing.T, p place) redlatch.Redis {
		opt := p.rueidis
		opt.ConnWriteTimeout = p.requestTimeout()
		d, err := rueidis.New(opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		return d
	}},
	{"valkeygo", func(t *testing.T, p place) redlatch.Redis {
		opt := p.valkeygo
		opt.ConnWriteTimeout = p.requestTimeout()
		d, err := valkeygo.New(opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		return d
	}},
}

// client returns a client of its own, as another process has it.
func client(t *testing.T, d redlatch.Redis, cfg redlatch.Config) *redlatch.Client {
	t.Helper()
	cfg.CloseTimeout, cfg.AckTimeout = generous, cmp.Or(cfg.AckTimeout, 10*time.Second) // on a busy machine
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
	for end := time.Now().Add(3 * generous); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it takes too long: %s", what)
		}
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

// errorsOf returns how often a server has refused to write because it is a replica.
func errorsOf(s *testserver.Server) (n int) {
	text, _ := s.MustDo("INFO", "errorstats").(string)
	_, rest, _ := strings.Cut(text, "errorstat_READONLY:count=")
	_, _ = fmt.Sscanf(rest, "%d", &n)
	return n
}
