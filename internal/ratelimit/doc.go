// Package ratelimit has what a client does to a rate limiter and asks of it: its
// rate, its end, what is given back.
//
// # What it promises
//
// None of these requests has a record to be known by, and each would do harm if it
// came late: to who has set the rate since, or deleted the limiter, or to what was
// taken since. So they go through a session of package request, and what changes
// something is done once.
//
// # What it does not know
//
// Which callers wait for permits, and how they are taken: package ratequeue, which
// it tells of each change. Which rates make sense, and which errors users see: the
// package of the same name beside the root.
package ratelimit
