package redlatch_test

import (
	"log"
	"time"
)

// A program that publishes these numbers sees an outage before it costs a hold.
func ExampleClient_Stats() {
	const watchdog = 30 * time.Second // Config.WatchdogTimeout
	client := newClient()

	stats := client.Stats()
	log.Printf("%d locks held, %d callers wait", stats.Holds, stats.Waiters)
	if stats.OldestUnconfirmed > watchdog/2 {
		log.Printf("%d renewals are due, one of them for %v", stats.RenewalsDue, stats.OldestUnconfirmed)
	}
}
