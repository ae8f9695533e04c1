// Package ratequeue lines up the callers of a process that want permits of one
// rate limiter: in order, and with one request for many of them. A worker asks for
// them while there are any.
//
// # What it promises
//
// Callers get permits in the order in which they came, however many each wants. A
// caller that only tries is told at once whether it has them, and overtakes nobody
// who waits. A caller waits for nobody's request: when it leaves while one is in
// flight that asks for it, what that brings goes to the next caller, or back.
//
//	serve ──► ask for the first of them ── given ──► tell them, and again
//	  ▲          └── refused: tell those who do not wait, or not for long enough
//	  └── pause until there are permits, the first has left, or two seconds are over
//
// A request that was given up may still take permits: their record has an id, by
// which what nobody wants is given back. What nobody could give back is free again
// when the interval is over. Permits whose answer comes when their window has
// moved on are not handed out: the caller is going to use them now.
//
// # What it does not know
//
// How a rate is stored, and the time: the scripts go by the server's clock. How a
// limiter gets a rate: whoever calls [Queues.Take] says that to users.
package ratequeue
