// Package revoke releases locks by force: it asks their holders to let go first.
//
// # What it promises
//
// A holder that is a client of redlatch, and alive, is told before its lock is
// free: its context has ended by then. A holder that does not answer within a
// second is not waited for. Nobody is dispossessed who was not among the holders
// when the caller looked.
//
//	Release ──► ask each holder ── has let go ──► force: what is still theirs is deleted
//	              │    ▲   │                         ▲
//	              │    └───┘ again, with pauses      │
//	              └────── no answer in a second ─────┘
//
//	asked ──► is it mine? ── is the word there? ──► revoke the hold ──► answer
//	              └─────────────────┴── no: nothing happens
//
// Each client that has had an owner id listens on a channel of its own, whose name
// follows from its owner fields. Any other does so only while it asks: a client
// that only looks needs no right to that channel. Whoever may use locks at all may
// publish there, whatever the names of the locks that it may use. So a message
// proves nothing: the asked client looks for the word that the asker has left at a
// key that belongs to that lock. Messages beyond 64 that wait to be looked at are
// dropped: somebody floods, and an asker goes on without an answer. What comes
// there and is about something else is passed on.
//
// # What it does not know
//
// How a lock is stored, and whether a hold exists: internal/lock says so. Which
// owners hold a lock: the caller has read that, and names the holders.
package revoke
