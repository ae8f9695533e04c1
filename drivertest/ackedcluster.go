package drivertest

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/redlatch/redlatch/driver"
)

// testClusterAcked asks each primary for its own replicas.
func testClusterAcked(e *env, cfg ClusterConfig) {
	a, ok := e.r.(driver.Acker)
	if !ok {
		return
	}
	counter, _ := e.counter()
	for i := range 100 {
		key := fmt.Sprint(e.prefix, i)
		for want := range int64(2) {
			reply, _, err := e.ack(e.r, counter, []string{key}, nil, 1, moment)
			if err != nil || reply.Int != want+1 {
				e.Fatalf("%s: run %d answered %v, %v", key, want, reply, err)
			}
		}
	}
	_, err := e.runAcked(e.r, e.script("return 1"), []string{e.prefix + "{a}", e.prefix + "{b}"}, nil)
	e.failed(err, driver.Refused, "CROSSSLOT")
	if len(cfg.Nodes) == 0 {
		return
	}

	// One primary gets the replica of another.
	nodes := e.nodes(cfg)
	replica, from := e.replicaOf(cfg)
	to := nodes[0]
	if to.id == from {
		to = nodes[1]
	}
	count := func(n *node) int { return strings.Count(n.do("INFO", "replication"), "state=online") }
	counted := func() {
		e.Helper()
		for i := range 20 {
			key := fmt.Sprint(e.prefix, i)
			owner, _ := nodes.owner(e, nodes[0].do("CLUSTER", "KEYSLOT", key))
			e.eventually("the replicas of the primary of "+key, func() bool {
				n, err := a.Replicas(context.Background(), key)
				if err != nil {
					e.Fatal(err)
				}
				return n == count(owner)
			})
			if n := count(owner); n > 0 {
				e.eventually("all of them acknowledge", func() bool {
					_, acked, err := e.ack(e.r, counter, []string{key}, nil, n, patience)
					return err == nil && acked == n
				})
			}
		}
	}
	counted()
	before := count(to)
	replica.do("CLUSTER", "REPLICATE", to.id)
	e.eventually("the replica has another primary", func() bool { return count(to) == before+1 })
	counted()
	replica.do("CLUSTER", "REPLICATE", from)
	e.eventually("the replica has its primary again", func() bool { return count(to) == before })
	counted()
}

// replicaOf returns a replica, and the id of its primary.
func (e *env) replicaOf(cfg ClusterConfig) (replica *client, primary string) {
	e.Helper()
	for _, addr := range cfg.Nodes {
		c := newClient(e.T, func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) }, cfg.Admin)
		for line := range strings.Lines(c.do("CLUSTER", "NODES")) {
			if f := strings.Fields(line); len(f) > 3 && strings.Contains(f[2], "myself,slave") {
				return c, f[3]
			}
		}
	}
	e.Fatalf("none of the nodes %q is a replica", cfg.Nodes)
	return nil, ""
}

// testClusterAckedSlotMoves moves slots, of which RunAcked is the first to learn.
func testClusterAckedSlotMoves(e *env, cfg ClusterConfig) {
	if _, ok := e.r.(driver.Acker); !ok || len(cfg.Nodes) == 0 {
		return
	}
	nodes := e.nodes(cfg)
	counter, _ := e.counter()
	asked := e.newMove(nodes, counter, "ack-asked")
	runs := func(m *move, want int64) {
		e.Helper()
		if reply, err := e.runAcked(e.r, counter, m.keys[:1], nil); err != nil || reply.Int != want {
			e.Errorf("%q: got %v, %v; want %d", m.keys[0], reply, err, want)
		}
	}
	moved := sentOn(e, nodes, counter, func(m *move, round int64) {
		if round > 0 {
			runs(m, round)
			return
		}
		// The driver knows the nodes then, and the slots too if it has others for
		// RunAcked.
		if _, err := e.runAcked(e.r, e.script("return 1"), m.rest[:1], nil); err != nil {
			e.Error(err)
		}
	})
	runs(moved, 2)

	// One key stays, so that two of them are neither here nor there.
	both := []string{asked.keys[2], asked.keys[3]}
	if _, err := e.runAcked(e.r, counter, both[:1], nil); err != nil {
		e.Error(err)
	}
	asked.begin()
	if !nodes.redirect("ASK", func() { runs(asked, 1) }) {
		e.Error("no node answered with ASK: the test has tested nothing")
	}
	runs(asked, 2)
	_, err := e.runAcked(e.r, counter, both, nil)
	e.failed(err, driver.NotExecuted, "TRYAGAIN")
	if reply, err := e.runAcked(e.r, counter, both[:1], nil); err != nil || reply.Int != 2 {
		e.Errorf("%q: got %v, %v; want 2", both[0], reply, err)
	}
	if n, err := e.acker(e.r).Replicas(context.Background(), asked.keys[0]); err != nil || n < 0 {
		e.Errorf("Replicas while a slot moves: %d, %v", n, err)
	}
	asked.from.do("DEL", both[0])
	asked.end()
	runs(asked, 3)
}
