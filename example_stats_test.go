package redlatch_test

import "log"

// A program that publishes these numbers sees an outage before it costs a hold.
func ExampleClient_Stats() {
	client := newClient()

	stats := client.Stats()
	log.Printf("%d locks held, %d callers wait", stats.Holds, stats.Waiters)
	if stats.RenewalLag > 0.5 {
		log.Printf("%d renewals are due, and %.0f %% of a lease are over", stats.RenewalsDue, 100*stats.RenewalLag)
	}
}
