package lock

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/gate"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/wire"
)

// A line is what the callers of this client that want one lock share: the gate
// that lines them up, the subscription that wakes the first of them, and what
// the process owes to others. It exists while there is such a caller, or it owes
// something.
type line struct {
	lineKey
	id    string // of the only waiter of a line of its own; empty if it is shared
	gate  gate.Gate[*tenure]
	news  notify.Listener
	given atomic.Bool    // in a line of its own: the waiter has been told that it has this lock
	turns handoff.Budget // belongs to whoever is inside the gate
	stay  handoff.Stay   // of a line that is kept because of what it owes

	refs int // guarded by lines.mu

	mu    sync.Mutex // guards what follows
	cur   *tenure    // of whoever is inside: live, or about to be
	owner string     // who had the lock when we last saw it with somebody else
	ttl   time.Duration

	// Of a read-write lock: see readers.go.
	forming *party // those who wait to read
	writers int    // how many are in line to write
}

// A lineKey tells lines apart. A name may be a lock's and, by mistake, a
// read-write lock's: those share nothing here.
type lineKey struct {
	name      string
	readWrite bool
}

// lines are a client's lines by lock name.
type lines struct {
	c  *Locks
	mu sync.Mutex // guards m and line.refs
	m  map[lineKey]*line
	places
	// Lines come and go with every uncontended acquisition.
	pool sync.Pool
}

// get returns the line for a lock; put gives it back.
func (ls *lines) get(l *Spec) *line {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	k := lineKey{l.lineName(), l.side != neither}
	ln := ls.m[k]
	if ln == nil {
		var ok bool
		if ln, ok = ls.pool.Get().(*line); !ok {
			ln = &line{}
		}
		ln.lineKey = k
		ls.m[k] = ln
	}
	ln.refs++
	return ln
}

// retain takes one more share of a line that the caller has a share of.
func (ls *lines) retain(ln *line) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln.refs++
}

func (ls *lines) put(ln *line) {
	ls.mu.Lock()
	ln.refs--
	if ln.refs > 0 {
		ls.mu.Unlock()
		return
	}
	stop := ln.news.Detach() // others would take it for a waiter's
	gone := ls.dropLocked(ln)
	ls.mu.Unlock()
	if stop != nil {
		stop()
	}
	if gone {
		ls.recycle(ln)
	}
}

// keep keeps a line that somebody has a share of, and with it what it owes, for a
// while longer than for its callers.
func (ls *lines) keep(ln *line) {
	ln.stay.Prolong(handoff.Keep, func() {
		ls.mu.Lock()
		gone := ls.dropLocked(ln)
		ls.mu.Unlock()
		if gone {
			ls.recycle(ln)
		}
	})
}

// dropLocked forgets a line that nobody needs any more, and says whether it can be
// used again.
func (ls *lines) dropLocked(ln *line) bool {
	switch {
	case ln.id != "":
		delete(ls.own, ln.id)
	case ln.refs == 0 && ls.m[ln.lineKey] == ln && !ln.stay.Lasts():
		delete(ls.m, ln.lineKey)
		return true
	}
	return false
}

func (ls *lines) recycle(ln *line) {
	ln.turns = handoff.Budget{}
	ln.mu.Lock()
	ln.cur, ln.owner, ln.ttl = nil, "", 0
	ln.mu.Unlock()
	ls.pool.Put(ln)
}

// close ends all subscriptions. Who waits leaves by itself; a holder may stay.
func (ls *lines) close() {
	for _, ln := range ls.all() {
		ln.news.Stop()
	}
}

// all returns all lines. lines.mu is not held while any of them is looked at:
// shares of a line are taken under its tenure's mutex.
func (ls *lines) all() []*line {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Values(ls.m)), maps.Values(ls.own))
}

// peek returns the tenure of a lock that this client has, or is about to have,
// if a field in Redis may be that tenure's.
func (ls *lines) peek(name, owner string) *tenure {
	t, _ := ls.find(name, owner)
	return t
}

// known says whether a field of this client belongs to somebody here, if only to
// one whose release is under way: another one could overtake that.
func (ls *lines) known(name, owner string) bool {
	t, leaving := ls.find(name, strings.TrimSuffix(owner, wire.WriteField("")))
	return t != nil || leaving
}

// find looks for the tenure of an owner in all lines of a lock, whatever its
// type: a name may, by mistake, be that of several. If it is not there, leaving
// says that it may have gone just now.
func (ls *lines) find(name, owner string) (t *tenure, leaving bool) {
	ls.mu.Lock()
	candidates := ls.ownLocked(name, owner)
	for _, readWrite := range []bool{false, true} {
		if ln := ls.m[lineKey{name, readWrite}]; ln != nil {
			candidates = append(candidates, ln)
		}
	}
	ls.mu.Unlock()
	for _, ln := range candidates {
		ln.mu.Lock()
		t := ln.cur
		ln.mu.Unlock()
		switch {
		case t == nil:
			leaving = true
		case t.id == owner:
			return t, false
		}
	}
	return nil, leaving
}

// ofGroup returns the tenure of values of a group that may have an owner id.
func (ls *lines) ofGroup(name, owner string) *tenure {
	for _, ln := range ls.all() {
		ln.mu.Lock()
		t := ln.cur
		ln.mu.Unlock()
		if t != nil && t.lock.group != nil && t.lock.name == name && t.id == owner {
			return t
		}
	}
	return nil
}

// leave lets the next caller in with nothing.
func (c *Locks) leave(ln *line) {
	ln.gate.Exit()
	c.lines.put(ln)
}

// listen starts the line's subscription, if it has none.
func (ln *line) listen(c *Locks, channel string) {
	c.Server.Listen(&ln.news, channel, nil, func() {
		// Somebody else released a lock that we believe to hold: ask.
		// (In a group that happens all the time, and is about other values.)
		if t := ln.current(); t != nil && t.lock.group == nil {
			c.Clock.Check(&t.lease)
		}
	})
}

// current returns the live tenure, if there is one.
func (ln *line) current() *tenure {
	ln.mu.Lock()
	t := ln.cur
	ln.mu.Unlock()
	if t == nil || !t.live() {
		return nil
	}
	return t
}

func (ln *line) setCurrent(t *tenure) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.cur = t
}

// dropCurrent forgets t, if it is still the current one.
func (ln *line) dropCurrent(t *tenure) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.cur == t {
		ln.cur = nil
	}
}

// saw notes who has the lock.
func (ln *line) saw(owner string, ttl time.Duration) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.owner, ln.ttl = owner, max(0, ttl)
}

// lastSeen returns who has the lock, as far as we know, and for how long.
func (ln *line) lastSeen() (owner string, ttl time.Duration) {
	if cur := ln.current(); cur != nil {
		return cur.id, max(0, cur.lease.Left(time.Now()))
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.owner, ln.ttl
}
