// Package worker runs jobs that nobody may abandon on goroutines that are used
// again: calls into drivers that do not return when a context ends, releases
// whose caller has left, clean-up after a cancelled wait.
//
// A pool starts as many goroutines as there are jobs under way and keeps a few
// idle ones; Close waits for the jobs, for a bounded time.
package worker
