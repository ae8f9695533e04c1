// Package search runs the library's real scripts in every order that a few
// requests can come in, and looks whether anything ever goes wrong.
//
// Each search has a small cast: owners of redlatch in one or two processes, and a
// client of Redisson, whose scripts are written here from the description of its
// protocol. A state is what the embedded server stores, what each client believes,
// which requests are on their way, and the time, in ticks. From each state the
// search takes every step that there is: a client sends a request that it may send
// then; a request is executed, and its answer is heard or lost; a tick passes. A
// request is executed never, once or twice, and as late as it likes. Where the
// order of a client's own attempts matters, in the fair queue and in sessions,
// each of them is a request of its own that is executed once at most, as with the
// adapters, which send nothing again; so is each request of Redisson's. A
// session's come no later than its key is kept for.
//
// In all these states, and at all these steps:
//
//   - No two trust at one time, but readers.
//   - What is trusted is stored, for as long as it is trusted, and nobody who
//     holds it is told that it is gone: also not by a replica that has nothing
//     yet, or by a server that has no memory left.
//   - Nothing is left: every key ends by itself, but those that are meant to stay;
//     and when everybody has released what it has, nothing is there.
//   - Who waits can get it: at once, when everybody has released; it is told, when
//     a request has made that possible; and who is refused is told no longer time
//     than it takes.
//   - A generation of a barrier goes only when all its parties are there, and
//     alive; its callers do not learn different ends of it; a reset breaks one;
//     and nobody waits in one that is over, or is forgotten by those who come.
//   - What counts is executed once, and its answer remembered; a rate that is set
//     leaves no key behind, and is not set again by an attempt that comes late.
//   - Who releases is told how many others wait: each client has a subscription of
//     its own, and somebody subscribes to a pattern, who waits for nothing.
//   - A script comes to its end at the old node of a slot that moves: it does
//     nothing with a key that it has emptied. In some stories the keys move, one
//     after the other, at any moment.
//   - A script that is refused half-way, for want of memory or of a right, loses
//     no permit; and what is larger than any lock is refused, and stays as it is.
//
// Then the scripts are mutated: each line is deleted, and each condition and
// answer negated, one at a time. A mutant that no search finds anything wrong with
// needs an explanation, in explained.
//
// What the clients believe is modelled, not the library's Go code: an answer
// counts from when its request was sent, for the lease; the margin by which
// redlatch stops earlier is left out, and so is everything of which the scripts
// see nothing. An answer is heard when the request is executed, or never: one that
// comes late could only be trusted for less time. There are a few requests in each
// story, and a few ticks.
package search
