// Package term has what a client holds of locks: the time for which one owner id
// stands in Redis, from the request that takes it to its end.
//
// Holds nest in a term, which is renewed, lost, detached and released here. The
// package knows which lock it is, how that is wanted, and of which kind it is,
// since a kind is what its fields say. What only groups and read-write locks need
// stands in group.go, readwrite.go and readhold.go. It does not know who waits for
// a lock, or where: of that a term knows its Home. Begin to read with Term and
// Hold.
package term
