package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/sim/linear"
)

// A footing is what the claims of one id rest on. A hold can have its id from
// another one of its process: the server has confirmed nothing for itself.
type footing struct {
	asked   time.Duration // when the first of them was asked for
	longest time.Duration // for which the server may have confirmed one of them
	freed   time.Duration // when the last release of one of them was confirmed
	unsure  bool          // whether another one was, nobody knows
	over    bool          // a release has found one of them over: several locks are released in turn, while the time of the next may end
}

// A claim is one time for which a worker took something to be its own: from when
// its call returned until the worker gave it up, could know that it was lost, or
// died with its process.
type claim struct {
	resource string
	lock     string   // of which the resource is a value; "": it is the resource
	values   []string // the resources that its hold is of, if they are values
	id       string   // in the server
	site     int      // of that server
	weight   int      // of the resource's capacity
	process  int
	nest     int  // those of one nest count once
	inner    bool // another of the nest is around it
	token    int64
	lease    time.Duration
	most     time.Duration // for which it may last; 0: there is no bound
	*footing

	call, from, to time.Duration // since the beginning; to is negative while it lasts
	how            string        // it ended
	detached       bool          // nobody can tell its worker of its end
}

// A loss is a time in which a server lost, or may lose, what it had stored,
// because a fault made it.
type loss struct {
	what     string
	site     int             // of the server
	resource string          // "": all
	owners   map[string]bool // whose claims; nil: anybody's
	late     bool            // what takes them away may still be on its way when it is over
	from, to time.Duration
}

// wiped is a loss of all data, forced one that somebody asked for, and released
// how a claim ends that its worker has given back.
const (
	wiped    = "wipe"
	forced   = "force"
	released = "released"
)

// sparing are the ways to lose data after which all is there that has no TTL, and
// is no lock.
func sparing() []string { return []string{"evict", "ahead", forced} }

// restoring are those after which a server goes on with what it had when they
// began.
func restoring() []string { return []string{"older", "failover", "split"} }

// A take is when a request was sent that takes something as an id, and when it
// came to the server.
type take struct{ sent, came time.Duration }

// A step is by how much, and when, a server's clock was set back.
type step struct {
	site   int
	at, by time.Duration
}

// forever is when a loss ends that has not ended yet.
const forever = time.Duration(1<<63 - 1)

// hits says whether a loss may have taken c away, which lasts until then.
func (l loss) hits(c *claim, until time.Duration) bool {
	taken := l.resource == "" || l.resource == c.resource || slices.Contains(c.values, l.resource)
	taken = taken && (l.owners == nil || l.owners[c.id])
	return taken && c.site == l.site && c.asked <= l.to && l.from <= until
}

// excuses returns how long after the loss c can be taken for its worker's own:
// nothing confirms it any more.
func (l loss) excuses(c *claim) time.Duration {
	if l.to == forever {
		return forever
	}
	if l.late {
		return l.to + latest + c.longest
	}
	return l.to + c.longest
}

// A history is what has happened, and what of it was wrong.
type history struct {
	mu       sync.Mutex
	start    time.Time
	capacity int // of each resource
	claims   []*claim
	losses   []*loss
	back     []*loss // not of data that counts: of what was released since
	steps    []step
	tidings  []tiding // of holds that have heard events
	events   []tiding
	takes    map[string]take             // the last that has come of each id; not nil where links tell
	resigned map[[2]string]time.Duration // until when a client was asked to resign from an election; forever: it is
	dated    bool                        // a number that is lost goes on with the server's clock, as that of an election's terms
	wrong    []string
	first    time.Duration // of what was wrong
	faults   []linear.Mark // that have struck
	lost     int           // holds
	revoked  []ending
	summons  []summons
	footings map[[2]string]*footing // by resource and id
	traced   bool
	log      []string
}

func (h *history) now() time.Duration { return time.Since(h.start) }

// trace notes what a reader of a replay wants to know.
func (h *history) trace(format string, args ...any) {
	if !h.traced {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.traceLocked(format, args...)
}

func (h *history) traceLocked(format string, args ...any) {
	if h.traced {
		h.log = append(h.log, stamp(h.now())+fmt.Sprintf(format, args...))
	}
}

func stamp(d time.Duration) string { return fmt.Sprintf("%11.6f ", d.Seconds()) }

// fail notes what must not be.
func (h *history) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failLocked(h.now(), format, args...)
}

func (h *history) failLocked(at time.Duration, format string, args ...any) {
	text := stamp(at) + fmt.Sprintf(format, args...)
	if len(h.wrong) == 0 || at < h.first {
		h.first = at
	}
	h.wrong = append(h.wrong, text)
	if h.traced {
		h.log = append(h.log, text+" WRONG")
	}
}

// lose notes that a loss of data begins. The caller calls over when nothing can be
// lost by it any more.
func (h *history) lose(site int, what, resource string) (over func()) {
	end := h.begins(&loss{what: what, site: site, resource: resource})
	return func() { end(false) }
}

// begins notes that a loss begins. The caller calls over when nothing that is
// claimed later can be lost by it, and says whether what was claimed before may be
// taken away still.
func (h *history) begins(l *loss) (over func(late bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.from, l.to = h.now(), forever
	h.losses = append(h.losses, l)
	return func(late bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		l.to, l.late = h.now(), late
	}
}

// begin notes claims that one hold makes.
func (h *history) begin(all []*claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beginLocked(all)
}

func (h *history) beginLocked(all []*claim) {
	for _, c := range all {
		c.from, c.to = h.now(), -1
		id := [2]string{c.resource, c.id}
		if h.footings[id] == nil {
			h.footings[id] = &footing{asked: c.call}
		}
		c.footing = h.footings[id]
		c.asked, c.longest = min(c.asked, c.call), max(c.longest, c.lease)
		h.claims = append(h.claims, c)
		h.traceLocked("process %d has %s as %s, nest %d, weight %d, token %d, lease %v", c.process, c.resource, c.id, c.nest, c.weight, c.token, c.lease)
	}
}

// end notes how claims of one hold end, unless they have ended.
func (h *history) end(all []*claim, how string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range all {
		if c.to < 0 {
			c.to, c.how = h.now(), how
			h.traceLocked("process %d ends %s as %s: %s", c.process, c.resource, c.id, how)
		}
	}
}

// lengthen notes that a hold may be trusted for longer from now on.
func (h *history) lengthen(all []*claim, lease time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range all {
		c.longest = max(c.longest, lease)
	}
}

// freed notes that claims of one hold were released, as far as that was confirmed.
func (h *history) freed(all []*claim, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range all {
		c.footing.freed = max(c.footing.freed, h.now())
		c.unsure = c.unsure || err != nil
		var lost *redlatch.LostError
		c.over = c.over || errors.As(err, &lost)
	}
}

// comesBackLocked says whether a server may have now what was released: it went on
// with what it had when that was not released yet, or a take came to it that had
// been sent before. No client can know of that one, even if the same take was sent
// again and answered. The lease bounds for how long.
func (h *history) comesBackLocked(c *claim, now time.Duration) bool {
	lasts := h.keptLocked(c, now)
	if x, ok := h.takes[c.id]; ok && x.sent <= c.to && c.to <= x.came && now-x.came <= lasts {
		return true
	}
	return slices.ContainsFunc(slices.Concat(h.losses, h.back), func(l *loss) bool {
		restores := slices.Contains(h.back, l) || slices.Contains(restoring(), l.what)
		return restores && l.site == c.site && c.asked <= l.to && (c.unsure || l.from <= c.footing.freed) && now-l.to <= lasts
	})
}

// keptLocked returns for how long a server keeps, at most, what one request makes
// the claim's. It writes the end of a permit for those whose clock is ahead, and
// its own clock may be slow, or was set back.
func (h *history) keptLocked(c *claim, now time.Duration) time.Duration {
	const ahead = time.Second // Config.Redisson.MaxClockSkew
	return c.longest + c.longest/40 + ahead + h.setBack(c.site, now)
}

// told notes that a worker is told that it has lost something, and checks that at
// this very moment: what was gone needs a loss, and what ended by its window must
// still be the worker's, as the server sees it.
func (h *history) told(all []*claim, err *redlatch.LostError, has func(c *claim) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost++
	for _, c := range all {
		if c.to >= 0 || err.Name != cmp.Or(c.lock, c.resource) {
			continue
		}
		now, excused := h.now(), false
		for _, l := range h.losses {
			excused = excused || l.hits(c, now) && now <= l.excuses(c)
		}
		switch {
		case err.Reason == redlatch.LostRevoked:
			h.revoked = append(h.revoked, ending{c, now})
		case excused:
		case err.Reason == redlatch.LostGone:
			h.failLocked(now, "process %d is told that %s as %s is gone, and nothing took it away", c.process, c.resource, c.id)
		case !has(c):
			h.failLocked(now, "process %d is told that %s as %s ends (%s), and the server has let go of it before", c.process, c.resource, c.id, err.Reason)
		}
	}
}
