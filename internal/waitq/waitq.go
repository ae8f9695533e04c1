// Package waitq has callers of one process that want the same thing wait in line,
// while one worker asks the server for as many of them as fit into one request.
//
//	outside ── Join ──► in line ── Tell ──► told
//	                      │  ▲
//	                      │  └── the worker has it in a request (Batch); it keeps its place
//	                      └── left: its context, its time, Close, or an outage (request.Look);
//	                          what a request in flight brings it, the worker gives back
package waitq

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
)

// A Waiter is a caller in line.
type Waiter[T any] struct {
	claim.Wait

	Want T
	Once bool // it only tries

	Gone bool // it is not in line any more; guarded by the Queue
	Nth  int  // to come; guarded by the Queue

	place queue.Place[*Waiter[T]]
	told  chan error // one slot
}

// A Queue is the callers that want the same thing. Its mutex guards what else its
// user keeps of them.
type Queue[T any] struct {
	queue.Users
	sync.Mutex

	Server   *request.Server
	Keys     []string         // which server the worker asks
	Refusals request.Refusals // of its requests
	Line     queue.Line[*Waiter[T]]
	Came     int // how many callers have come

	work    func() // asks for as long as Batch returns somebody
	working bool
	wake    chan struct{} // one slot: to ask now is worth it
	nobody  func()        // called when the line is empty; nil: nothing is to be ended then
}

// Start makes the queue ready. work runs in the background, while there is anybody
// to ask for.
func (q *Queue[T]) Start(s *request.Server, keys []string, work func()) {
	q.Server, q.Keys, q.work, q.wake = s, keys, work, make(chan struct{}, 1)
}

// JoinLocked puts w at the end of the line, and sees to it that a worker runs. It
// says whether one was there, who may be asleep.
func (q *Queue[T]) JoinLocked(w *Waiter[T], retain func()) (works bool) {
	q.PushLocked(w)
	return q.WorkLocked(retain)
}

// PushLocked puts w at the end of the line. Who has left a line may line up again.
func (q *Queue[T]) PushLocked(w *Waiter[T]) {
	q.Came++
	w.Nth, w.Gone = q.Came, false
	if w.told == nil {
		w.told = make(chan error, 1)
	}
	q.Line.Push(&w.place, w, w.Once)
}

// WorkLocked starts a worker if there is none. retain takes a share of the queue
// for that: work gives it back. It says whether a worker was there, who may be
// asleep.
func (q *Queue[T]) WorkLocked(retain func()) (works bool) {
	if works = q.working; !works {
		q.working = true
		retain()
		q.Server.Go(q.work)
	}
	return works
}

// EndLocked says that the worker ends.
func (q *Queue[T]) EndLocked() { q.working = false }

// Await waits until w is told, or leaves by itself. Then left is called with why,
// under the mutex, and Await returns what that returns.
func (q *Queue[T]) Await(w *Waiter[T], left func(why error) error) error {
	return q.AwaitAs(w, &request.Waiting{
		Key: q.Keys[0], Asks: &q.Refusals, Since: w.Since, Until: w.Until, Stop: q.Server.Done,
	}, left)
}

// AwaitAs is Await for a caller that waits for the worker in a way of its own.
func (q *Queue[T]) AwaitAs(w *Waiter[T], how *request.Waiting, left func(why error) error) error {
	told, err := request.Wait(w.Ctx, q.Server, how, w.told)
	if err == nil {
		return told
	}
	q.Lock()
	defer q.Unlock()
	if w.Gone { // both: what it was told says more
		return <-w.told
	}
	if q.Line.First() == w {
		defer q.Nudge() // the next one may want less, or there is none
	}
	err = left(err)
	q.removeLocked(w)
	return err
}

func (q *Queue[T]) removeLocked(w *Waiter[T]) {
	q.Line.Remove(&w.place)
	w.Gone = true
	if q.nobody != nil && q.Line.Len() == 0 {
		q.nobody()
		q.nobody = nil
	}
}

// TellLocked tells w how it went, and says whether w was there to hear it.
func (q *Queue[T]) TellLocked(w *Waiter[T], err error) bool {
	if w.Gone {
		return false
	}
	q.removeLocked(w)
	w.told <- err
	return true
}

// TellAllLocked tells everybody in line the same.
func (q *Queue[T]) TellAllLocked(err error) {
	for w := range q.Line.All() {
		q.TellLocked(w, err)
	}
}

// Batch returns the first ones in line, so many at most. With none the worker is
// no longer working, and returns.
func (q *Queue[T]) Batch(most int) []*Waiter[T] {
	q.Lock()
	defer q.Unlock()
	if q.Server.Closed() {
		q.TellAllLocked(request.ErrClosed)
	}
	batch := q.BatchLocked(func(*Waiter[T]) bool { most--; return most >= 0 })
	if len(batch) == 0 {
		q.EndLocked()
	}
	return batch
}

// While returns a context with the values of w's, which ends when nobody is in
// line. The one that While returned before it does not end any more.
func (q *Queue[T]) While(w *Waiter[T]) context.Context {
	ctx, end := context.WithCancel(context.WithoutCancel(w.Ctx))
	q.Lock()
	defer q.Unlock()
	if q.nobody = end; q.Line.Len() == 0 {
		end()
	}
	return ctx
}

// BatchLocked returns the first ones in line, up to the first that does not fit. A
// nudge from before it has had its effect.
func (q *Queue[T]) BatchLocked(fits func(w *Waiter[T]) bool) (batch []*Waiter[T]) {
	select {
	case <-q.wake:
	default:
	}
	for w := range q.Line.All() {
		if !fits(w) {
			break
		}
		batch = append(batch, w)
	}
	return batch
}

// Nudge wakes the worker, if it sleeps.
func (q *Queue[T]) Nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Sleep waits for d, for a nudge, for news or for Close. It says whether it was
// news.
func (q *Queue[T]) Sleep(d time.Duration, news <-chan struct{}) (heard bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-q.wake:
	case <-news:
		return true
	case <-q.Server.Done:
	}
	return false
}

// Claims adds those that wait to a list: of makes their claim.
func (q *Queue[T]) Claims(list *claim.List, of func(w *Waiter[T]) claim.Claim) {
	q.Lock()
	defer q.Unlock()
	others := q.Line.Len()
	for w := range q.Line.All() {
		others--
		if !w.Once && !list.Wait(of(w), &w.Wait) {
			break
		}
	}
	list.Others(others)
}
