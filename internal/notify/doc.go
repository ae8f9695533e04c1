// Package notify turns a subscription into hints for one waiting goroutine: a
// message or a fresh subscription means "look again".
//
// # What it promises
//
// A goroutine that takes Wake, and then looks, misses nothing that was published
// after the server confirmed the subscription. Hints coalesce and may be lost or
// spurious: messages in flight are lost when a connection breaks, so a goroutine
// that waits also has a timer.
//
//	zero ── Start ──► started ── the server confirms ──► confirmed ──┐
//	 ▲                   │                                  │  ▲     │ the driver subscribes
//	 └────── Stop ───────┴──────────────────────────────────┘  └─────┘ again: wake
//
// What an earlier subscription still delivers after Stop is ignored.
//
// A process hears its own messages too. It announces each with Expect, and says
// with Answered whether it was published. A Listener counts what was announced and
// what it hears, and so knows how many messages came from elsewhere: it counts
// these foreign messages, and reports them. Messages of requests that were in
// flight when the subscription was confirmed may be heard or not: they wake, and
// are not counted.
//
// # What it does not know
//
// What a message says, and whether the subscription is alive just now: drivers
// tell only when it is there again.
package notify
