// Package drivers opens the driver of each adapter for the tests of this module,
// wherever the servers are.
package drivers

import (
	"cmp"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/valkey-io/valkey-go"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/redlatchvalkey"
)

// Lingering are functions of the client libraries whose goroutines end some time
// after the driver: they are connecting, or asking a cluster for its nodes.
var Lingering = []string{
	"github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial",
	"github.com/redis/rueidis.(*clusterClient)._refresh.func2",
	"github.com/redis/rueidis.(*call).DelayDo.func1",
	"github.com/redis/rueidis.(*standalone).redirectToPrimary.func1",
	"github.com/valkey-io/valkey-go.(*clusterClient)._refresh.func2",
	"github.com/valkey-io/valkey-go.(*call).DelayDo.func1",
	"github.com/valkey-io/valkey-go.(*standalone).redirectToPrimary.func1",
}

// A Place is an arrangement of servers, and how each adapter connects to it.
type Place struct {
	Goredis  redis.UniversalOptions
	Rueidis  rueidis.ClientOption
	Valkeygo valkey.ClientOption
	Timeout  time.Duration // what each adapter may take for a request; 0: DefaultTimeout
}

// DefaultTimeout is as long as a lease of 30 s allows, go-redis' 3 s for a
// connection included: a busy machine lets a server stand still for seconds.
const DefaultTimeout = 7 * time.Second

// Single is the place of one server.
func Single(addr string) Place {
	return Place{
		Goredis:  redis.UniversalOptions{Addrs: []string{addr}},
		Rueidis:  rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true},
		Valkeygo: valkey.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true},
	}
}

// Sentinel is the place of servers that sentinels watch.
func Sentinel(s *testserver.Sentinels) Place {
	return Place{
		Goredis:  redis.UniversalOptions{Addrs: s.Addrs(), MasterName: s.Name},
		Rueidis:  rueidis.ClientOption{InitAddress: s.Addrs(), Sentinel: rueidis.SentinelOption{MasterSet: s.Name}},
		Valkeygo: valkey.ClientOption{InitAddress: s.Addrs(), Sentinel: valkey.SentinelOption{MasterSet: s.Name}},
	}
}

// Cluster is the place of a cluster.
func Cluster(c *testserver.Cluster) Place {
	return Place{
		Goredis:  redis.UniversalOptions{Addrs: c.Addrs(), IsClusterMode: true},
		Rueidis:  rueidis.ClientOption{InitAddress: c.Addrs()},
		Valkeygo: valkey.ClientOption{InitAddress: c.Addrs()},
	}
}

// An Adapter makes drivers.
type Adapter struct {
	Name    string
	Package string
	open    func(p Place) (d driver.Redis, closeAll func() error, err error) // p.Timeout is set
}

// The adapters.
var (
	Goredis = Adapter{"goredis", "redlatchgoredis", func(p Place) (driver.Redis, func() error, error) {
		p.Goredis.DialTimeout, p.Goredis.ReadTimeout, p.Goredis.WriteTimeout = p.Timeout, p.Timeout, p.Timeout
		rdb := redis.NewUniversalClient(&p.Goredis)
		return redlatchgoredis.Use(rdb), rdb.Close, nil
	}}
	Rueidis = Adapter{"rueidis", "redlatchrueidis", func(p Place) (driver.Redis, func() error, error) {
		p.Rueidis.ConnWriteTimeout = p.Timeout
		return closing(redlatchrueidis.New(p.Rueidis))
	}}
	Valkeygo = Adapter{"valkeygo", "redlatchvalkey", func(p Place) (driver.Redis, func() error, error) {
		p.Valkeygo.ConnWriteTimeout = p.Timeout
		return closing(redlatchvalkey.New(p.Valkeygo))
	}}
)

// Adapters are all there are.
var Adapters = []Adapter{Goredis, Rueidis, Valkeygo}

func closing[D interface {
	full
	io.Closer
}](d D, err error) (driver.Redis, func() error, error) {
	return shared{d}, d.Close, err
}

// A shared driver stays open when its clients are closed: most tests have several.
type shared struct{ full }

type full interface {
	driver.Batcher
	driver.Acker
	driver.Sharer
	driver.Subscriber
}

// Open returns a driver that ends with the test.
func (a Adapter) Open(tb testing.TB, p Place) driver.Redis {
	tb.Helper()
	d, closeAll := a.OpenUntil(tb, p)
	tb.Cleanup(closeAll)
	return d
}

// OpenUntil returns a driver that ends with closeAll.
func (a Adapter) OpenUntil(tb testing.TB, p Place) (d driver.Redis, closeAll func()) {
	tb.Helper()
	p.Timeout = cmp.Or(p.Timeout, DefaultTimeout)
	d, end, err := a.open(p)
	if err != nil {
		tb.Fatal(err)
	}
	return d, func() {
		if err := end(); err != nil {
			tb.Error(err)
		}
	}
}
