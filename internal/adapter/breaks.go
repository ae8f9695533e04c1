package adapter

import (
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/driver"
)

// IsBreak says that a script that failed with err met a lost connection or a
// changed role.
func IsBreak(err *driver.RunError) bool {
	switch err.Code {
	case "":
		return err.Outcome == driver.Unknown
	case "READONLY", "MOVED", "MASTERDOWN":
		return true
	}
	return false
}

// Breaks knows the nodes, and calls the functions that were registered when a connection
// is lost. The zero value is for a single server, whose node is "".
type Breaks struct {
	nodes atomic.Pointer[nodes] // nil: a single server

	mu   sync.Mutex // guards all below
	last int
	told map[int]func(node string)
}

// Cluster says that there is a cluster. ask returns which node serves which slots. It
// must not wait for ever.
func (b *Breaks) Cluster(ask func() ([]Range, error)) { b.nodes.Store(newNodes(ask, b.tell)) }

// NodeOf returns the node that serves a key in a cluster, as far as is known, and "" else.
// It does no I/O.
func (b *Breaks) NodeOf(key string) string {
	if n := b.nodes.Load(); n != nil {
		name, _ := n.node(key)
		return name
	}
	return ""
}

// Learn waits until the nodes of a cluster are known, if they can be, for whoever lists them:
// until then NodeOf cannot tell them apart.
func (b *Breaks) Learn() {
	if n := b.nodes.Load(); n != nil {
		n.learn()
	}
}

// Register has f called at each break, until stop is called. f gets the node that broke,
// or "" if it may have been any.
func (b *Breaks) Register(f func(node string)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	id := b.last
	if b.told == nil {
		b.told = make(map[int]func(string))
	}
	b.told[id] = f
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.told, id)
	}
}

// Node reports that a script with these keys met a break, see [IsBreak].
func (b *Breaks) Node(keys []string) {
	if n := b.nodes.Load(); n != nil && len(keys) > 0 {
		if name, isNode := n.node(keys[0]); isNode {
			n.refresh(brokeNodes)
			b.tell(name)
			return
		}
	}
	b.All()
}

// All reports that a connection was lost, and that its node is not known.
func (b *Breaks) All() {
	if n := b.nodes.Load(); n != nil {
		n.refresh(brokeNodes)
	}
	b.tell("")
}

func (b *Breaks) tell(node string) {
	b.mu.Lock()
	told := make([]func(string), 0, len(b.told))
	for _, f := range b.told {
		told = append(told, f)
	}
	b.mu.Unlock()
	for _, f := range told {
		f(node)
	}
}
