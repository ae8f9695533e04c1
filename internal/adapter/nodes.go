package adapter

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/wire"
)

const (
	slots = 16384
	// An answer is asked for again when it is that old, and after a break when it is
	// at least that old.
	oldNodes   = 10 * time.Second
	brokeNodes = time.Second
)

// ErrNoNodes is for a listing of a cluster, which would be empty.
var ErrNoNodes = errors.New("the cluster names no node that serves slots")

// A Range of slots that one node serves, as CLUSTER SLOTS tells it.
type Range struct {
	From, To int
	Node     string // its id
}

const rangeBits = 10

// rangeNames are those of sixteen ranges of slots. As long as no answer says which
// node serves a slot, its range stands for the node.
var rangeNames = func() (names [slots >> rangeBits]string) {
	for i := range names {
		names[i] = "slots " + strconv.Itoa(i<<rangeBits) + "-" + strconv.Itoa((i+1)<<rangeBits-1)
	}
	return names
}()

// nodes knows the nodes of a cluster. It asks for them now and then, in the
// background, and goes by the last answer. An old answer does no harm: a node only
// keeps apart what is likely to lie on different nodes, and no request is sent by
// it.
type nodes struct {
	ask   func() ([]Range, error)
	moved func(node string) // told of those that are not what they were
	start time.Time
	asked atomic.Int64 // how long after start, at least 1; 0: never
	now   atomic.Pointer[table]

	mu sync.Mutex // keeps answers in order
}

// A table is one answer: the node of each slot, as an index of names.
type table struct {
	asked int64
	nodes []string
	of    [slots]uint16
}

func newNodes(ask func() ([]Range, error), moved func(node string)) *nodes {
	n := &nodes{ask: ask, moved: moved, start: time.Now()}
	n.now.Store(newTable(0, nil))
	return n
}

// node returns the name of a key's node, without I/O, and whether the node is
// known: else the name is that of a range.
func (n *nodes) node(key string) (name string, isNode bool) {
	n.refresh(oldNodes)
	t := n.now.Load()
	i := t.of[wire.Slot(key)]
	return t.nodes[i], int(i) >= len(rangeNames)
}

// refresh asks in the background, if the last answer was asked for that long ago.
func (n *nodes) refresh(age time.Duration) {
	last, now := n.asked.Load(), int64(time.Since(n.start))+1
	if (last == 0 || now-last >= int64(age)) && n.asked.CompareAndSwap(last, now) {
		go n.load(now)
	}
}

// learn asks, and waits for the answer, unless there was one.
func (n *nodes) learn() {
	if n.now.Load().asked == 0 {
		now := int64(time.Since(n.start)) + 1
		n.asked.Store(now)
		n.load(now)
	}
}

func (n *nodes) load(now int64) {
	if ranges, err := n.ask(); err == nil && len(ranges) > 0 {
		n.set(newTable(now, ranges))
	}
}

func (n *nodes) set(t *table) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.now.Load()
	if old.asked > t.asked {
		return
	}
	n.now.Store(t)
	told := make(map[uint16]bool)
	for slot, node := range old.of {
		if !told[node] && old.nodes[node] != t.nodes[t.of[slot]] {
			told[node] = true
			n.moved(old.nodes[node])
		}
	}
}

// newTable makes a table in which the slots of no range have the nodes of
// rangeNames.
func newTable(asked int64, ranges []Range) *table {
	t := &table{asked: asked, nodes: append([]string(nil), rangeNames[:]...)}
	for slot := range t.of {
		t.of[slot] = uint16(slot >> rangeBits)
	}
	known := make(map[string]uint16)
	for _, r := range ranges {
		node, ok := known[r.Node]
		if !ok {
			node = uint16(len(t.nodes)) // a cluster has a thousand nodes at most
			known[r.Node] = node
			t.nodes = append(t.nodes, r.Node)
		}
		for slot := max(r.From, 0); slot <= min(r.To, slots-1); slot++ {
			t.of[slot] = node
		}
	}
	return t
}
