package campaign

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
)

// A place is the servers of a play, and what can go wrong with them.
type place struct {
	topology string
	nodes    []*testserver.Server // to all of which a process needs a way
	role     role                 // how a process finds them
	faults   []serverFault
}

// A serverFault goes wrong, and is over when strike returns. A loss is one after which the data may not be there.
type serverFault struct {
	what   string
	loss   bool
	strike func(d time.Duration)
}

// upTo returns a duration below d, a short one more often than a long one.
func upTo(chance *rand.Rand, d time.Duration) time.Duration {
	f := chance.Float64()
	return time.Duration(f * f * float64(d))
}

// topologies begins the servers of each, of a kind.
var topologies = []struct {
	name  string
	start func(t *testing.T, kind testserver.Kind, chance *rand.Rand, args ...string) place
}{
	{"single", single},
	{"Sentinel", sentinel},
	{"Cluster", cluster},
}

// single has one server, which has its data after a restart, or has not.
func single(t *testing.T, kind testserver.Kind, chance *rand.Rand, args ...string) place {
	restart := serverFault{what: "restart without data", loss: true}
	if chance.IntN(2) == 0 {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
		restart = serverFault{what: "restart"}
	}
	s := testserver.Start(t, kind, args...)
	restart.strike = func(time.Duration) { s.Restart() }
	return place{
		topology: "single", nodes: []*testserver.Server{s}, role: role{Addrs: []string{s.Addr()}},
		faults: []serverFault{restart, {what: "server stalls", strike: func(d time.Duration) { stall(s, d) }}},
	}
}

func stall(s *testserver.Server, d time.Duration) {
	s.Pause()
	time.Sleep(d)
	s.Resume()
}
