// Package poll has the callers of a process wait together until something has
// happened in Redis: with one subscription, and one worker that asks for all.
//
// # What it promises
//
// A caller returns when the thing has happened, with the answer, or when it has to
// leave. Nobody waits for a caller that has left, and nobody asks for one.
//
//	work ──► ask for all in line ── over: tell them, and again for those who came later
//	  ▲          └── not yet: listen
//	  └── pause until there is a message or a new caller, or two seconds are over
//
// An answer is only good for callers that came before the question was sent: what
// has happened may have been undone before the others came. The worker asks again
// for these.
//
// A lost message costs no more than two seconds. A request that fails is sent
// again for as long as anybody is in line.
//
// # What it does not know
//
// What it waits for: a [Question] says which script to run, and reads the answer.
// Latches and barriers ask so. How callers line up, and when one fails in an
// outage: internal/waitq.
package poll
