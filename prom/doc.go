// Package prom makes Prometheus metrics of what a redlatch client does: of every
// acquisition and hold, of losses and renewals, and of what is held and waited for now.
//
//	metrics := prom.New(prom.Options{})
//	prometheus.MustRegister(metrics)
//
//	client, err := redlatch.New(driver, redlatch.Config{Events: metrics.Events(redlatch.Events{})})
//	...
//	metrics.Watch(client)
//
// One [Metrics] may serve several clients, which it adds up. To tell clients apart, give
// each one of its own, registered with prometheus.WrapRegistererWith and a label.
//
// # Metrics
//
// Of acquisitions and holds; kind, mode, outcome and reason are the words of package
// redlatch (KindLock, Outcome, EndReason, LossReason):
//
//   - redlatch_acquisitions_total{kind,mode,name,outcome}: acquisitions that have ended.
//   - redlatch_acquire_wait_seconds{kind,mode,name,outcome}: how long they took, a histogram.
//   - redlatch_hold_seconds{kind,mode,name,reason}: how long what has ended was held, a histogram.
//   - redlatch_lost_total{reason}: lost holds and permits. Several locks as one count once.
//   - redlatch_dropped_total: holds and permits that were garbage collected, not released.
//
// Of other events:
//
//   - redlatch_renewals_failed_total: failed renewals, one for each hold and try.
//   - redlatch_releases_failed_total: releases that could not be confirmed.
//   - redlatch_requeued_total: waiters that lost their place in a fair lock's queue.
//   - redlatch_not_acknowledged_total: changes that went on without their replicas.
//   - redlatch_events_skipped_total: events that were too many to be told. The four above, and
//     only these, may lack them.
//
// Of the clients that are watched, asked whenever metrics are collected:
//
//   - redlatch_clients: how many there are.
//   - redlatch_held, redlatch_permits, redlatch_waiters: see [redlatch.Stats].
//   - redlatch_renewals_due, redlatch_oldest_unconfirmed_renewal_seconds: the same. The
//     second is that of the client with the oldest.
//   - redlatch_watchdog_timeout_seconds: [Options.WatchdogTimeout], to compare the last one with.
//
// # Names
//
// The label name is empty, unless [Options.Name] says otherwise: names of locks often have
// ids in them, and each would be dozens of time series that never end.
//
// # Dashboard and alerts
//
// This package's folder has a dashboard for Grafana, dashboard.json, and alert rules for
// Prometheus, rules.yml. docs/production.md says what each alert means.
//
// # Versions
//
// This package is a module of its own. It is released together with redlatch and has its
// version numbers: require the same version of both.
package prom
