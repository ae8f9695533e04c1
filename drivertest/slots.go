package drivertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// testClusterBatch runs batches of one node each, and one of keys that lie apart:
// nodes are not always what they were when they were asked for.
func testClusterBatch(e *env, _ ClusterConfig) {
	if _, ok := e.r.(driver.Batcher); !ok {
		return
	}
	counter, _ := e.counter()
	nodes := make(map[string][]string)
	for i := range 500 {
		key := fmt.Sprint(e.prefix, i)
		nodes[e.r.Node(key)] = append(nodes[e.r.Node(key)], key)
	}
	for round := range int64(2) { // the first time the script is unknown
		for node, keys := range nodes {
			requests := make([]*driver.Request, len(keys))
			for i, key := range keys {
				requests[i] = request(counter, []string{key})
			}
			e.runBatch(e.r, requests)
			for _, r := range requests {
				if r.Err != nil || r.Reply.Int != round+1 {
					e.Fatalf("%s, %q: got %v, %v; want %d", node, r.Keys, r.Reply, r.Err, round+1)
				}
			}
		}
	}
	var apart []*driver.Request
	for _, keys := range nodes {
		apart = append(apart, request(counter, keys[:1]))
	}
	e.runBatch(e.r, apart)
	for _, r := range apart {
		if r.Err != nil || r.Reply.Int != 3 {
			e.Fatalf("%q, which lie apart: got %v, %v; want 3", r.Keys, r.Reply, r.Err)
		}
	}
	a := e.prefix + "{a}"
	requests := []*driver.Request{
		request(counter, []string{a + "1"}),
		request(counter, []string{a + "2", e.prefix + "{b}"}),
		request(counter, []string{a + "3", a + "4"}),
	}
	e.runBatch(e.r, requests)
	e.answers(requests[0], number(1))
	e.failed(requests[1].Err, driver.Refused, "CROSSSLOT")
	e.answers(requests[2], number(1))
}

// testClusterSlotMoves moves slots to another node, of which the driver learns by
// MOVED or, in between, by ASK.
func testClusterSlotMoves(e *env, cfg ClusterConfig) {
	if len(cfg.Nodes) == 0 {
		return
	}
	nodes := e.nodes(cfg)
	counter, _ := e.counter()
	moved := sentOn(e, nodes, counter, func(m *move, round int64) { m.runs(round) })
	moved.runs(2)

	asked := e.newMove(nodes, counter, "asked")
	asked.runs(0)
	asked.begin()
	if !nodes.redirect("ASK", func() { asked.runs(1) }) {
		e.Error("no node answered with ASK: the test has tested nothing")
	}
	asked.runs(2)
	asked.end()
	asked.runs(3)
}

// sentOn moves a slot of which a driver learns by MOVED. Round 0 is before the
// move, and round 1 after it. A driver that has asked by itself meanwhile which
// node has what, because of something else, gets another slot.
func sentOn(e *env, nodes nodes, counter *driver.Script, runs func(m *move, round int64)) (m *move) {
	e.Helper()
	for try := range 5 {
		m = e.newMove(nodes, counter, fmt.Sprint("moved", try))
		runs(m, 0)
		m.begin()
		m.end()
		if nodes.redirect("MOVED", func() { runs(m, 1) }) {
			return m
		}
	}
	e.Error("no node answered with MOVED: the test has tested nothing")
	return m
}

// A move is that of one slot, which had no keys before. Slots that move are even,
// and the keys of those that stay have odd ones.
type move struct {
	e          *env
	nodes      nodes
	counter    *driver.Script
	keys, rest []string // of the slot; of others in its node
	slot       string
	from, to   *node
}

func (e *env) newMove(all nodes, counter *driver.Script, name string) *move {
	e.Helper()
	m := &move{e: e, nodes: all, counter: counter}
	var tag string
	for i := 0; m.from == nil; i++ { // until other tests have left nothing in the slot
		tag = fmt.Sprint(e.prefix, "{", name, i, "}")
		if slot := wire.Slot(tag); slot%2 == 0 {
			m.slot = fmt.Sprint(slot)
			if m.from, m.to = all.owner(e, m.slot); m.from.do("CLUSTER", "COUNTKEYSINSLOT", m.slot) != "0" {
				m.from = nil
			}
		}
	}
	for i := range 4 {
		m.keys = append(m.keys, fmt.Sprint(tag, i))
	}
	for i := 0; len(m.rest) < 8; i++ {
		if key := fmt.Sprint(e.prefix, name, i); wire.Slot(key)%2 == 1 && (e.r.Node(key) == e.r.Node(tag) || i > 10000) {
			m.rest = append(m.rest, key)
		}
	}
	return m
}

func (m *move) begin() {
	m.to.do("CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.from.id)
	m.from.do("CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.to.id)
}

func (m *move) end() {
	m.to.do("CLUSTER", "SETSLOT", m.slot, "NODE", m.to.id)
	m.from.do("CLUSTER", "SETSLOT", m.slot, "NODE", m.to.id)
	m.e.eventually("all nodes know the new owner of slot "+m.slot, func() bool {
		for _, n := range m.nodes {
			if from, _ := (nodes{n}).owner(m.e, m.slot); from == nil || from.id != m.to.id {
				return false
			}
		}
		return true
	})
}

// runs counts once more, by RunBatch if the driver can, and by Run. The keys of
// the slot are left alone in round 0, and created in round 1.
func (m *move) runs(round int64) {
	m.e.Helper()
	m.e.run(m.e.script("return 1"), m.rest[:1], nil) // the driver knows the nodes now
	var requests []*driver.Request
	for _, key := range m.rest {
		requests = append(requests, request(m.counter, []string{key}))
	}
	if round > 0 {
		for _, key := range m.keys[1:] {
			requests = append(requests, request(m.counter, []string{key}))
		}
	}
	if _, ok := m.e.r.(driver.Batcher); ok {
		m.e.runBatch(m.e.r, requests)
		for i, r := range requests {
			want := round
			if i < len(m.rest) {
				want++ // there was a round 0
			}
			if r.Err != nil || r.Reply.Int != want {
				m.e.Errorf("%q, round %d, in a batch: got %v, %v; want %d", r.Keys, round, r.Reply, r.Err, want)
			}
		}
	}
	if round > 0 {
		if got := m.e.run(m.counter, m.keys[:1], nil); got.Int != round {
			m.e.Errorf("%q, round %d: got %v", m.keys[0], round, got)
		}
	}
}

// A node is a primary of the cluster.
type node struct {
	*client

	id string
}

type nodes []*node

// nodes returns the primaries.
func (e *env) nodes(cfg ClusterConfig) (all nodes) {
	e.Helper()
	for _, addr := range cfg.Nodes {
		c := newClient(e.T, func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}, cfg.Admin)
		if strings.Contains(c.do("INFO", "replication"), "role:master") {
			all = append(all, &node{client: c, id: c.do("CLUSTER", "MYID")})
		}
	}
	if len(all) < 2 {
		e.Fatalf("%d of the nodes %q are primaries", len(all), cfg.Nodes)
	}
	return all
}

// owner returns the primary that serves a slot, as the first node sees it, and
// another one. A node that is not among ns has nothing but its id.
func (ns nodes) owner(e *env, slot string) (owner, other *node) {
	e.Helper()
	known := make(map[string]*node)
	for _, n := range ns {
		known[n.id] = n
	}
	for line := range strings.Lines(ns[0].do("CLUSTER", "NODES")) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.Contains(f[2], "master") {
			continue
		}
		n := known[f[0]]
		if n == nil {
			n = &node{id: f[0]}
		}
		if serves(f[8:], slot) {
			owner = n
		} else {
			other = n
		}
	}
	return owner, other
}

// serves finds a slot in ranges such as "0-99", "100" and, for one that moves,
// "[100->-id]".
func serves(ranges []string, slot string) bool {
	n, err := strconv.Atoi(slot)
	for _, r := range ranges {
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		low, errLow := strconv.Atoi(from)
		high, errHigh := strconv.Atoi(to)
		if errors.Join(err, errLow, errHigh) == nil && low <= n && n <= high {
			return true
		}
	}
	return false
}

// redirect says whether the nodes answer run with an error that sends the client
// elsewhere.
func (ns nodes) redirect(code string, run func()) bool {
	before := ns.redirected(code)
	run()
	return ns.redirected(code) > before
}

// redirected returns how often the nodes have answered with an error that sends
// the client elsewhere.
func (ns nodes) redirected(code string) (sum int) {
	for _, n := range ns {
		for line := range strings.Lines(n.do("INFO", "errorstats")) {
			if count, ok := strings.CutPrefix(strings.TrimSpace(line), "errorstat_"+code+":count="); ok {
				k, err := strconv.Atoi(count)
				if err != nil {
					n.tb.Error(err)
				}
				sum += k
			}
		}
	}
	return sum
}
