// Package redlatchotel makes OpenTelemetry traces and metrics of what redlatch's
// clients do. It needs only the API of OpenTelemetry. The program brings the SDK.
//
//	_, err := redlatchotel.New(redlatchotel.Options{}, client)
//
// # Traces
//
// Each acquisition has a span, such as "acquire lock" or "acquire fair lock", from
// the call to its end. If it succeeds and there is something to hold, a second
// span, such as "hold lock", begins at that moment, and ends with the hold. Both
// spans are children of the span of the context that was given to the acquisition.
// The second span has a link to the first.
//
// The current span of the context changes on the way:
//
//   - During the wait it is the acquisition's span. The client library gets that
//     context, so its own spans are children of it, if the caller itself calls the
//     library and not a worker that sends the requests of many callers.
//   - Under the hold, in [redlatch.Hold.Context] and in the function that Do
//     calls, it is the span of the hold. What the program does with the lock in
//     hand is below the span that says for how long it had the lock.
//   - In the context that Hold.With returns, it is the span of the context that
//     was given to Hold.With.
//
// The spans are of kind INTERNAL. An acquisition may be served inside the process,
// wait for minutes, or send many requests. As a CLIENT span it would look like one
// slow request to Redis, beside the spans of the client library.
//
//	redlatch.kind      the type: "lock", "fair lock", "semaphore"
//	redlatch.name      the name, see Options.Name; of several locks: all
//	redlatch.mode      of a read-write lock: "read" or "write"
//	redlatch.permits   how many, if it is about permits
//	redlatch.owner     of the hold; what `redlatch show` prints, too
//	redlatch.outcome   of an acquisition: an observe.Outcome
//	redlatch.reason    of a hold: an observe.EndReason
//	redlatch.loss      of a hold that was lost: a redlatch.LossReason
//	error.type         if the status is an error: the outcome or the reason
//	db.system.name     of an acquisition: "redis"
//
// The status of an acquisition is an error unless it succeeded, was busy, or was
// cancelled. Busy and cancelled are answers that its caller has asked for. The
// status of a hold is an error if it was lost. Several permits that are acquired
// at once have one span. It ends with the last permit, and is lost if one of them
// was.
//
// A span that has not ended is not exported. So the span of a hold is missing if
// its process dies.
//
// # Metrics
//
//	redlatch.acquire.duration   s          histogram: redlatch.kind, redlatch.outcome
//	redlatch.hold.duration      s          histogram: redlatch.kind, redlatch.reason
//	redlatch.losses             {loss}     counter: redlatch.kind, redlatch.loss
//	redlatch.holds              {hold}     up-down counter
//	redlatch.permits            {permit}   up-down counter
//	redlatch.waiters            {waiter}   up-down counter
//	redlatch.leader             {leader}   up-down counter: redlatch.name
//	redlatch.renewals.due       {renewal}  up-down counter
//	redlatch.renewals.failed    {renewal}  counter
//	redlatch.renewals.lag       1          gauge
//
// The first three come from events, with the context of the acquisition. So an SDK
// adds the span of the wait, or of the hold, as an exemplar. The count of the
// first one is how often locks were acquired. A hold of several locks that is lost
// is one loss. The others are the [redlatch.Stats] of the clients that are watched
// ([New], [Telemetry.Watch]), which are asked when metrics are collected. They are
// up-down counters because their sum over processes has a meaning. Prometheus
// shows them as gauges. redlatch.renewals.lag is Stats.RenewalLag: a little over
// 1/3 at most while all is well, and at 1 a hold is lost.
//
// redlatch.leader is 1 if this process leads in the election, and 0 if it has a
// candidate there that does not lead: see [election.Standing]. Its sum over
// processes says whether anybody leads.
//
// # Versions
//
// This package is a module of its own, so that only a program that uses
// OpenTelemetry depends on it. It is released together with redlatch, and has the
// same version numbers. Require the same version of both.
package redlatchotel
