package redlatch_test

import (
	"cmp"
	"testing"
	"time"

	goredisclient "github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/goredis"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/rueidis"
)

// onRealServers runs a test with a server of each kind, at the same time.
func onRealServers(t *testing.T, test func(t *testing.T, s *testserver.Server)) {
	t.Helper()
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, testserver.Start(t, kind))
		})
	}
}

// clientOf returns a client that ends with the test. Unless cfg says otherwise, no
// server is so slow that its calls give up.
func clientOf(tb testing.TB, r driver.Redis, cfg redlatch.Config) *redlatch.Client {
	tb.Helper()
	cfg.OutageTimeout = cmp.Or(cfg.OutageTimeout, generous)
	c, err := redlatch.New(r, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// An adapter connects a driver to a server.
type adapter struct {
	name    string
	connect func(tb testing.TB, addr string) driver.Redis
}

var adapters = []adapter{{"goredis", connectGoredis}, {"rueidis", connectRueidis}}

// driverTimeout is as long as a lease of 30 s allows, go-redis' 3 s for a connection
// included: a busy machine lets a server stand still for seconds, and what is not
// answered in time is sent, and counted, twice.
const driverTimeout = 7 * time.Second

func connectGoredis(tb testing.TB, addr string) driver.Redis {
	tb.Helper()
	return goredis.Use(goredisFor(tb, addr, driverTimeout))
}

// rawGoredis is a client of the test's own, which waits for as long as it takes: go-redis would
// send again what is not answered in time.
func rawGoredis(tb testing.TB, s *testserver.Server) *goredisclient.Client {
	tb.Helper()
	return goredisFor(tb, s.Addr(), generous)
}

func goredisFor(tb testing.TB, addr string, timeout time.Duration) *goredisclient.Client {
	tb.Helper()
	rdb := goredisclient.NewClient(&goredisclient.Options{
		Addr: addr, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout,
	})
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func connectRueidis(tb testing.TB, addr string) driver.Redis {
	tb.Helper()
	d, err := rueidis.New(rueidisclient.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, ConnWriteTimeout: driverTimeout})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(d.Close)
	return d
}
