package worker

import "sync"

// A Queue runs functions in the order in which they came, one at a time, on a
// goroutine that lasts as long as there are some. Its methods are safe for
// concurrent use and never block.
type Queue struct {
	most int         // how many may wait; 0: any number
	rest func(n int) // called for n that came when so many waited, after these

	mu      sync.Mutex // guards what follows
	waiting []func()
	skipped int
	running bool
	closed  bool
}

// NewQueue returns a queue in which at most so many functions wait; 0 means any
// number. The queue does not run the functions beyond that: it calls rest with
// their number instead.
func NewQueue(most int, rest func(n int)) *Queue { return &Queue{most: most, rest: rest} }

// Add has f run after all that came before. After Close it does nothing.
func (q *Queue) Add(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
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
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		return f
	}
	q.waiting = nil
	if n := q.skipped; n > 0 {
		q.skipped = 0
		return func() { q.rest(n) }
	}
	q.running = false
	return nil
}

// Close drops what waits. What runs goes on.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.waiting, q.skipped = true, nil, 0
}
