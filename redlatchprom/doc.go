// Package redlatchprom makes Prometheus metrics of what a redlatch client does: of
// every acquisition and hold, of losses and renewals, and of what is held and
// waited for now.
//
//	prometheus.MustRegister(redlatchprom.New(redlatchprom.Options{}, client))
//
// One [Metrics] may serve several clients, and adds them up. To tell clients
// apart, give each client a Metrics of its own, registered with
// prometheus.WrapRegistererWith and a label.
//
// # Metrics
//
// Metrics of acquisitions and holds. The values of kind, mode, outcome and reason
// are the words of packages redlatch and observe (KindLock, LossReason, Outcome,
// EndReason):
//
//   - redlatch_acquisitions_total{kind,mode,name,outcome}: acquisitions that have
//     ended.
//   - redlatch_acquire_wait_seconds{kind,mode,name,outcome}: how long they took, a
//     histogram.
//   - redlatch_hold_seconds{kind,mode,name,reason}: how long holds lasted that
//     have ended, a histogram.
//   - redlatch_lost_total{reason}: lost holds and permits. Several locks that were
//     acquired as one count once.
//   - redlatch_dropped_total: holds and permits that were garbage collected before
//     they were released.
//
// Metrics of other events:
//
//   - redlatch_renewals_failed_total: failed renewals, one for each hold and try.
//   - redlatch_releases_failed_total: releases that could not be confirmed.
//   - redlatch_requeued_total: waiters that lost their place in a fair lock's
//     queue.
//   - redlatch_not_acknowledged_total: changes that counted although replicas did
//     not acknowledge them.
//   - redlatch_events_skipped_total: events that were too many to be reported.
//     They may be missing in the four metrics above, and only in these.
//
// Metrics of the clients that are watched, which are asked whenever metrics are
// collected:
//
//   - redlatch_clients: how many clients are watched.
//   - redlatch_leader{name}: 1 if this process leads in the election, and 0 if it
//     has a candidate there that does not lead. See [election.Standing]. Elections
//     in which no candidate of it runs have no series.
//   - redlatch_held, redlatch_permits, redlatch_waiters: see [redlatch.Stats].
//   - redlatch_renewals_due, redlatch_renewal_lag_ratio: see [redlatch.Stats],
//     too. The second is the highest of all clients.
//
// # Names
//
// The label name is empty, unless [Options.Name] says otherwise. Names of locks
// often contain ids, and each name would make dozens of time series that never
// end. The names of elections are shown unless Options.Name is set: each makes one
// series, which ends with Run.
//
// # Dashboard and alerts
//
// This package's folder has a dashboard for Grafana, dashboard.json, and alert
// rules for Prometheus, rules.yml. docs/production.md says what each alert means.
//
// Metrics of what Redis and all clients say, without a line in any program, are
// those of the command redlatch exporter. The alert rules use these, too.
//
// # Versions
//
// This package is a module of its own. It is released together with redlatch, and
// has the same version numbers. Require the same version of both.
package redlatchprom
