package campaign

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
)

// sentinel has a primary with two replicas, and three sentinels.
func sentinel(t *testing.T, kind testserver.Kind, _ *rand.Rand, args ...string) place {
	all := testserver.StartSentinels(t, kind, args...)
	s := &set{T: t, nodes: all.Data, guards: all.Sentinels, dead: all.DeadAfter}
	s.first = func() *testserver.Server {
		p, err := all.Primary()
		if err != nil {
			return nil
		}
		return p
	}
	s.named = s.first
	s.agree = func() bool {
		p := s.first()
		if p == nil || len(s.followers(p)) != len(all.Data)-1 {
			return false
		}
		host, port, _ := net.SplitHostPort(p.Addr())
		return !slices.ContainsFunc(all.Sentinels, func(n *testserver.Server) bool {
			flags := ask(n, "SENTINEL", "MASTER", all.Name)
			return ask(n, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", all.Name) != fmt.Sprintf("[%s %s]", host, port) ||
				!strings.Contains(flags, " flags master ")
		})
	}
	s.asks = func(*testserver.Server) {
		s.within("a failover begins", func() bool { return ask(all.Sentinels[0], "SENTINEL", "FAILOVER", all.Name) == "OK" })
	}
	s.follow = func(n, p *testserver.Server) {
		if p == nil || n == p {
			ask(n, "REPLICAOF", "NO", "ONE")
			return
		}
		host, port, _ := net.SplitHostPort(p.Addr())
		ask(n, "REPLICAOF", host, port)
	}
	return place{
		topology: "Sentinel", nodes: slices.Concat(all.Data, all.Sentinels), role: role{Addrs: all.Addrs(), Master: all.Name},
		faults: append(s.faults(), serverFault{what: "sentinel restarts", strike: func(_ time.Duration, own *rand.Rand) {
			all.Sentinels[own.IntN(len(all.Sentinels))].Restart()
			s.settles()
		}}),
	}
}
