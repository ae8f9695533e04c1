package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// force takes a lock away, as an administrator does, whoever has it: of a
// ReadWriteLock only a writer's. It may take it only from the owners that it
// names: those that it has found. It waits a moment for somebody who has it.
func (w *world) force(p *process, site int, name string) {
	x := w.whole(p, name)
	if w.kind.together != nil {
		x = choice{lock: p.clients[site].Lock(name)} // a vote of it
	}
	l := &loss{what: forced, site: site, resource: x.lock.Name(), owners: map[string]bool{}}
	switch {
	case w.Type == "group":
		l.resource = name // and what is held together with it
	case strings.Contains(l.resource, ","):
		l.resource = "" // several locks
	}
	for end := w.now() + 2*time.Second; !w.concerns(l) && w.now() < end; {
		time.Sleep(5 * time.Millisecond)
	}
	over := w.begins(l)
	w.history.mu.Lock()
	w.forcing[p.links[site]] = l
	w.history.mu.Unlock()
	ctx, cancel := context.WithTimeout(bg, 5*time.Second)
	defer cancel()
	was, err := admin.ForceRelease(ctx, x.lock)
	over(err != nil) // without an answer the request may come late
	w.history.mu.Lock()
	delete(w.forcing, p.links[site])
	w.history.mu.Unlock()
	w.trace("%s is taken from whoever has it: %t, %v", x.lock.Name(), was, err)
}

// forcible says whether somebody may take a whole object away. Permits have ids,
// which only those know who have them, and a RedLock is forced vote by vote.
func (w *world) forcible() bool {
	return w.kind.once == nil && w.kind.together == nil && w.Type != "permits"
}

// takeAway has a process take all of an object from another one in the calm, when
// no message and no answer is lost.
func (w *world) takeAway(p, from *process, name string) {
	ctx, cancel := context.WithTimeout(bg, toCalm)
	defer cancel()
	h, err := w.whole(from, name).acquire(ctx)
	if err != nil {
		w.fail("in the calm, process %d and %s: %v", from.number, name, err)
		return
	}
	began := w.now()
	was, err := admin.ForceRelease(ctx, w.whole(p, name).lock)
	w.takenAway(from.number, name, w.now()-began, was, err, h.Err())
	_ = h.Release(bg)
}

// toLetGo is for how long a holder is waited for that is to let go, as
// docs/guarantees.md says it.
const toLetGo = time.Second

// takenAway judges what came of that: the holder has been told before its lock is
// given away, and that does not take long.
func (h *history) takenAway(process int, name string, took time.Duration, was bool, err, told error) {
	var lost *redlatch.LostError
	switch {
	case err != nil || !was:
		h.fail("in the calm, %s cannot be taken from process %d: %t, %v", name, process, was, err)
	case !errors.As(told, &lost) || lost.Reason != redlatch.LostRevoked:
		h.fail("in the calm, %s is taken from process %d, which is not told so before: %v", name, process, told)
	case took >= toLetGo:
		h.fail("in the calm, %s is taken from process %d, and that takes %v", name, process, took)
	}
}

// concerns says whether somebody has all of what a loss may take away.
func (h *history) concerns(l *loss) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.claims, func(c *claim) bool {
		return c.to < 0 && c.site == l.site && (l.resource == "" || l.resource == c.resource) && c.weight == h.capacity
	})
}

// An ending is when a worker was told that a claim had ended.
type ending struct {
	*claim

	at time.Duration
}

// A summons is that a process knows that it is to let go of what somebody takes
// from it.
type summons struct {
	process int
	id      string
	at      time.Duration
}

// soon is how long a worker may take to see that a hold has ended.
const soon = 2 * time.Millisecond

// checkRevoked checks that those from whom somebody takes a lock are told at once,
// before they answer, and that nobody else is.
func (h *history) checkRevoked() {
	for _, e := range h.revoked {
		if !slices.ContainsFunc(h.losses, func(l *loss) bool { return l.what == forced && l.hits(e.claim, e.at) }) {
			h.failLocked(e.at, "process %d is told that %s as %s was taken from it, and nobody did that", e.process, e.resource, e.id)
		}
	}
	for _, s := range h.summons {
		for _, c := range h.claims {
			if c.process == s.process && c.id == s.id && !c.detached && c.from <= s.at && c.to > s.at+soon {
				h.failLocked(s.at, "process %d knows that %s as %s is taken from it, and has it until%s: %s", c.process, c.resource, c.id, stamp(c.to), c.how)
			}
		}
	}
}
