package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// Clustered are the faults of a cluster. Nothing is lost by them.
func Clustered() []string { return []string{"move", "cluster down"} }

// clustered is a lock, or a fenced one, whose scripts have more keys, or two
// locks, which are in two slots.
func clustered() kind {
	return kind{
		capacity: 1,
		choose: func(c *redlatch.Client, name string, lease time.Duration, own *chance) choice {
			if own.oneIn(4) {
				return choice{lock: redlatch.MultiLock(c.Lock(object(0), held(lease)...), c.Lock(object(1), held(lease)...)), lease: lease}
			}
			opts := held(lease)
			if own.oneIn(2) {
				opts = append(opts, redlatch.Fenced())
			}
			return choice{lock: c.Lock(name, opts...), lease: lease, nests: true}
		},
		whole: func(c *redlatch.Client, name string) choice { return choice{lock: c.Lock(name, redlatch.Fenced())} },
	}
}

// A cluster is servers that have some slots each. A slot moves from one to another
// key by key.
type cluster struct {
	nodes []*node
	wrong func(format string, args ...any)
	turn  chan struct{} // one slot moves at a time

	keys sync.Mutex // no key moves; it is locked before a node's mu

	mu     sync.Mutex  // it is locked after a node's mu
	owners map[int]int // of the slots that have moved: by slot, the nodes's number
	moving int         // the slot that moves, or -1
	to     int         // and to which node
}

func newCluster(nodes []*node, wrong func(string, ...any)) *cluster {
	c := &cluster{nodes: nodes, wrong: wrong, turn: make(chan struct{}, 1), owners: map[int]int{}, moving: -1}
	for _, s := range nodes {
		s.cluster = c
	}
	return c
}

// first is the node that had a slot at the beginning.
func first(slot, nodes int) int { return slot % nodes }

func (c *cluster) owner(slot int) (is, to int, moves bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is, ok := c.owners[slot]
	if !ok {
		is = first(slot, len(c.nodes))
	}
	return is, c.to, c.moving == slot
}

// refuses returns why a node, which is locked, does not execute a script, or
// nothing: as Redis does, by its keys. What is wrong is noted meanwhile, because
// the mutex of the history comes before a node's.
func (c *cluster) refuses(s *node, keys []string, asking bool) string {
	if c == nil || len(keys) == 0 {
		return ""
	}
	slot, missing := wire.Slot(keys[0]), 0
	for _, key := range keys {
		if wire.Slot(key) != slot {
			go c.wrong("a script has the keys %q, which are of several slots", keys)
		}
		if !s.mini.Exists(key) {
			missing++
		}
	}
	is, to, moves := c.owner(slot)
	switch {
	case is == s.site && !moves, is == s.site && missing == 0:
		return ""
	case is == s.site && missing == len(keys):
		return fmt.Sprintf("ASK %d %d", slot, to)
	case is == s.site:
		return "TRYAGAIN Multiple keys request during rehashing of slot"
	case asking && moves && to == s.site:
		if missing > 0 && len(keys) > 1 {
			return "TRYAGAIN Multiple keys request during rehashing of slot"
		}
		return ""
	}
	return fmt.Sprintf("MOVED %d %d", slot, is)
}

// broadcast sends messages that a node has published to the others.
func (c *cluster) broadcast(from *node, all []message) {
	if c == nil || len(all) == 0 {
		return
	}
	for _, s := range c.nodes {
		if s != from {
			go s.set(func() { s.deliverLocked(all) })
		}
	}
}

// has says whether a node has what is claimed.
func (c *cluster) has(of *claim) bool {
	c.keys.Lock()
	defer c.keys.Unlock()
	for _, s := range c.nodes {
		if s.has(of) {
			return true
		}
	}
	return false
}

// move moves the slot of a name, one key after the other. Nodes that cannot be
// reached wait.
func (c *cluster) move(name string, f fault) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	slot := wire.Slot(name)
	is, _, _ := c.owner(slot)
	to := (is + 1 + f.victim%(len(c.nodes)-1)) % len(c.nodes)
	c.set(func() { c.moving, c.to = slot, to })
	for left := true; left; {
		time.Sleep(f.own.upTo(300 * time.Millisecond))
		if c.nodes[is].answers() && c.nodes[to].answers() {
			left = c.moveOne(slot, c.nodes[is], c.nodes[to])
		}
	}
}

func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (s *node) answers() bool {
	up, _, pause := s.reachable()
	return up && pause <= 0
}

// moveOne moves a key of a slot, or if there is none the slot itself. It says
// whether there may be more.
func (c *cluster) moveOne(slot int, from, to *node) (more bool) {
	c.keys.Lock()
	defer c.keys.Unlock()
	from.mu.Lock() // nobody else locks two
	defer from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	from.tickLocked()
	to.tickLocked()
	for _, key := range from.mini.Keys() {
		if wire.Slot(key) == slot {
			to.putLocked(from.getLocked(key))
			from.mini.Del(key)
			return true
		}
	}
	c.set(func() { c.owners[slot], c.moving = to.site, -1 })
	return false
}

// A clusterLink is a process's way to a cluster: it knows which node has which
// slot, and learns when that is another one. It is a driver.
type clusterLink struct {
	links []*link

	mu    sync.Mutex
	knows map[int]int // as cluster.owners
}

func newClusterLink(links []*link) *clusterLink {
	return &clusterLink{links: links, knows: map[int]int{}}
}

func (l *clusterLink) at(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := wire.Slot(key)
	if n, ok := l.knows[slot]; ok {
		return n
	}
	return first(slot, len(l.links))
}

// Run sends a request to the node that has its keys, and once more to where that
// node sends it.
func (l *clusterLink) Run(_ context.Context, x *driver.Script, keys, args []string) (driver.Reply, error) {
	n := 0
	if len(keys) > 0 {
		n = l.at(keys[0])
	}
	r, err := l.links[n].run(x, keys, args, way{within: patience / 2})
	var re *driver.RunError
	if !errors.As(err, &re) || re.Code != "MOVED" && re.Code != "ASK" {
		return r, err
	}
	words := strings.Fields(redirection(re))
	slot, _ := strconv.Atoi(words[1])
	to, _ := strconv.Atoi(words[2])
	if re.Code == "MOVED" {
		l.mu.Lock()
		l.knows[slot] = to
		l.mu.Unlock()
		l.links[n].tellBroken()
	}
	return l.links[to].run(x, keys, args, way{asking: re.Code == "ASK", within: patience / 2})
}

// redirection returns what a server has said.
func redirection(err *driver.RunError) string {
	var said redirected
	_ = errors.As(err.Err, &said)
	return string(said)
}

// redirected is where a server sends a request.
type redirected string

func (r redirected) Error() string { return string(r) }

// OnBreak registers f for all nodes.
func (l *clusterLink) OnBreak(f func(node string)) (stop func()) {
	var stops []func()
	for i, x := range l.links {
		stops = append(stops, x.OnBreak(func(string) { f(nodeName(i)) }))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

func nodeName(n int) string { return fmt.Sprint("node ", n) }

// Node returns which node has a key, as far as the link knows.
func (l *clusterLink) Node(key string) string { return nodeName(l.at(key)) }

// Primaries are for listing, which nobody does here.
func (*clusterLink) Primaries(context.Context) ([]driver.Primary, error) { return nil, nil }

// Subscribe listens at the node that had the channel's slot at the beginning:
// messages reach all nodes.
func (l *clusterLink) Subscribe(channel string, sharded bool, h func(driver.Notice)) (stop func()) {
	return l.links[first(wire.Slot(channel), len(l.links))].Subscribe(channel, sharded, h)
}

// Traits says how long both requests may take.
func (*clusterLink) Traits() driver.Traits {
	return driver.Traits{Name: "sim", Timeout: patience, Cluster: true}
}
