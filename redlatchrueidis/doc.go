// Package redlatchrueidis lets redlatch use rueidis, which sends the requests of all
// goroutines over one connection and allocates nothing for a script that answers
// with a number. It is the fastest way to use redlatch.
//
// [New] makes the client from rueidis' own options, for a single server, for
// Sentinel or for a cluster. In fact it makes two clients, one for scripts and
// one for subscriptions, so that neither waits for the other. [Use] takes a
// client that exists already.
//
// # Options that matter
//
// [New] sets some options that a lock needs, and says which. ConnWriteTimeout, here
// 3 s by default, limits the time that a script can take. A server that is further
// away, or slower, may need more. Dialer.KeepAlive says how often an idle connection
// is checked. That is once in a sixth of ConnWriteTimeout, which is twice a second by
// default, or more often.
//
// # When a name moves
//
// A fixed address may lead to another server when a replica has taken over. When a
// driver that [New] has made for one server is told that this is no primary (READONLY,
// MOVED, MASTERDOWN), it closes its connections and makes new ones. A driver made by
// [Use] cannot close the connections of its client, and stays with the server.
//
// # Versions
//
// This package is a module of its own, so that a program needs one client library
// only. It is released together with redlatch, and has the same version numbers.
// Require the same version of both.
package redlatchrueidis
