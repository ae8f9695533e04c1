package adapter

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A world is a cluster, as it is asked for its nodes in fake time.
type world struct {
	*testing.T
	Breaks

	ranges []Range
	err    error
	takes  time.Duration
	asked  int

	mu   sync.Mutex // guards told
	told []string
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, ranges: []Range{{0, 9999, "a"}, {10000, 16383, "b"}}}
		w.Cluster(func() ([]Range, error) {
			w.asked++
			ranges, err := w.ranges, w.err
			time.Sleep(w.takes)
			return ranges, err
		})
		defer w.Register(func(node string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, node)
		})()
		f(w)
		time.Sleep(time.Hour) // what is in flight ends
	})
}

// Keys by their slots.
const at9712, at12182, at12739 = "{}foo", "foo", "123456789"

func (w *world) wantNode(key, want string) {
	w.Helper()
	if got := w.NodeOf(key); got != want {
		w.Errorf("the node of %q is %q, want %q", key, got, want)
	}
	synctest.Wait()
}

func (w *world) wantAsked(want int) {
	w.Helper()
	if w.asked != want {
		w.Errorf("asked %d times, want %d", w.asked, want)
	}
}

func (w *world) wantTold(what string, want ...string) {
	w.Helper()
	synctest.Wait()
	want = slices.Sorted(slices.Values(want))
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.told)
	if !slices.Equal(w.told, want) {
		w.Errorf("%s: told %q, want %q", what, w.told, want)
	}
	w.told = nil
}

// Until the nodes are known a range of slots stands for each.
func TestNodesAreKnown(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes = time.Second
		w.wantNode("", "slots 0-1023")
		w.wantNode(at12739, "slots 12288-13311")
		time.Sleep(2 * time.Second)
		w.wantTold("what has other nodes now", rangeNames[:]...)
		w.wantNode(at9712, "a")
		w.wantNode(at12739, "b")
		w.wantNode("", "a")
		w.wantAsked(1)
	})
}

// Whoever lists nodes waits until they are known, once.
func TestNodesAreLearned(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes = time.Second
		w.err = errors.New("no")
		w.Learn()
		w.wantNode(at9712, rangeNames[9])
		w.err = nil
		w.Learn()
		w.wantNode(at9712, "a")
		w.wantAsked(2)
		w.Learn()
		w.wantAsked(2)
	})
}

// Who does not answer is asked again later, and what was known is believed.
func TestNodesAreAskedForAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.err = errors.New("no")
		w.wantNode(at9712, rangeNames[9])
		w.wantNode(at9712, rangeNames[9])
		w.wantAsked(1)
		w.err = nil
		time.Sleep(oldNodes)
		w.NodeOf(at9712)
		synctest.Wait()
		w.wantNode(at9712, "a")
		w.wantAsked(2)
		time.Sleep(oldNodes)
		w.err = errors.New("no")
		w.wantNode(at9712, "a")
		w.wantNode(at9712, "a")
		w.wantAsked(3)
		w.ranges, w.err = nil, nil
		time.Sleep(oldNodes)
		w.wantNode(at9712, "a")
		w.wantNode(at9712, "a")
	})
}

// Whoever was in a node that has lost a slot is told, and nobody else.
func TestSlotsMove(t *testing.T) {
	inWorld(t, func(w *world) {
		w.NodeOf("")
		w.wantTold("at first", rangeNames[:]...)
		w.ranges = []Range{{0, 9999, "a"}, {10000, 12182, "c"}}
		w.takes = time.Millisecond // or the answer may come before the node is told
		time.Sleep(oldNodes)
		w.wantNode(at12182, "b")
		time.Sleep(w.takes)
		synctest.Wait()
		w.wantNode(at12182, "c")
		w.wantNode(at12739, rangeNames[12]) // nobody has it
		w.wantTold("what was of b", "b")
	})
}

// An answer that was asked for before another one counts for nothing after it.
func TestLateAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes = time.Minute
		w.NodeOf("")
		synctest.Wait()
		w.takes, w.ranges = 0, []Range{{0, 16383, "c"}}
		time.Sleep(oldNodes)
		w.NodeOf("")
		synctest.Wait()
		w.wantNode("", "c")
		time.Sleep(oldNodes - time.Second)
		w.wantNode("", "c")
		w.takes = time.Hour / 2
		time.Sleep(time.Minute)
		w.wantNode("", "c")
	})
}

// Of what a script meets the key's node is told, of a connection all nodes; and
// the nodes are asked for once more, but not for each failure of an outage.
func TestBreaksOfCluster(t *testing.T) {
	inWorld(t, func(w *world) {
		foo := []string{"foo", "{foo}bar"}
		w.takes = time.Millisecond // or the answer may come before the node is told
		w.Node(foo)
		time.Sleep(w.takes)
		synctest.Wait()
		w.wantTold("a script, while the nodes are unknown", append(rangeNames[:], "")...)
		w.takes = 0
		w.Node(foo)
		w.wantTold("a script", "b")
		w.Node(nil)
		w.wantTold("a script without keys", "")
		w.All()
		w.wantTold("a connection", "")
		w.wantAsked(1)
		time.Sleep(brokeNodes)
		w.ranges = []Range{{0, 16383, "a"}}
		w.Node(foo)
		w.wantTold("a script, and the slot has moved", "b", "b")
		w.Node(foo)
		w.wantTold("a script then", "a")
		time.Sleep(brokeNodes)
		w.All()
		w.wantTold("a connection", "")
		w.wantAsked(3)
	})
}
