package rueidis

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

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

func laneOf(key string) string { return laneNames[wire.Slot(key)>>laneBits] }

// breaks tells those who asked when a connection is lost.
type breaks struct {
	cluster atomic.Bool // else there is only the lane ""

	mu      sync.Mutex
	last    int
	told    map[int]func(lane string)
	general time.Time // when all lanes were last told because of one
}

func (b *breaks) register(f func(lane string)) (stop func()) {
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

// lane reports that a script with these keys met a lost connection or a changed
// role. The node behind it serves other lanes too, which we cannot name, so all
// of them are told, but not for every single failure of an outage.
func (b *breaks) lane(keys []string) {
	if !b.cluster.Load() || len(keys) == 0 {
		b.all()
		return
	}
	b.mu.Lock()
	general := time.Since(b.general) >= time.Second
	if general {
		b.general = time.Now()
	}
	b.mu.Unlock()
	if general {
		b.all()
		return
	}
	b.tell(laneOf(keys[0]))
}

// all reports that a connection was lost, of which we do not know the lane.
func (b *breaks) all() {
	if !b.cluster.Load() {
		b.tell("")
		return
	}
	for _, name := range laneNames {
		b.tell(name)
	}
}

func (b *breaks) tell(lane string) {
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
