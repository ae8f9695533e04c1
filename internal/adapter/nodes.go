package adapter

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/wire"
)

const (
	slots = 16384
	// An answer is asked for again when it is that old, and after a break when it is at
	// least that old.
	oldNodes   = 10 * time.Second
	brokeNodes = time.Second
)

// A Range of slots that one node serves, as CLUSTER SLOTS tells it.
type Range struct {
	From, To int
	Node     string // its id
}

const laneBits = 10

// As long as no answer says which node serves a slot, the slot's lane is one of sixteen ranges.
var laneNames = func() (names [slots >> laneBits]string) {
	for i := range names {
		names[i] = "slots " + strconv.Itoa(i<<laneBits) + "-" + strconv.Itoa((i+1)<<laneBits-1)
	}
	return names
}()

// nodes knows the lanes of a cluster. It asks for them now and then, in the
// background, and goes by the last answer. An old answer does no harm: a lane only
// keeps apart what is likely to lie on different nodes, and no request is sent by it.
type nodes struct {
	ask   func() ([]Range, error)
	moved func(lane string) // told of those that are not what they were
	start time.Time
	asked atomic.Int64 // how long after start, at least 1; 0: never
	now   atomic.Pointer[table]

	mu sync.Mutex // keeps answers in order
}

// A table is one answer: the lane of each slot, as an index of names.
type table struct {
	asked int64
	lanes []string
	of    [slots]uint16
}

func newNodes(ask func() ([]Range, error), moved func(lane string)) *nodes {
	n := &nodes{ask: ask, moved: moved, start: time.Now()}
	n.now.Store(newTable(0, nil))
	return n
}

// lane returns the lane of a key, without I/O, and whether that is a node.
func (n *nodes) lane(key string) (name string, isNode bool) {
	n.refresh(oldNodes)
	t := n.now.Load()
	i := t.of[wire.Slot(key)]
	return t.lanes[i], int(i) >= len(laneNames)
}

// refresh asks in the background, if the last answer was asked for that long ago.
func (n *nodes) refresh(age time.Duration) {
	last, now := n.asked.Load(), int64(time.Since(n.start))+1
	if (last == 0 || now-last >= int64(age)) && n.asked.CompareAndSwap(last, now) {
		go func() {
			if ranges, err := n.ask(); err == nil && len(ranges) > 0 {
				n.set(newTable(now, ranges))
			}
		}()
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
	for slot, lane := range old.of {
		if !told[lane] && old.lanes[lane] != t.lanes[t.of[slot]] {
			told[lane] = true
			n.moved(old.lanes[lane])
		}
	}
}

// newTable makes a table in which the slots of no range have the lanes of laneNames.
func newTable(asked int64, ranges []Range) *table {
	t := &table{asked: asked, lanes: append([]string(nil), laneNames[:]...)}
	for slot := range t.of {
		t.of[slot] = uint16(slot >> laneBits)
	}
	known := make(map[string]uint16)
	for _, r := range ranges {
		lane, ok := known[r.Node]
		if !ok {
			lane = uint16(len(t.lanes)) // a cluster has a thousand nodes at most
			known[r.Node] = lane
			t.lanes = append(t.lanes, r.Node)
		}
		for slot := max(r.From, 0); slot <= min(r.To, slots-1); slot++ {
			t.of[slot] = lane
		}
	}
	return t
}
