package worker

import (
	"slices"
	"sync"
)

// A Queue runs functions in the order in which they came, one at a time, on a
// goroutine that lasts as long as there are some. Its methods are safe for
// concurrent use and never block.
type Queue struct {
	most int         // how many may wait; 0: any number
	rest func(n int) // called for n that came when so many waited, after these

	mu      sync.Mutex // guards what follows
	waiting []queued
	skipped int
	running bool
	closed  bool
}

// queued is a function in a queue.
type queued struct {
	run   func()
	lasts bool // Close does not drop it
}

// NewQueue returns a queue in which at most so many functions wait; 0 means any
// number. The queue does not run the functions beyond that: it calls rest with
// their number instead.
func NewQueue(most int, rest func(n int)) *Queue { return &Queue{most: most, rest: rest} }

// Add has f run after all that came before. After Close it does nothing.
func (q *Queue) Add(f func()) { q.add(queued{f, false}) }

// AddLasting has f run as Add does, and Close neither drops nor refuses it.
func (q *Queue) AddLasting(f func()) { q.add(queued{f, true}) }

func (q *Queue) add(f queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed && !f.lasts:
		return
	case q.most > 0 && (len(q.waiting) >= q.most || q.skipped > 0): // what comes later stays behind what was skipped
		q.skipped++
		return
	}
	q.waiting = append(q.waiting, f)
	if !q.running {
		q.running = true
		go q.run()
	}
}

func (q *Queue) run() {
	for f := q.next(); f != nil; f = q.next() {
		f()
	}
}

// next takes the first function out; nil if there is none.
func (q *Queue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		f := q.waiting[0]
		q.waiting[0] = queued{}
		q.waiting = q.waiting[1:]
		return f.run
	}
	q.waiting = nil
	if n := q.skipped; n > 0 {
		q.skipped = 0
		return func() { q.rest(n) }
	}
	q.running = false
	return nil
}

// Close drops what waits, unless it lasts. What runs goes on.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.skipped = true, 0
	q.waiting = slices.DeleteFunc(q.waiting, func(f queued) bool { return !f.lasts })
}
