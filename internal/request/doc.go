// Package request sends the requests of a client: each until it is known what
// became of it. It knows nothing of locks.
//
// # A call
//
// A Call is one script with its keys and arguments, sent until the server has
// answered it. Every script allows for being executed more than once, and late, so
// a call needs no other care than patience.
//
//	Run ──► attempt ── answered ──► the reply
//	 ▲         ├────── failed: Pause, and again, while that makes sense
//	 └─────────┘
//	           └────── the caller leaves: Left, and Pending is the attempt
//	                   that is in flight, if one is
//	                     ├── Outcome: what becomes of that attempt
//	                     └── Finish: the same, and on with Run if it failed
//
// An attempt can end early for its caller, and really end later: a worker waits
// for it. While a node answers promptly a caller needs no worker, with a driver
// that allows for it: it is back before it could want to leave. A driver that can
// be left (Traits.Interruptible) drops the answer, so for a caller that leaves the
// request is sent once more. The end of a caller's context reaches no other
// driver: several close a shared connection then, and one that callers go to all
// the same (Traits.Direct) returns when it has an answer. A caller whose context
// cannot end needs no worker either.
//
// # What is sent together
//
// A caller takes its request to the driver itself, while few are in flight. Other
// attempts go to the sender of their node. With more than a few in flight it lets
// those that come together go out as one batch, where the driver can do that. It
// gathers for one turn of Go's scheduler, no longer, and waits for no reply. It
// also tells callers that no answer has come in time.
//
// # What counts
//
// A script that adds or takes has no owner id by which the server could know it
// again. It goes through a Session, which numbers its requests and sends one at a
// time. The server remembers the number and the answer of the last one.
//
// # Who fails when
//
// There is one rule for outages, and Look has it: a caller fails when
// Options.Outage has passed since it came and since the server last owed no
// answer, whichever is later. A Call looks when an attempt has failed. Callers
// that wait for others to ask look by themselves, at a gate or in Wait: Refusals
// tell them what becomes of those requests.
//
// # What is left behind
//
// Orphans are ids that a late request may still create in Redis. Each is released
// again and again, for longer than any request can be in flight.
//
// # What it does not know
//
// Whether a request that it gave up will still be executed: Unknown says that it
// may. By which kind of Pub/Sub clients tell one another, before the first request
// with a key has asked; and how many replicas there are, before the first that
// waits for one.
package request
