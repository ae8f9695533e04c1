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
		defer w.Register(func(lane string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, lane)
		})()
		f(w)
		time.Sleep(time.Hour) // what is under way ends
	})
}

// Keys by their slots.
const at9712, at12182, at12739 = "{}foo", "foo", "123456789"

func (w *world) wantLane(key, want string) {
	w.Helper()
	if got := w.LaneOf(key); got != want {
		w.Errorf("the lane of %q is %q, want %q", key, got, want)
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

// Until the nodes are known a lane is a range of slots; then it is a node.
func TestLanesAreNodes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes = time.Second
		w.wantLane("", "slots 0-1023")
		w.wantLane(at12739, "slots 12288-13311")
		time.Sleep(2 * time.Second)
		w.wantTold("what has other lanes now", laneNames[:]...)
		w.wantLane(at9712, "a")
		w.wantLane(at12739, "b")
		w.wantLane("", "a")
		w.wantAsked(1)
	})
}

// Who does not answer is asked again later, and what was known is believed.
func TestNodesAreAskedForAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.err = errors.New("no")
		w.wantLane(at9712, laneNames[9])
		w.wantLane(at9712, laneNames[9])
		w.wantAsked(1)
		w.err = nil
		time.Sleep(oldNodes)
		w.LaneOf(at9712)
		synctest.Wait()
		w.wantLane(at9712, "a")
		w.wantAsked(2)
		time.Sleep(oldNodes)
		w.err = errors.New("no")
		w.wantLane(at9712, "a")
		w.wantLane(at9712, "a")
		w.wantAsked(3)
		w.ranges, w.err = nil, nil
		time.Sleep(oldNodes)
		w.wantLane(at9712, "a")
		w.wantLane(at9712, "a")
	})
}

// Whoever was in a lane that has lost a slot is told, and nobody else.
func TestSlotsMove(t *testing.T) {
	inWorld(t, func(w *world) {
		w.LaneOf("")
		w.wantTold("at first", laneNames[:]...)
		w.ranges = []Range{{0, 9999, "a"}, {10000, 12182, "c"}}
		time.Sleep(oldNodes)
		w.wantLane(at12182, "b")
		w.wantLane(at12182, "c")
		w.wantLane(at12739, laneNames[12]) // nobody has it
		w.wantTold("what was of b", "b")
	})
}

// An answer that was asked for before another one counts for nothing after it.
func TestLateAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.takes = time.Minute
		w.LaneOf("")
		synctest.Wait()
		w.takes, w.ranges = 0, []Range{{0, 16383, "c"}}
		time.Sleep(oldNodes)
		w.LaneOf("")
		synctest.Wait()
		w.wantLane("", "c")
		time.Sleep(oldNodes - time.Second)
		w.wantLane("", "c")
		w.takes = time.Hour / 2
		time.Sleep(time.Minute)
		w.wantLane("", "c")
	})
}

// Of what a script meets its node's lane is told, of a connection all lanes; and the
// nodes are asked for once more, but not for each failure of an outage.
func TestBreaksOfCluster(t *testing.T) {
	inWorld(t, func(w *world) {
		foo := []string{"foo", "{foo}bar"}
		w.Lane(foo)
		w.wantTold("a script, while the nodes are unknown", append(laneNames[:], "")...)
		w.Lane(foo)
		w.wantTold("a script", "b")
		w.Lane(nil)
		w.wantTold("a script without keys", "")
		w.All()
		w.wantTold("a connection", "")
		w.wantAsked(1)
		time.Sleep(brokeNodes)
		w.ranges = []Range{{0, 16383, "a"}}
		w.Lane(foo)
		w.wantTold("a script, and the slot has moved", "b", "b")
		w.Lane(foo)
		w.wantTold("a script then", "a")
		time.Sleep(brokeNodes)
		w.All()
		w.wantTold("a connection", "")
		w.wantAsked(3)
	})
}
