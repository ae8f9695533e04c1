// Package demo shows the library at work on a machine that has nothing: an
// embedded server in this process, worker processes that contend for one lock,
// a crash that is survived, and a loss that the holder sees in time.
//
//	demo.go      what happens when: start, story, end
//	story.go     the crash and the loss
//	worker.go    what a worker process does
//	process.go   how this process starts workers and talks to them
//	oracle.go    counts overlaps from the workers' own records
//	board.go     what is known at any moment, and the story so far
//	view.go      the live view
//
// Each worker reaches the server through a fault proxy of its own, so that one
// of them can be cut off.
package demo
