// Package worker runs jobs that must come to their end, on goroutines that are
// used again. Such jobs are calls into drivers that do not return when a context
// ends, releases whose caller has left, and clean-up after a cancelled wait.
//
// A pool starts as many goroutines as there are running jobs and keeps a few
// idle ones; Close waits for the jobs, for a bounded time.
package worker
