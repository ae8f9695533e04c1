// Package wait has the callers of a client that want a lock, and what they share:
// an entry for each lock, with the gate that lets one caller inside.
//
// The caller inside asks the server, waits, and takes a term. A term that a holder
// has released passes on to the next caller at the gate. The package does not know
// how a hold ends, which package term does, or which kinds there are: callers that
// wait in another way have packages of their own. Begin to read with Table.Alone.
package wait
