package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
)

// straggling is for how long the requests of a process are often late, at most,
// before it shuts down.
const straggling = 8 * time.Second

// closeTimeout is Config.CloseTimeout. A client sends its last releases when it
// begins to close, and has closed in time only if that took no longer.
const closeTimeout = 1500 * time.Millisecond

// A release is what became of the requests of a process to release an id.
type release struct {
	sent     time.Duration // the last of them
	executed bool          // one of them was
}

// straggle makes requests of a process late, until one has taken what was released
// before, or for some time.
func (w *world) straggle(p *process) {
	end := time.Now().Add(straggling)
	late := func(until time.Time) {
		for _, l := range p.links {
			l.set(func() { l.straggles = until })
		}
	}
	for late(end); time.Now().Before(end) && !w.orphaned(p); {
		time.Sleep(20 * time.Millisecond)
	}
	late(time.Time{})
}

// orphaned says whether a server has something that the process has released
// before.
func (w *world) orphaned(p *process) bool {
	return slices.ContainsFunc(p.clients, func(c *redlatch.Client) bool {
		ids := w.idsOf(c)
		w.history.mu.Lock()
		defer w.history.mu.Unlock()
		return slices.ContainsFunc(ids, func(id string) bool { return w.releases[id] != nil && w.releases[id].executed })
	})
}

// checkOrphans checks that a client that has shut down has left nothing in the
// server that its workers do not know of: it has released all that its late
// requests may have taken, and has tried to do that again at its end. Whether that
// came through nobody knows. It is called when the server has these ids of it.
func (w *world) checkOrphans(process int, ids []string, now time.Duration) {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	for _, l := range slices.Concat(w.losses, w.back) {
		if (slices.Contains(restoring(), l.what) || slices.Contains(w.back, l)) && (l.to == forever || now <= l.to+latest+maxLease) {
			return // the server may have any of them again
		}
	}
	for _, id := range ids {
		if slices.ContainsFunc(w.claims, func(c *claim) bool { return c.id == id && (c.how != released || c.detached) }) {
			continue
		}
		x := w.releases[id]
		switch {
		case x == nil || !x.executed:
			w.failLocked(now, "process %d has shut down, and the server still has what it had as %s, of which it has executed no release", process, id)
		case x.sent < now-closeTimeout:
			w.failLocked(now, "process %d has shut down, and the server still has what it had as %s, which it has not tried to release since%s", process, id, stamp(x.sent))
		}
	}
}

// idsOf returns the ids of a client in the servers.
func (w *world) idsOf(client *redlatch.Client) (ids []string) {
	for _, s := range w.primaries() {
		for _, k := range s.snapshot().keys {
			for _, text := range k.content {
				if strings.HasPrefix(text, client.ID()+":") && !wire.Kept(text) { // which stays for its MinHold
					ids = append(ids, strings.TrimSuffix(text, ":write"))
				}
			}
		}
	}
	return ids
}
