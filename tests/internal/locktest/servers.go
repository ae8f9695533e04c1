package locktest

import (
	"cmp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
)

// Commands returns how many commands a server has executed since the last look,
// those in scripts included.
func Commands(t *testing.T, s *testserver.Server) (n int) {
	t.Helper()
	for _, calls := range Executed(t, s) {
		n += calls
	}
	return n
}

// Executed is commands by their names.
func Executed(t *testing.T, s *testserver.Server) map[string]int {
	t.Helper()
	by := map[string]int{}
	stats, _ := s.MustDo("INFO", "commandstats").(string)
	for line := range strings.Lines(stats) {
		if name, rest, ok := strings.Cut(line, ":calls="); ok {
			calls, _, _ := strings.Cut(rest, ",")
			k, err := strconv.Atoi(calls)
			if err != nil {
				t.Fatalf("%q", line)
			}
			by[strings.TrimPrefix(name, "cmdstat_")] = k
		}
	}
	s.MustDo("CONFIG", "RESETSTAT")
	return by
}

// OnRealServers runs a test with a server of each kind, at the same time. It is a
// long story: a short test has fake time, and an adapter on a real server
// elsewhere.
func OnRealServers(t *testing.T, test func(t *testing.T, s *testserver.Server)) {
	t.Helper()
	Long(t)
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, testserver.Start(t, kind))
		})
	}
}

// ClientOf returns a client that ends with the test. Unless cfg says otherwise, no
// server is so slow that its calls give up.
func ClientOf(tb testing.TB, r driver.Redis, cfg redlatch.Config) *redlatch.Client {
	tb.Helper()
	cfg.OutageTimeout = cmp.Or(cfg.OutageTimeout, Generous)
	c, err := redlatch.New(r, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// RawGoredis is a client of the test's own, which waits for as long as it takes:
// go-redis would send again what is not answered in time.
func RawGoredis(tb testing.TB, s *testserver.Server) *redis.Client {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), DialTimeout: Generous, ReadTimeout: Generous, WriteTimeout: Generous})
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
