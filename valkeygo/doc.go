// Package valkeygo lets redlatch use valkey-go, the client library of the Valkey
// project. It speaks to Redis as well. The requests of all goroutines go out over
// one connection, and a script that answers with a number allocates nothing.
//
// [New] makes the client from valkey-go's own options: a single server, Sentinel
// or a cluster. It makes two in fact, one for scripts and one for subscriptions,
// so that neither waits for the other. [Use] takes a client that exists already.
//
// # Options that matter
//
// New sets some options that a lock needs: see there. ConnWriteTimeout, here 3 s
// by default, bounds all that a script can take; a server that is further away,
// or slower, may need more. Dialer.KeepAlive is how often an idle connection is tried
// out: a sixth of ConnWriteTimeout, twice a second by default, or more often.
//
// # Versions
//
// This package is a module of its own, so that a program has one client library only.
// It is released together with redlatch and has its version numbers: require the same
// version of both.
package valkeygo
