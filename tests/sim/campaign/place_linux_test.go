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

// A serverFault goes wrong, and is over when strike returns. Of one after which
// the data may not be there, loss says what the simulation calls that. What own
// decides while it goes on changes nothing of what comes after it.
type serverFault struct {
	what   string
	loss   string
	strike func(d time.Duration, own *rand.Rand)
}

// The losses of a campaign, as sim.Losing has them.
const (
	wiped  = "wipe"
	failed = "failover"
	split  = "split"
)

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
	restart := serverFault{what: "server restarts without data", loss: wiped}
	if chance.IntN(2) == 0 {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
		restart = serverFault{what: "server restarts"}
	}
	s := testserver.Start(t, kind, args...)
	restart.strike = func(time.Duration, *rand.Rand) { s.Restart() }
	return place{
		topology: "single", nodes: []*testserver.Server{s}, role: role{Addrs: []string{s.Addr()}},
		faults: []serverFault{restart, {what: "server stalls", strike: func(d time.Duration, _ *rand.Rand) { stall(s, d) }}},
	}
}

func stall(s *testserver.Server, d time.Duration) {
	s.Pause()
	time.Sleep(d)
	s.Resume()
}
