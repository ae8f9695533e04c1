// Package redlatchotel makes OpenTelemetry traces and metrics of what redlatch's
// clients do. It needs the API of OpenTelemetry only; the program brings the SDK.
//
//	telemetry, err := redlatchotel.New(redlatchotel.Options{})
//	if err != nil { ... }
//	client, err := redlatch.New(driver, redlatch.Config{Events: telemetry.Events(redlatch.Events{})})
//	if err != nil { ... }
//	defer telemetry.Watch(client)()
//
// # Traces
//
// Each acquisition has a span, "acquire lock" or "acquire fair lock" and so on, from the
// call to its end. If it succeeds and there is something to hold, a second span begins
// there, "hold lock", which ends with the hold. Both are children of the span of the
// context that was given to the acquisition. The second has a link to the first.
//
// The current span of the context changes on the way:
//
//   - During the wait it is the acquisition's. The client library has that context, so its
//     own spans are children, as far as it is asked by the caller itself and not by a worker
//     that sends the requests of many.
//   - Under the hold, in [redlatch.Hold.Context] and in the function that Do calls, it is
//     the hold's. What the program does with the lock in hand is below the span that says
//     for how long it had the lock.
//   - In the function that Hold.With is given a context for, it is that context's own.
//
// The spans are of kind INTERNAL. An acquisition may be served inside the process, wait
// for minutes, or send many requests: as a CLIENT span it would be taken for one slow
// request to Redis, beside those of the client library.
//
//	redlatch.kind      the type: "lock", "fair lock", "semaphore"
//	redlatch.name      the name, see Options.Name; of several locks: all
//	redlatch.mode      of a read-write lock: "read" or "write"
//	redlatch.permits   how many, if it is about permits
//	redlatch.owner     of the hold; what `redlatch show` prints, too
//	redlatch.outcome   of an acquisition: a redlatch.Outcome
//	redlatch.reason    of a hold: a redlatch.EndReason
//	redlatch.loss      of a hold that was lost: a redlatch.LossReason
//	error.type         if the status is an error: the outcome or the reason
//	db.system.name     of an acquisition: "redis"
//
// The status of an acquisition is an error unless it succeeded, was busy, or was
// cancelled: these two are answers that its caller has asked for. The status of a hold is
// an error if it was lost. Several permits that are acquired at once have one span, which
// ends with the last of them, and which is lost if one of them was.
//
// A span that has not ended is not exported: that of a hold is missing if its process dies.
//
// # Metrics
//
//	redlatch.acquire.duration   s          histogram: redlatch.kind, redlatch.outcome
//	redlatch.hold.duration      s          histogram: redlatch.kind, redlatch.reason
//	redlatch.losses             {loss}     counter: redlatch.kind, redlatch.loss
//	redlatch.holds              {hold}     up-down counter
//	redlatch.permits            {permit}   up-down counter
//	redlatch.waiters            {waiter}   up-down counter
//	redlatch.renewals.due       {renewal}  up-down counter
//	redlatch.renewals.failed    {renewal}  counter
//	redlatch.renewals.oldest    s          gauge
//
// The first three come from events, with the context of the acquisition: an SDK adds the
// wait's span, or the hold's, as an exemplar. How often a lock was acquired is the count
// of the first. A MultiHold that is lost is one loss. The others are [redlatch.Stats] of the
// clients that are watched ([Telemetry.Watch]), asked for when metrics are collected. They
// are up-down counters because their sum over processes has a meaning; Prometheus shows
// them as gauges. redlatch.renewals.oldest is Stats.OldestUnconfirmed: as it comes near to
// Config.WatchdogTimeout, holds are lost.
//
// # Versions
//
// This package is a module of its own, so that only a program that uses OpenTelemetry
// depends on it. It is released together with redlatch and has its version numbers: require
// the same version of both.
package redlatchotel
