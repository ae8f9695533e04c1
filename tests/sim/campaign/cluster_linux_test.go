package campaign

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/sim"
)

// apart is the longest time between two keys of a slot that moves.
const apart = 1500 * time.Millisecond

// cluster has three primaries with a replica each.
func cluster(t *testing.T, kind testserver.Kind, _ *rand.Rand, args ...string) place {
	all := testserver.StartCluster(t, kind, args...)
	s := &set{T: t, nodes: all.Nodes, dead: all.DeadAfter}
	name := sim.Object(0) // what the play is about
	s.first = func() *testserver.Server { return all.PrimaryOf(name) }
	s.agree = func() bool {
		said := map[string]bool{}
		for _, n := range all.Nodes {
			said[slotsOf(n)] = true
		}
		return len(said) == 1 && !said[""]
	}
	s.asks = func(r *testserver.Server) {
		s.within("a replica takes over", func() bool { return ask(r, "CLUSTER", "FAILOVER", "TAKEOVER") == "OK" })
	}
	turn := func(strike func(time.Duration, *rand.Rand)) func(time.Duration, *rand.Rand) { // each is about one of the objects
		return func(d time.Duration, own *rand.Rand) {
			name = sim.Object(own.IntN(2))
			strike(d, own)
		}
	}
	faults := append(s.faults(), serverFault{what: "slot moves", strike: func(_ time.Duration, own *rand.Rand) {
		m := all.MarkSlot(name)
		time.Sleep(upTo(own, apart))
		for keys := m.Keys(); len(keys) > 0; keys = m.Keys() {
			m.Carry(keys[own.IntN(len(keys))])
			time.Sleep(upTo(own, apart))
			if own.IntN(8) == 0 { // workers make new keys there for as long as it takes
				break
			}
		}
		m.Finish()
		s.within("all are settled", s.settled)
	}})
	for i := range faults {
		faults[i].strike = turn(faults[i].strike)
	}
	return place{topology: "Cluster", nodes: all.Nodes, role: role{Addrs: all.Addrs(), Cluster: true}, faults: faults}
}

// slotsOf returns which primary has which slots, as a node says, or nothing if it
// does not know it of all.
func slotsOf(n *testserver.Server) string {
	v, err := n.Do("CLUSTER", "SLOTS")
	if err != nil || !strings.Contains(ask(n, "CLUSTER", "INFO"), "cluster_state:ok") {
		return ""
	}
	owners, slots := map[string]bool{}, 0
	ranges, _ := v.([]any)
	for _, r := range ranges {
		parts, _ := r.([]any)
		if len(parts) < 3 {
			return ""
		}
		from, _ := parts[0].(int64)
		to, _ := parts[1].(int64)
		node, _ := parts[2].([]any)
		if len(node) < 2 {
			return ""
		}
		owners[fmt.Sprint(from, to, node[1])] = true
		slots += int(to-from) + 1
	}
	if slots != 16384 {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(owners)), " ")
}
