// Package gate lines up the goroutines of one process that want the same
// thing, first come, first served, and lets them pass it on to one another.
//
// At most one goroutine is inside a gate. Whoever is inside leaves by Pass,
// which lets the first waiter in and gives it a value, or by Exit, which lets
// it in with nothing. Both are one short critical section: no I/O, no callback.
//
// The hard moment is a waiter that is let in and gives up at the same time.
// It is resolved in one place: Cancel reports whether the waiter got away. A
// waiter that did not is inside, and has to Pass or Exit like any other.
package gate
