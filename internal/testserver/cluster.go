package testserver

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	slots        = 16384
	clusterLimit = 2 * time.Minute // for one step of the start, on a busy machine

	// calm is how long a server may be silent before the others take it for dead, once
	// all have been started: a busy machine lets one stand still for seconds.
	calm = 15 * time.Second
)

// Cluster is a Redis Cluster of three primaries with one replica each, or of one.
// A test that kills a primary calls DeadAfter before: with a second, failover
// takes about two.
type Cluster struct {
	Nodes []*Server // at first: 0, 1, 2 are primaries, 3, 4, 5 their replicas; or 0 is one, and 1 its replica
}

// Addrs returns the addresses of all nodes.
func (c *Cluster) Addrs() []string { return addrs(c.Nodes) }

func addrs(servers []*Server) []string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.Addr()
	}
	return all
}

// DeadAfter makes the nodes take a node for dead that has been silent for that
// long.
func (c *Cluster) DeadAfter(silent time.Duration) {
	for _, n := range c.Nodes {
		n.MustDo("CONFIG", "SET", "cluster-node-timeout", strconv.FormatInt(silent.Milliseconds(), 10))
	}
}

// StartCluster runs a cluster. When it returns, after about two seconds, every
// node knows all slots with a primary and a replica. extraArgs go to each node.
func StartCluster(tb testing.TB, k Kind, extraArgs ...string) *Cluster {
	tb.Helper()
	return startCluster(tb, k, 3, extraArgs...)
}

// StartOneShard runs a cluster of one primary, which has all slots, and its
// replica: its clients may take the primary for a single server, but it has the
// rules of a cluster.
func StartOneShard(tb testing.TB, k Kind, extraArgs ...string) *Cluster {
	tb.Helper()
	return startCluster(tb, k, 1, extraArgs...)
}

func startCluster(tb testing.TB, k Kind, primaries int, extraArgs ...string) *Cluster {
	tb.Helper()
	args := append([]string{
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0",
		"--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "no",
		"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
		// A replica shows in CLUSTER SLOTS with its first byte of replication, for
		// which the default is to wait 10 s.
		"--repl-ping-replica-period", "1",
	}, extraArgs...)
	c := &Cluster{}
	for range 2 * primaries {
		c.Nodes = append(c.Nodes, Start(tb, k, args...))
	}

	for i, n := range c.Nodes {
		n.MustDo("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < primaries {
			own := []string{"CLUSTER", "ADDSLOTS"} // Redis 6.2 knows no ranges
			for slot := i * slots / primaries; slot < (i+1)*slots/primaries; slot++ {
				own = append(own, strconv.Itoa(slot))
			}
			n.MustDo(own...)
		}
	}
	c.meet()
	began := time.Now()
	for _, n := range c.Nodes {
		await(tb, n, "all nodes met", func() error {
			err := expect(n, []string{"CLUSTER", "NODES"}, func(s string) bool {
				return strings.Count(s, "\n") == len(c.Nodes) && !strings.Contains(s, "handshake")
			})
			if err != nil && time.Since(began) > forgotten {
				c.meet()
				began = time.Now()
			}
			return err
		})
	}
	for i, n := range c.Nodes[primaries:] {
		id, _ := c.Nodes[i].MustDo("CLUSTER", "MYID").(string)
		await(tb, n, "it is a replica", func() error {
			_, err := n.Do("CLUSTER", "REPLICATE", id)
			return err
		})
	}
	for _, n := range c.Nodes {
		await(tb, n, "the cluster is complete", func() error { return complete(n, primaries) })
	}
	c.DeadAfter(calm)
	return c
}

// forgotten is after how long a handshake that a busy machine did not get done is
// begun anew: nodes forget it after cluster-node-timeout.
const forgotten = 5 * time.Second

// meet introduces all nodes to the first one.
func (c *Cluster) meet() {
	for _, n := range c.Nodes[1:] {
		host, port, _ := net.SplitHostPort(n.Addr())
		c.Nodes[0].MustDo("CLUSTER", "MEET", host, port)
	}
}

// complete returns nil when n sees the state "ok", and every range of slots
// with one primary and one replica.
func complete(n *Server, primaries int) error {
	if err := expect(n, []string{"CLUSTER", "INFO"}, func(s string) bool { return field(s, "cluster_state") == "ok" }); err != nil {
		return err
	}
	v, err := n.Do("CLUSTER", "SLOTS")
	if err != nil {
		return err
	}
	ranges, _ := v.([]any)
	if len(ranges) != primaries {
		return fmt.Errorf("CLUSTER SLOTS is %v", v)
	}
	for _, r := range ranges {
		if r, _ := r.([]any); len(r) != 4 { // from, to, primary, replica
			return fmt.Errorf("CLUSTER SLOTS is %v", v)
		}
	}
	return nil
}

// PrimaryOf returns the node that serves key now, as seen by one of the nodes that
// answer. The test fails if none does within a minute.
func (c *Cluster) PrimaryOf(key string) *Server {
	var found *Server
	tb := c.Nodes[0].tb
	tb.Helper()
	await(tb, c.Nodes[0], "a primary serves "+key, func() error {
		for _, n := range c.Nodes {
			if _, err := n.Do("GET", key); err == nil || strings.HasPrefix(err.Error(), "WRONGTYPE") {
				found = n
				return nil
			}
		}
		return errors.New("no node does")
	})
	return found
}

// expect runs a command whose reply is text and returns nil when ok likes it.
func expect(s *Server, args []string, ok func(string) bool) error {
	v, err := s.Do(args...)
	if err != nil {
		return err
	}
	text, _ := v.(string)
	if !ok(text) {
		return fmt.Errorf("%s says %s", strings.Join(args, " "), text)
	}
	return nil
}

// await asks again until f returns nil, and ends the test when it never does.
func await(tb testing.TB, s *Server, what string, f func() error) {
	tb.Helper()
	var err error
	for end := time.Now().Add(clusterLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	tb.Fatalf("testserver: %s at %s: not within %v that %s: %v", s.kind, s.addr, clusterLimit, what, err)
}

// MoveSlot gives the slot of key, with the keys in it, to the next primary, while
// clients use it.
func (c *Cluster) MoveSlot(key string) {
	c.Nodes[0].tb.Helper()
	c.MarkSlot(key).Finish()
}

// A SlotMove is a slot on its way from one primary to another: clients ask the old
// one, and are sent on for what it has not.
type SlotMove struct {
	From, To     *Server
	slot, fromID string
	toID         string
	primaries    []*Server
}

// MarkSlot begins to move the slot of key to the next primary. No key has moved
// yet.
func (c *Cluster) MarkSlot(key string) *SlotMove {
	tb := c.Nodes[0].tb
	tb.Helper()
	m := &SlotMove{From: c.PrimaryOf(key), slot: fmt.Sprint(c.Nodes[0].MustDo("CLUSTER", "KEYSLOT", key))}
	for _, n := range c.Nodes {
		if role, err := n.Do("ROLE"); err == nil && strings.HasPrefix(fmt.Sprint(role), "[master") {
			m.primaries = append(m.primaries, n)
			if n != m.From && m.To == nil {
				m.To = n
			}
		}
	}
	if m.To == nil {
		tb.Fatal("testserver: no other primary")
	}
	m.fromID, _ = m.From.MustDo("CLUSTER", "MYID").(string)
	m.toID, _ = m.To.MustDo("CLUSTER", "MYID").(string)
	m.To.MustDo("CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.fromID)
	m.From.MustDo("CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.toID)
	return m
}

// Keys returns up to 100 of the keys that have not moved.
func (m *SlotMove) Keys() (names []string) {
	keys, _ := m.From.MustDo("CLUSTER", "GETKEYSINSLOT", m.slot, "100").([]any)
	for _, key := range keys {
		names = append(names, fmt.Sprint(key))
	}
	return names
}

// Carry moves keys; what is not there any more is no matter.
func (m *SlotMove) Carry(keys ...string) {
	m.From.tb.Helper()
	host, port, _ := net.SplitHostPort(m.To.Addr())
	for _, key := range keys {
		m.From.MustDo("MIGRATE", host, port, key, "0", "60000", "AUTH2", Admin, AdminPassword)
	}
}

// epoch returns the newest epoch of the cluster that a node knows.
func (s *Server) epoch() int {
	text, _ := s.MustDo("CLUSTER", "INFO").(string)
	n, _ := strconv.Atoi(field(text, "cluster_current_epoch"))
	return n
}

// Finish moves what is left, and gives the slot to the new primary.
func (m *SlotMove) Finish() {
	m.From.tb.Helper()
	for keys := m.Keys(); len(keys) > 0; keys = m.Keys() {
		m.Carry(keys...)
	}
	// It claims the slot by an epoch of its own. Were another's the newer one, what
	// that has sent before would take the slot from it, and the keys.
	await(m.To.tb, m.To, "it knows the newest epoch", func() error {
		newest, known := 0, m.To.epoch()
		for _, n := range m.primaries {
			newest = max(newest, n.epoch())
		}
		if known < newest {
			return fmt.Errorf("it knows %d of %d", known, newest)
		}
		return nil
	})
	for _, n := range append([]*Server{m.To, m.From}, m.primaries...) {
		n.MustDo("CLUSTER", "SETSLOT", m.slot, "NODE", m.toID)
	}
}
