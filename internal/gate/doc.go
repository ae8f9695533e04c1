// Package gate lines up the goroutines of one process that want the same
// thing, first come, first served, and lets them pass it on to one another.
//
// # What it promises
//
// At most one goroutine is inside a gate. The goroutine inside leaves by Pass,
// which lets the first waiter in and gives it a value, or by Exit, which lets it
// in with nothing. Both are one short critical section: no I/O, no callback. Look
// tells who is queued, for those who ask, and has one.
//
//	TryEnter, Enter ── nobody is inside ──► inside ── Pass, Exit ──► outside
//	  │                                       ▲
//	  └── Enter ──► queued ── its turn ───────┤
//	                  │                       │
//	                  └── Cancel ── true: outside; false: it was let in
//
// The hard moment is a waiter that is let in and gives up at the same time.
// It is resolved in one place: Cancel reports whether the waiter got away. A
// waiter that did not is inside, and has to Pass or Exit like any other.
//
// # What it does not know
//
// What is passed on, contexts and time: its caller waits on Woken, and decides
// for how long. Wake has it look at what else there is.
package gate
