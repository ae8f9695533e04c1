package claim

import (
	"slices"
	"sync"
	"time"
)

// A Loss is what a client knows of something held that it has just lost.
type Loss struct {
	Claim

	Err     error         // the holder's: how it was lost, and when the server confirmed it last
	At      time.Time     // when it ended
	Lease   time.Duration // what the server had confirmed, from the last time on
	Node    string        // that serves it; empty: there is only one, or it is not known
	Several bool          // it was acquired with others, as one

	Failure   error     // why the latest renewal has failed that failed since; nil: none has
	FailureAt time.Time // when that was known
}

// mostLost is how many losses a client remembers for those who ask, and lately for
// how long.
const (
	mostLost = 16
	lately   = time.Hour
)

// Losses are the latest ones of a client. The zero value has none.
type Losses struct {
	mu     sync.Mutex
	latest []Claim // the newest last
}

// Add adds a loss, for a reason.
func (losses *Losses) Add(loss Loss, reason string) {
	c := loss.Claim
	c.Since, c.Until, c.Renewed, c.Note, c.Lost = loss.At, time.Time{}, false, "", reason // the note ends with the hold
	losses.mu.Lock()
	defer losses.mu.Unlock()
	if len(losses.latest) == mostLost {
		losses.latest = slices.Delete(losses.latest, 0, 1)
	}
	losses.latest = append(losses.latest, c)
}

// Tell tells of them, the newest first. It returns false if yield has.
func (losses *Losses) Tell(yield Yield) (more bool) {
	losses.mu.Lock()
	latest := slices.Clone(losses.latest)
	losses.mu.Unlock()
	for _, c := range slices.Backward(latest) {
		if time.Since(c.Since) < lately && !yield(c, nil) {
			return false
		}
	}
	return true
}
