package lock

import (
	"time"

	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/request"
)

// An entry is the home of the terms that are taken by those inside its gate.

// entryOf returns the entry in which a term is taken.
func entryOf(t *term) *entry { return t.home.(*entry) } //nolint:forcetypeassert // newTerm has said so

// newTerm makes a term that has yet to be taken, by whoever is inside.
func (e *entry) newTerm(l *Lock, want *Params) *term {
	t := l.c.newTerm(e, e.id, l, want)
	e.Lock()
	e.cur = t // from here on it can be revoked
	e.Unlock()
	return t
}

// Init readies the entry of one waiter, which will have that owner id.
func (e *entry) Init(c *table, l *Lock, id string) { e.ls, e.entryKey, e.id = c, l.Entry, id }

// Refusals is what the server refuses to whoever is inside.
func (e *entry) Refusals() *request.Refusals { return &e.refused }

// AdmitLocked gives a reader a place in the current term, if it may join. ask says that the caller is to ask whether others wait.
func (e *entry) AdmitLocked(now time.Time) (t *term, ask bool) {
	if e.cur == nil {
		return nil, false
	}
	ok, ask := e.cur.admit(now, int(e.writers))
	if !ok {
		return nil, false
	}
	return e.cur, ask
}

// retain takes one more share of an entry that the caller has a share of.
func (e *entry) retain() {
	if e.id != "" {
		e.ls.own.Retain(e)
		return
	}
	e.ls.entries.Retain(e)
}

// put gives a share of the entry back.
func (e *entry) put() {
	ls := e.ls
	var stop func()
	idle := func() { stop = e.news.Detach() } // others would take it for a waiter's
	reusable := false
	switch {
	case e.id != "":
		ls.own.Put(e.id, e, idle)
	case e.Space == queueSpace:
		ls.queues.Put(e.entryKey, e, idle)
	default:
		reusable = ls.entries.Put(e.entryKey, e, idle)
	}
	if stop != nil {
		stop()
	}
	if reusable {
		e.budget = handoff.Budget{}
		e.Lock()
		e.cur, e.seen, e.waits, e.extra = nil, seen{}, nil, nil
		e.Unlock()
		e.refused = request.Refusals{}
		ls.pool.Put(e)
	}
}

// keep keeps an entry that somebody has a share of, and with it what it owes, for a
// while longer than for its callers. An entry of one waiter is
// not kept: no later caller could find it.
func (e *entry) keep() {
	if e.id == "" {
		e.ls.entries.Keep(e.entryKey, e, handoff.Keep)
	}
}

func (e *entry) exit() { e.gate.Exit() }

// leave lets the next caller in with nothing, and gives back the share of whoever was inside.
func (e *entry) leave() {
	e.exit()
	e.put()
}

// pass lets the next caller in with t. It says whether there is one: the share of whoever was inside is given back then.
func (e *entry) pass(t *term) (taken bool) {
	e.budget.Hands++
	if taken = e.gate.Pass(t); taken {
		e.put()
	}
	return taken
}

// depart leaves the gate for whoever has released the lock to n others, and notes
// what is owed for it. That is kept for a while: the next caller that wants the lock is to know.
func (e *entry) depart(t *term, n, foreign int) {
	now := time.Now()
	if !t.member && (n > 0 || t.c.Unseen.Yields(t.lock.channel, e.budget.HeldSince, now)) {
		e.budget.Yield(max(0, n), foreign, now, now)
		if t.lock.writers != "" {
			e.budget.ShortenPause(now)
		}
		e.keep()
	} else if n == 0 && !t.member {
		e.budget.Free()
	}
	e.leave()
}

// forget forgets t, if it is still the current term. If it has begun, the entry also forgets who had the lock before: of a term
// that never did, whoever was seen may have the lock still.
func (e *entry) forget(t *term, began bool) {
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

// readmit sends those who wait beside the gate back to the term that they could not join, if it
// lets them now.
func (e *entry) readmit() {
	e.Lock()
	defer e.Unlock()
	if e.extra != nil && e.cur != nil && e.cur.admits(time.Now(), int(e.writers)) {
		e.extra.rejoin()
	}
}

func (e *entry) pace(now time.Time) time.Duration {
	return min(max(handoff.QuantumMax, e.budget.QuietUntil.Sub(now)), handoff.LongestPause)
}

func (e *entry) notices() *notify.Listener { return &e.news }
