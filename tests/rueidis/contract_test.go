package rueidis_test

import (
	"testing"
	"time"

	client "github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/drivertest"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/rueidis"
)

// options are for tests in which no time-out plays a part.
func options(addr string) client.ClientOption { return within(addr, 20*time.Second) }

func within(addr string, timeout time.Duration) client.ClientOption {
	return client.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, ConnWriteTimeout: timeout}
}

func open(t *testing.T, addr string, timeout time.Duration) driver.Redis {
	t.Helper()
	return newDriver(t, within(addr, timeout))
}

// openUse is open for a client of the program's own.
func openUse(t *testing.T, addr string, timeout time.Duration) driver.Redis {
	t.Helper()
	return use(t, within(addr, timeout))
}

// use is newDriver for a client of the program's own, with rueidis' retries.
func use(t *testing.T, opt client.ClientOption) driver.Redis {
	t.Helper()
	opt.DisableCache = true
	c, err := client.NewClient(opt)
	if c == nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	d := rueidis.Use(c, opt)
	t.Cleanup(d.Close)
	return d
}

var admin = drivertest.Admin{User: testserver.Admin, Password: testserver.AdminPassword}

func TestContractEmbedded(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	drivertest.Run(t, drivertest.Config{New: open})
}

func TestContractServers(t *testing.T) {
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, drivertest.Config{New: open, Server: servers(kind)})
		})
	}
}

func TestContractUse(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	drivertest.Run(t, drivertest.Config{New: openUse, Server: servers(testserver.Redis)})
}

func servers(kind testserver.Kind) func(*testing.T) drivertest.Server {
	return func(t *testing.T) drivertest.Server {
		s := testserver.Start(t, kind, "--repl-diskless-sync-delay", "0")
		return drivertest.Server{
			Dial: s.Dial, Admin: admin, Restart: s.Restart, Sharded: kind.Sharded(),
			Replicas: func() []drivertest.Replica {
				return []drivertest.Replica{testserver.StartReplica(t, s), testserver.StartReplica(t, s)}
			},
		}
	}
}
