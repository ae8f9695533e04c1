// Package permit is the engine of both kinds of semaphores. The permits of a
// [Counted] one are a number, and those of an [Expirable] one have ids and leases.
// In both, the callers of a process line up in a queue, one for each semaphore,
// and one worker asks Redis for many of them. [Semaphores] are what one client has
// of both.
//
// # What it promises
//
// Callers of one process get permits in the order in which they asked, however
// many each wants. The worker waits for no caller, and a caller waits for the
// worker no longer than its context, its time and Config.OutageTimeout allow. A
// caller that leaves causes no loss of permits: what a request brings for it goes
// to the next caller, or back.
//
// No permit is given twice by a request that was sent twice, or that comes late.
// What is counted goes through a session of package request. A permit with an id
// is known by it: an id that a late request may still create is uncertain, and is
// reaped, that is to say released again and again.
//
// # Counted permits
//
// What a goroutine releases is in hand: it belongs to the process, and goes to the
// first in line without a request for as long as a quantum of package handoff
// lasts. The worker does exchanges. One gives back what is in hand, and asks for
// the first in line.
//
//	release ──► hand ── quantum lasts ──► the first in line
//	             ▲ └─── quantum is over, or nobody wants it ──► exchange ──► Redis
//	             └───── granted, or the exchange failed ───────────┘
//
// If an exchange finds that there is no semaphore, the worker sets it up with the
// number that the first one in line has brought who has brought any, or tells
// those for whom it asked.
//
// Permits that replicas may not know of are in doubt. They go back before anybody
// gets them.
//
// Nothing is known of who has counted permits, but for a [Section], which runs a
// function under them: a shutdown waits for it, and ends its context when its time
// is over.
//
// # Permits that have leases
//
// The worker asks with new ids for as many of the first in line as one request can
// serve. What is released goes back to Redis and never to a goroutine of the
// process.
//
//	wait ── given in time ──► live ── Release, by itself or by its id ──► released
//	  │                         ├──── lease over, gone, MaxHold ────────► lost
//	  │                         ├──── Close ────────────────────────────► left to its lease
//	  │                         └──── Detach ──► an id and nothing else
//	  └── the caller left, or the answer came too late to trust it: the ids are discarded
//
// A live permit has a lease of package renew, which renews many permits with one
// request.
//
// # What it does not know
//
// The types and options of package semaphore, and the errors of the root that have
// fields: it says facts. [Options] has a function for each event. Arguments are
// checked before it sees them. It does not know whether other processes wait: it
// counts who listens, as handoff does, and a listener that wants nothing costs a
// pause.
package permit
