package adapter

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
)

// A cluster has 16384 hash slots; a lane is one sixteenth of them.
const (
	lanes    = 16
	laneBits = 10
)

var laneNames = func() (names [lanes]string) {
	for i := range names {
		names[i] = "slots " + strconv.Itoa(i<<laneBits) + "-" + strconv.Itoa((i+1)<<laneBits-1)
	}
	return names
}()

// LaneOf returns the lane of a key in a cluster, a range of 1024 hash slots.
// Unlike a node's address it stays what it is when a slot moves, and asking for
// it is no I/O.
func LaneOf(key string) string { return laneNames[wire.Slot(key)>>laneBits] }

// IsBreak says that a script that failed with err met a lost connection or a
// changed role.
func IsBreak(err *redlatch.RunError) bool {
	switch err.Code {
	case "":
		return err.Outcome == redlatch.Unknown
	case "READONLY", "MOVED", "MASTERDOWN":
		return true
	}
	return false
}

// Breaks tells those who asked when a connection is lost. The zero value is for a
// single server, whose lane is "".
type Breaks struct {
	cluster atomic.Bool

	mu      sync.Mutex // guards all below
	last    int
	told    map[int]func(lane string)
	general time.Time // when all lanes were last told because of one
}

// SetCluster says whether there are the lanes of [LaneOf].
func (b *Breaks) SetCluster(on bool) { b.cluster.Store(on) }

// Register makes f be called with the lane of each break until stop is called.
func (b *Breaks) Register(f func(lane string)) (stop func()) {
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

// Lane reports that a script with these keys met a break, see [IsBreak]. The node
// behind it serves other lanes too, which we cannot name, so all of them are told,
// but not for every single failure of an outage.
func (b *Breaks) Lane(keys []string) {
	if !b.cluster.Load() || len(keys) == 0 {
		b.All()
		return
	}
	b.mu.Lock()
	general := time.Since(b.general) >= time.Second
	if general {
		b.general = time.Now()
	}
	b.mu.Unlock()
	if general {
		b.All()
		return
	}
	b.tell(LaneOf(keys[0]))
}

// All reports that a connection was lost, of which we do not know the lane.
func (b *Breaks) All() {
	if !b.cluster.Load() {
		b.tell("")
		return
	}
	for _, name := range laneNames {
		b.tell(name)
	}
}

func (b *Breaks) tell(lane string) {
	b.mu.Lock()
	told := make([]func(string), 0, len(b.told))
	for _, f := range b.told {
		told = append(told, f)
	}
	b.mu.Unlock()
	for _, f := range told {
		f(lane)
	}
}
