package adapter

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// IsBreak says that a script that failed with err met a lost connection or a
// changed role.
func IsBreak(err *driver.RunError) bool {
	return err.Code == "" && err.Outcome == driver.Unknown || noPrimary(err)
}

// noPrimary says that the server which has answered so is not the primary of the
// script's keys.
func noPrimary(err *driver.RunError) bool {
	return err.Code == "READONLY" || err.Code == "MOVED" || err.Code == "MASTERDOWN"
}

// Breaks knows the nodes, and calls the functions that were registered when a
// connection is lost. The zero value is for a single server, whose node is "".
type Breaks struct {
	// Leave closes the connections that the driver has dialled for scripts, and says
	// so. Follow closes those for subscriptions. They are set for a driver that knows
	// its server by a name alone, before its first script, and nil for one that finds
	// the primary in another way.
	Leave    func() (left bool)
	Follow   func()
	left     atomic.Pointer[time.Time] // when a server was last left; nil: subscriptions need not follow
	followed atomic.Pointer[time.Time] // when they last did; nil: never

	nodes atomic.Pointer[nodes] // nil: a single server

	mu   sync.Mutex // guards all below
	last int
	told map[int]func(node string)
}

// Cluster says that there is a cluster. ask returns which node serves which slots.
// It must not wait for ever.
func (b *Breaks) Cluster(ask func() ([]Range, error)) { b.nodes.Store(newNodes(ask, b.tell)) }

// NodeOf returns the node that serves a key in a cluster, as far as is known, and
// "" else. It does no I/O.
func (b *Breaks) NodeOf(key string) string {
	if n := b.nodes.Load(); n != nil {
		name, _ := n.node(key)
		return name
	}
	return ""
}

// Learn waits until the nodes of a cluster are known, if they can be, for whoever
// lists them: until then NodeOf cannot tell them apart.
func (b *Breaks) Learn() {
	if n := b.nodes.Load(); n != nil {
		n.learn()
	}
}

// Register has f called at each break, until stop is called. f gets the node that
// broke, or "" if it may have been any.
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

// Failed is told of each script that has failed, or of one of those that were sent
// together. It reports a break. If the server is no primary any longer, its name
// may lead to one by now: the driver leaves it.
func (b *Breaks) Failed(err *driver.RunError, keys []string) {
	if !IsBreak(err) {
		return
	}
	if b.Leave != nil && noPrimary(err) && b.Leave() {
		now := time.Now()
		b.left.Store(&now)
	}
	b.Node(keys)
}

// settling is how long subscriptions wait before they follow once more. By then
// the name has moved in all likelihood, or a script that writes was refused again.
const settling = 10 * time.Second

// Answered is told of each script that was answered. Subscriptions get no answer
// by which a driver could see where they lead, so they follow the scripts: before
// one is answered, the name leads nowhere that is of use.
//
// They follow the first one that is answered after a server was left, and, after
// settling, another one. For an answer proves little: a server that is no primary
// refuses a script that writes and answers one that only looks. If subscriptions
// have followed such an answer, and the name moves only then, perhaps no script is
// refused any more.
//
// Where a name leads to one node of a cluster, whose scripts are refused time and
// again, they do not follow more often than once a second.
func (b *Breaks) Answered() {
	left := b.left.Load()
	if left == nil {
		return
	}
	last, now := b.followed.Load(), time.Now() // by the monotonic clock: the other one may be set back
	pause, again := time.Second, last != nil && !last.Before(*left)
	if again {
		pause = settling
	}
	if last != nil && now.Sub(*last) < pause || !b.followed.CompareAndSwap(last, &now) {
		return // or another caller has them follow
	}
	if again {
		b.left.CompareAndSwap(left, nil)
	}
	b.Follow()
}

// Sent is told of scripts that were sent together, and of one of them that met a
// break; nil: none has.
func (b *Breaks) Sent(requests []*driver.Request, broken *driver.Request) {
	if broken != nil {
		b.Failed(driver.Failure(broken.Err), broken.Keys)
	} else if slices.ContainsFunc(requests, func(r *driver.Request) bool { return r.Err == nil }) {
		b.Answered()
	}
}

// Node reports that a script with these keys met a break.
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
