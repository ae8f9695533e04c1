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

// A entry is what the callers of this client that want one lock share: the gate
// that lines them up, the subscription that wakes the first of them, and what
// the process owes to others. It exists while there is such a caller, or it owes
// something.
type entry struct {
	entryKey
	id     string // of the only waiter of an entry of its own; empty if it is shared
	gate   gate.Gate[*term]
	news   notify.Listener
	given  atomic.Bool    // in an entry of its own: the waiter has been told that it has this lock
	budget handoff.Budget // belongs to whoever is inside the gate
	stay   handoff.Stay   // of an entry that is kept because of what it owes

	refs int // guarded by table.mu

	mu    sync.Mutex // guards what follows
	cur   *term      // of whoever is inside: live, or about to be
	owner string     // who had the lock when we last saw it with somebody else
	ttl   time.Duration

	// Of a read-write lock: see readers.go.
	forming *readerGroup // those who wait to read
	writers int          // how many are in line to write
}

// A entryKey tells entries apart. A name may be a lock's and, by mistake, a
// read-write lock's: those share nothing here.
type entryKey struct {
	name, space string
}

// table are a client's lines by lock name.
type table struct {
	c  *Locks
	mu sync.Mutex // guards m and entry.refs
	m  map[entryKey]*entry

	spaces []string // of all kinds
	fairWaiters
	// Lines come and go with every uncontended acquisition.
	pool sync.Pool
}

// get returns the entry for a lock; put gives it back.
func (ls *table) get(l *Spec) *entry {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.m[l.entry]
	if ln == nil {
		var ok bool
		if ln, ok = ls.pool.Get().(*entry); !ok {
			ln = &entry{}
		}
		ln.entryKey = l.entry
		ls.m[l.entry] = ln
	}
	ln.refs++
	return ln
}

// retain takes one more share of an entry that the caller has a share of.
func (ls *table) retain(ln *entry) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln.refs++
}

func (ls *table) put(ln *entry) {
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

// keep keeps an entry that somebody has a share of, and with it what it owes, for a
// while longer than for its callers.
func (ls *table) keep(ln *entry) {
	ln.stay.Prolong(handoff.Keep, func() {
		ls.mu.Lock()
		gone := ls.dropLocked(ln)
		ls.mu.Unlock()
		if gone {
			ls.recycle(ln)
		}
	})
}

// dropLocked forgets an entry that nobody needs any more, and says whether it can be
// used again.
func (ls *table) dropLocked(ln *entry) bool {
	switch {
	case ln.id != "":
		delete(ls.own, ln.id)
	case ln.refs == 0 && ls.m[ln.entryKey] == ln && !ln.stay.Lasts():
		delete(ls.m, ln.entryKey)
		return true
	}
	return false
}

func (ls *table) recycle(ln *entry) {
	ln.budget = handoff.Budget{}
	ln.mu.Lock()
	ln.cur, ln.owner, ln.ttl = nil, "", 0
	ln.mu.Unlock()
	ls.pool.Put(ln)
}

// close ends all subscriptions. Who waits leaves by itself; a holder may stay.
func (ls *table) close() {
	for _, ln := range ls.all() {
		ln.news.Stop()
	}
}

// all returns all entries. table.mu is not held while any of them is looked at:
// shares of an entry are taken under its term's mutex.
func (ls *table) all() []*entry {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Values(ls.m)), maps.Values(ls.own))
}

// peek returns the term of a lock that this client has, or is about to have,
// if a field in Redis may be that term's.
func (ls *table) peek(name, owner string) *term {
	t, _ := ls.find(name, owner)
	return t
}

// known says whether a field of this client belongs to somebody here, if only to
// one whose release is under way: another one could overtake that.
func (ls *table) known(name, owner string) bool {
	t, leaving := ls.find(name, strings.TrimSuffix(owner, wire.WriteField("")))
	return t != nil || leaving
}

// find looks for the term of an owner in all entries of a lock, whatever its
// type: a name may, by mistake, be that of several. If it is not there, leaving
// says that it may have gone just now.
func (ls *table) find(name, owner string) (t *term, leaving bool) {
	ls.mu.Lock()
	candidates := ls.ownLocked(name, owner)
	for _, space := range ls.spaces {
		if ln := ls.m[entryKey{name, space}]; ln != nil {
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

// ofPart returns the term of values of a group that may have an owner id.
func (ls *table) ofPart(name, owner string) *term {
	for _, ln := range ls.all() {
		ln.mu.Lock()
		t := ln.cur
		ln.mu.Unlock()
		if t != nil && t.lock.kind.part && t.lock.name == name && t.id == owner {
			return t
		}
	}
	return nil
}

// leave lets the next caller in with nothing.
func (ls *table) leave(ln *entry) {
	ln.gate.Exit()
	ls.put(ln)
}

// listen starts the entry's subscription, if it has none.
func (ln *entry) listen(c *Locks, channel string) {
	c.Server.Listen(&ln.news, channel, nil, func() {
		// Somebody else released a lock that we believe to hold: ask.
		// (In a group that happens all the time, and is about other values.)
		if t := ln.current(); t != nil && !t.lock.kind.part {
			c.Clock.Check(&t.lease)
		}
	})
}

// current returns the live term, if there is one.
func (ln *entry) current() *term {
	ln.mu.Lock()
	t := ln.cur
	ln.mu.Unlock()
	if t == nil || !t.live() {
		return nil
	}
	return t
}

// dropCurrent forgets t, if it is still the current one.
func (ln *entry) dropCurrent(t *term) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.cur == t {
		ln.cur = nil
	}
}

// saw notes who has the lock.
func (ln *entry) saw(owner string, ttl time.Duration) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.owner, ln.ttl = owner, max(0, ttl)
}

// lastSeen returns who has the lock, as far as we know, and for how long.
func (ln *entry) lastSeen() (owner string, ttl time.Duration) {
	if cur := ln.current(); cur != nil {
		return cur.id, max(0, cur.lease.Left(time.Now()))
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.owner, ln.ttl
}
