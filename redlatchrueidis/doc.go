// Package redlatchrueidis lets redlatch use rueidis, which sends the requests of
// all goroutines over one connection and allocates nothing for a script that
// answers with a number. It is the fastest way to use redlatch.
//
//	client, err := redlatchrueidis.Open("redis://localhost:6379", redlatch.Config{})
//	if err != nil { ... }
//	defer client.Close()
//
// [Open] makes a client of redlatch from a URL, with connections of its own: to a
// single server, to Sentinel or to a cluster. [New] makes a driver from rueidis'
// own options. Both make two clients of rueidis, one for scripts and one for
// subscriptions, so that neither waits for the other. [Use] makes a driver of a
// client of rueidis that the program has already.
//
// # Options that matter
//
// [New] sets some options that a lock needs, and says which. ConnWriteTimeout,
// here 3 s by default, limits the time that a script can take. A server that is
// further away, or slower, may need more. Dialer.KeepAlive says how often an idle
// connection is checked. That is once in a sixth of ConnWriteTimeout, which is
// twice a second by default, or more often.
//
// # When a name moves
//
// A fixed address may lead to another server when a replica has taken over. When a
// driver that [New] has made for one server is told that this is no primary
// (READONLY, MOVED, MASTERDOWN), it closes its connections and makes new ones. A
// driver made by [Use] cannot close the connections of its client, and stays with
// the server.
//
// # Versions
//
// This package is a module of its own, so that a program needs one client library
// only. It is released together with redlatch, and has the same version numbers.
// Require the same version of both.
package redlatchrueidis
