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

func options(addr string) client.ClientOption {
	return client.ClientOption{
		InitAddress:       []string{addr},
		ForceSingleClient: true,
		ConnWriteTimeout:  time.Second,
	}
}

func open(t *testing.T, addr string) redlatch.Redis {
	t.Helper()
	d, err := rueidis.New(options(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// openUse is open for a client of the program's own.
func openUse(t *testing.T, addr string) redlatch.Redis {
	t.Helper()
	return use(t, options(addr))
}

// use is newDriver for a client of the program's own, with rueidis' retries.
func use(t *testing.T, opt client.ClientOption) redlatch.Redis {
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
	drivertest.Run(t, drivertest.Config{New: open})
}

// withReplicas starts a server with two replicas.
func withReplicas(t *testing.T, kind testserver.Kind) (*testserver.Server, []drivertest.Replica) {
	t.Helper()
	s := testserver.Start(t, kind, "--repl-diskless-sync-delay", "0")
	var replicas []drivertest.Replica
	for range 2 {
		replicas = append(replicas, testserver.StartReplica(t, s))
	}
	return s, replicas
}

func TestContractServers(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers")
	}
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s, replicas := withReplicas(t, kind)
			drivertest.Run(t, drivertest.Config{New: open, Dial: s.Dial, Admin: admin, Restart: s.Restart, Sharded: true, Replicas: replicas})
		})
	}
}

func TestContractUse(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server")
	}
	s, replicas := withReplicas(t, testserver.Redis)
	drivertest.Run(t, drivertest.Config{New: openUse, Dial: s.Dial, Admin: admin, Restart: s.Restart, Sharded: true, Replicas: replicas})
}
