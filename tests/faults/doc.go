// Package faults tells on real servers what becomes of locks when something goes
// wrong: replies and requests that are lost or late, callers that leave, servers
// and connections that die. Each adapter has one kind of server for all stories,
// by chance; with REDLATCH_PROOF each story is told with every adapter on every
// kind of server.
package faults
