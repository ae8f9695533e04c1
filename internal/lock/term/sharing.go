package term

import (
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
)

// sharing is what a term knows of its readers. It is guarded by Term.mu.
type sharing struct {
	reads  int           // of term.count, those that only read
	opened time.Time     // since when
	pace   time.Duration // how often to ask whether others wait
	asked  time.Time
	others int  // how many others were found to wait
	shared bool // all of term.count read, and others may join
	asking bool
	proves bool // Redis has a key that keeps its read hold alive
}

// shareLocked lets others join. All holds of the term are to read.
func (t *sharing) shareLocked(now time.Time, pace time.Duration) {
	t.shared, t.opened, t.asked, t.pace = true, now, now, pace
}

// admitsLocked says whether a reader of this process may join, while so many of
// it wait to write.
func (t *nest) admitsLocked(now time.Time, writers int) bool {
	if t.state != termLive || !t.shared || t.count == 0 || t.Lease.Left(now) <= 0 {
		return false
	}
	return now.Sub(t.opened) < handoff.QuantumMax || (writers == 0 && t.others == 0)
}

// Admits is admitsLocked for those who have not locked t.
func (t *nest) Admits(now time.Time, writers int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.admitsLocked(now, writers)
}

// Admit gives a reader of this process a place, if it may join. ask says that the
// caller is to ask whether others wait.
func (t *nest) Admit(now time.Time, writers int) (ok, ask bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.admitsLocked(now, writers) {
		return false, false
	}
	t.count++
	t.reads++
	ask = !t.asking && now.Sub(t.asked) >= t.pace
	t.asking = t.asking || ask
	return true, ask
}

// Heard notes how many others wait, if the question has not failed, and says
// whether it is to be asked again.
func (t *nest) Heard(others int, failed error) (again bool) {
	t.mu.Lock()
	if failed == nil {
		t.others = max(0, others)
	}
	if !t.Env.Server.SeenByScripts() && time.Since(t.opened) >= handoff.HeldMax {
		t.others = max(1, t.others) // they may listen at another node
	}
	again = t.state == termLive && t.others > 0
	t.asking, t.asked = again, time.Now()
	t.mu.Unlock()
	if failed == nil && others < 0 { // the owner does not read
		t.Env.Clock.Check(&t.Lease)
	}
	return again
}

// GiveUpTo ends a hold that was acquired for n readers, and gives each of them a
// place in its term, unless that is over. after does what follows.
func (h *Hold) GiveUpTo(n int) (after func(), seated bool) {
	t := h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != termLive {
		return func() {}, false
	}
	t.count += n
	t.reads += n
	now := time.Now()
	t.shareLocked(now, t.Home.Pace(now))
	t.removeLocked(h, holdctx.ErrReleased)
	left := t.dropLocked(true)
	return func() { t.dropped(left) }, true
}

// ErrRejoin says that a reader has no place in a term, and may look for one again.
var ErrRejoin = errors.New("redlatch: the readers that are in let others join again")
