// Package poll has the callers of a process wait together until something has happened
// in Redis: with one subscription, and one of them, the leader, who asks for all.
//
// # What it promises
//
// Of many callers that wait for the same thing one asks at a time. A caller returns when
// the thing has happened, with the answer, or when it has to leave; if it was the leader,
// another caller leads at once. Nobody waits for a caller that has left.
//
//	join ──► round ──── settled ──► what the leader has learnt
//	           ├─────── leading: asks, pauses, asks ... until it is settled
//	           └─────── the caller leaves; if it was the leader, another one is
//
// An answer is only good for callers that came before the question was sent: what
// has happened may have been undone before the others came. So callers are in
// rounds: a question closes the last one, and a caller that comes later begins another.
//
// The leader asks again after a message, when there is a new round, and after two seconds
// at most: a lost message costs no more.
//
// # What it does not know
//
// What it waits for: a [Question] says which script to run, and reads the answer. Latches
// and barriers ask so.
package poll
