package wait

import (
	"time"

	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/request"
)

// An entry is the home of the terms that are taken by those inside its gate.

// entryOf returns the entry in which a term is taken.
func entryOf(t *term.Term) *Entry { return t.Home.(*Entry) } //nolint:forcetypeassert // Entry.newTerm has said so

// newTerm makes a term that has yet to be taken, by whoever is inside.
func (e *Entry) newTerm(l *term.Lock, want *term.Params) *term.Term {
	t := l.Env.NewTerm(e, e.ID, l, want)
	e.Lock()
	e.cur = t // from here on it can be revoked
	e.Unlock()
	return t
}

// Init readies the entry of one waiter, which will have that owner id.
func (e *Entry) Init(c *Table, l *term.Lock, id string) { e.ls, e.EntryKey, e.ID = c, l.Entry, id }

// Refusals is what the server refuses to whoever is inside.
func (e *Entry) Refusals() *request.Refusals { return &e.refused }

// AdmitLocked gives a reader a place in the current term, if it may join. ask says
// that the caller is to ask whether others wait.
func (e *Entry) AdmitLocked(now time.Time) (t *term.Term, ask bool) {
	if e.cur == nil {
		return nil, false
	}
	ok, ask := e.cur.Admit(now, int(e.writers))
	if !ok {
		return nil, false
	}
	return e.cur, ask
}

// Retain takes one more share of an entry that the caller has a share of.
func (e *Entry) Retain() {
	if e.ID != "" {
		e.ls.own.Retain(e)
		return
	}
	e.ls.entries.Retain(e)
}

// Put gives a share of the entry back.
func (e *Entry) Put() {
	ls := e.ls
	var stop func()
	idle := func() { stop = e.news.Detach() } // others would take it for a waiter's
	reusable := false
	switch {
	case e.ID != "":
		ls.own.Put(e.ID, e, idle)
	case e.Space == queueSpace:
		ls.queues.Put(e.EntryKey, e, idle)
	default:
		reusable = ls.entries.Put(e.EntryKey, e, idle)
	}
	if stop != nil {
		stop()
	}
	if reusable {
		e.budget = handoff.Budget{}
		e.Lock()
		e.cur, e.seen, e.waits, e.Extra = nil, seen{}, nil, nil
		e.Unlock()
		e.refused = request.Refusals{}
		ls.pool.Put(e)
	}
}

// keep keeps an entry that somebody has a share of, and with it what it owes, for
// a while longer than for its callers. An entry of one waiter is not kept: no
// later caller could find it.
func (e *Entry) keep() {
	if e.ID == "" {
		e.ls.entries.Keep(e.EntryKey, e, handoff.Keep)
	}
}

// Exit lets the next caller in, with nothing.
func (e *Entry) Exit() { e.gate.Exit() }

// Leave is Exit, and gives back the share of whoever was inside.
func (e *Entry) Leave() {
	e.Exit()
	e.Put()
}

// Pass lets the next caller in with t. It says whether there is one: the share of
// whoever was inside is given back then.
func (e *Entry) Pass(t *term.Term) (taken bool) {
	e.budget.Hands++
	if taken = e.gate.Pass(t); taken {
		e.Put()
	}
	return taken
}

// Depart leaves the gate for whoever has released the lock to n others, and notes
// what is owed for it. That is kept for a while: the next caller that wants the
// lock is to know.
func (e *Entry) Depart(t *term.Term, n, foreign int) {
	now := time.Now()
	if !t.Member && (n > 0 || t.Env.Unseen.Yields(t.Lock.Channel, e.budget.HeldSince, now)) {
		e.budget.Yield(max(0, n), foreign, now, now)
		if t.Lock.Writers != "" {
			e.budget.ShortenPause(now)
		}
		e.keep()
	} else if n == 0 && !t.Member {
		e.budget.Free()
	}
	e.Leave()
}

// Forget forgets t, if it is still the current term. If it has begun, the entry
// also forgets who had the lock before: of a term that never did, whoever was seen
// may have the lock still.
func (e *Entry) Forget(t *term.Term, began bool) {
	e.Lock()
	defer e.Unlock()
	if e.cur != t {
		return
	}
	e.cur = nil
	if began {
		e.seen = seen{}
	}
}

// Readmit sends those who wait beside the gate back to the term that they could
// not join, if it lets them now.
func (e *Entry) Readmit() {
	e.Lock()
	defer e.Unlock()
	if e.Extra != nil && e.cur != nil && e.cur.Admits(time.Now(), int(e.writers)) {
		e.Extra.Rejoin()
	}
}

// Pace returns how often readers ask whether others wait.
func (e *Entry) Pace(now time.Time) time.Duration {
	return min(max(handoff.QuantumMax, e.budget.QuietUntil.Sub(now)), handoff.LongestPause)
}

// Notices returns those of releases, for which the entry may listen.
func (e *Entry) Notices() *notify.Listener { return &e.news }
