// Package multi acquires several locks as one: all of them, or of a majority as
// many as answer in time.
//
// All of them are acquired one after the other, in an order that every caller has,
// or with one request where they are of one client and slot. A caller that has
// some waits half a second for the next one, or longer if servers are slow to
// answer, then releases them and begins again with the one that was missing, so
// that no two callers wait for one another for ever.
//
//	round ──► every lock ──────────────► live ──► over: released, or too few are left
//	  ▲        │ one is missing
//	  └─ pause ┘
//
// A majority is tried all at once, in rounds. The caller returns with the first
// majority; what answers later joins the hold. Callers of one process wait for
// each other in a local queue, and are one voter.
//
// A hold is live for as long as enough of its members' holds are. It promises no
// more than these do: no tokens that rise together, no order between processes. It
// knows of its members' ends only by their contexts, and each has its watchdog and
// orphans as if it were alone. Only handing off is off: a member that is waited
// for with others in hand must not jump a queue, nor a failed attempt start a
// chain of hand-overs.
//
// # What it does not know
//
// The types of locks. What is right for one lock, its wait, its trust, its
// release, is internal/lock's.
package multi
