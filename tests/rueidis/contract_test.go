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

// options are for tests in which no time-out plays a part.
func options(addr string) rueidis.ClientOption { return within(addr, 20*time.Second) }

func within(addr string, timeout time.Duration) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, ConnWriteTimeout: timeout}
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
func use(t *testing.T, opt rueidis.ClientOption) driver.Redis {
	t.Helper()
	opt.DisableCache = true
	c, err := rueidis.NewClient(opt)
	if c == nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	d := redlatchrueidis.Use(c, opt)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestContractEmbedded(t *testing.T) { adaptertest.Embedded(t, open) }

func TestContractServers(t *testing.T) { adaptertest.Servers(t, open) }

func TestContractUse(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	drivertest.Run(t, drivertest.Config{New: openUse, Stays: true, Server: adaptertest.Start(testserver.Redis)})
}
