package handoff

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// UnseenPauses are pauses for those who cannot be seen. In a cluster with classic
// Pub/Sub some may listen at another node, where no script sees them. There a
// process makes a pause once a second although it sees nobody. For that it
// remembers since when it has what it releases, of some at a time.
type UnseenPauses struct {
	Server *request.Server

	mu       sync.Mutex // guards what follows
	holdings [64]struct {
		channel      string
		since, until time.Time
	}
}

// Yields says whether it is time for such a pause, now that something is
// released that this process got at begun.
func (b *UnseenPauses) Yields(channel string, begun, now time.Time) bool {
	if b.Server.SeenByScripts() || channel == "" {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.holdings[wire.Slot(channel)%len(b.holdings)]
	if r.channel != channel || begun.Sub(r.until) >= LongestPause { // others could have had it
		r.channel, r.since = channel, begun
	}
	r.until = now
	if now.Sub(r.since) < HeldMax {
		return false
	}
	r.since = now
	return true
}
