// Package latch counts something down, in whatever processes, and lets callers
// wait until nothing is missing.
//
// # What it promises
//
// A change is made once, whatever becomes of its request and of the reply: it goes
// through a session of package request. Count-downs that wait for one another in
// this process go as one request. Of the callers that wait one asks for all:
// package poll.
//
// # What it does not know
//
// Which errors users see, and which numbers and names make sense: a Latch gets
// what was checked.
package latch
