package faultnet

import "sync"

// queue is an unbounded first-in-first-out hand-over between two goroutines of
// one connection. Unbounded on purpose: over net.Pipe a client that writes a
// long pipeline before it reads its first reply would otherwise deadlock with a
// server that answers while it reads.
type queue[T any] struct {
	mu     sync.Mutex
	wake   *sync.Cond
	items  []T
	closed bool
}

func newQueue[T any]() *queue[T] {
	q := &queue[T]{}
	q.wake = sync.NewCond(&q.mu)
	return q
}

// push appends v; after close it does nothing.
func (q *queue[T]) push(v T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.items = append(q.items, v)
	q.wake.Signal()
}

// close lets pop return what is queued already, and then false.
func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Broadcast()
}

// kill is close that also throws away what is queued.
func (q *queue[T]) kill() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.items = true, nil
	q.wake.Broadcast()
}

// pop waits until there is something and returns all of it; false means closed
// and empty.
func (q *queue[T]) pop() (all []T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		if q.closed {
			return nil, false
		}
		q.wake.Wait()
	}
	all, q.items = q.items, nil
	return all, true
}
