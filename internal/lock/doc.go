// Package lock is the engine of locks: how one is waited for, held, nested, handed
// off, renewed, lost and released. The types of locks are kinds of it (kind.go).
//
// # What it promises
//
// It promises that at most one goroutine of this process asks for a lock at a
// time, that whoever waits gets it in turn, that a hold whose lease may end is
// told before anybody else can have the lock, and that no lost reply and no late
// request makes a second owner or keeps the lock for longer than a lease.
//
// What the callers of one process that want a lock share is an entry: its gate
// lets one of them inside. The caller inside takes the lock: that makes a term,
// the time for which one owner id stands in Redis.
//
//	caller ──► gate ──► take ──► busy ──► subscribe, pause ──► take ...
//	             ▲        │
//	             │        ▼
//	             │      term: new ── taken ──► live ── holds nest, renewals ──► over
//	             │                                │ ▲
//	             └──── released in Redis ◄────────┤ └── handed off to the next caller, or
//	                                              │     moved to another id in one request
//	                                              ├── lost: contexts end, then it is cleaned up
//	                                              └── detached: an id and nothing else
//
// A term is new until it was taken, live while somebody holds it or it is on its
// way to the next holder, and over once it was released, lost or detached. Its id
// is never used again. An id that a late request may still create is an orphan,
// and is released again and again (internal/request).
//
// Readers of a process share one term; callers of a fair lock have an entry each,
// and a queue in Redis; several locks of one client can be taken with one request.
//
// # Its packages
//
// Five packages know each other in one direction:
//
//	lock ──► readers, fair ──► wait ──► term
//
// This one has the kinds of locks and the ways to a lock. Packages readers and
// fair are for callers that wait together, or each in a queue. Package wait has
// entries, gates and what passes on. Package term has what is held, and knows
// nobody who waits. Begin to read with Spec.Enter, then with Table.Alone of
// package wait.
//
// # What it does not know
//
// It does not know what users call a lock, how an error reads that a lock is busy
// or lost, or who hears of events: it says facts, and term.Events has a function
// for each event. It does not know several clients: internal/multi does.
package lock
