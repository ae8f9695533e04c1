package permit

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
)

// An expirableQueue is where the callers of this client line up that want permits of one
// expirable semaphore. One worker asks Redis for them: see expirableworker.go. The queue
// exists while there is a line, a release of this process is in flight, or what this
// process owes to others is remembered.
//
// A caller that leaves while a request is in flight that asks for it is not waited for:
// the worker gives back what the request brings.
type expirableQueue struct {
	queue.Users // the worker, releases that are in flight, and a caller while it lines up

	sem  *Expirable // one of that name
	news notify.Listener
	wake chan struct{} // one slot: a waiter whom the others waited for has left

	// Guarded by expirableQueues.mu.
	line     queue.Line[*expirableWaiter]
	asking   int           // how many of the first are asked for right now; they stay in line
	setUp    bool          // a caller's set-up found that it has been given permits, though the server has just said that it has not
	rest     time.Duration // before the next set-up, as the last one may not have lasted
	working  bool          // there is a worker
	blocked  bool          // the first is known to have to wait
	reach    int           // for how many ids the next request asks at most, unless the first wants more
	releases releases
	turns    handoff.Budget // what this process owes to others

	trouble request.Trouble // of the worker's requests
}

// releases are those of this process, by a queue's worker that hears of them.
type releases struct {
	underWay int
	awaited  bool // the worker waits for the answer to one of them
	heard    int  // messages of others that the worker has acted on
}

// An expirableWaiter is a caller in line.
type expirableWaiter struct {
	Want

	ctx   context.Context //nolint:containedctx // for its values
	ids   []string
	since time.Time
	done  chan struct{} // closed when it is decided what err says

	// Guarded by expirableQueues.mu until done is closed.
	place     queue.Place[*expirableWaiter] // until it is decided, or has left
	left      bool
	uncertain bool          // a request of unknown outcome may still create its ids
	sent      time.Time     // when the request was sent that brought the permits
	next      time.Duration // when the first permit is over, as last seen; 0: not known
	err       error         // nil: the permits are the caller's
}

// expirableQueues are a client's by the names of their semaphores.
type expirableQueues struct {
	mu  sync.Mutex // guards every queue and every waiter
	all queue.Registry[string, *expirableQueue]
}

// get returns the queue of s; put gives it back.
func (qs *expirableQueues) get(s *Expirable) *expirableQueue {
	return qs.all.Get(s.Key, func() *expirableQueue {
		q := &expirableQueue{sem: s, wake: make(chan struct{}, 1)}
		q.unowed(time.Now())
		return q
	})
}

// unowed notes that nothing is owed to anybody. Holding expirableQueues.mu, unless it is new.
func (q *expirableQueue) unowed(now time.Time) {
	q.turns.Free()
	q.turns.Unused = now.Add(-handoff.Keep) // a later pause would be remembered
}

func (qs *expirableQueues) put(q *expirableQueue) { qs.all.Put(q.sem.Key, q, nil) }

// wait waits in line until w has its permits. If it does not get them, next is when the
// first permit is over, if that is known.
func (qs *expirableQueues) wait(s *Expirable, w *expirableWaiter) (next time.Duration, err error) {
	q, err := qs.enter(s, w)
	if err != nil {
		return w.next, err
	}
	server := s.all.Server
	_, end := request.Wait(w.ctx, server, &request.Waiting{
		Key: s.keys[0], Asks: &q.trouble, Since: w.since, Until: w.Until, Stop: server.Done,
	}, w.done)
	if end == nil || !qs.leave(s, w) {
		return w.next, w.err
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	why := q.trouble.Why()
	if w.next == 0 {
		why = server.NoAnswer(s.keys[0], &q.trouble)
	}
	return w.next, request.During(why, end)
}

// enter puts w into the line of s. It fails with request.ErrWaitOver if w does not wait
// and somebody else does.
func (qs *expirableQueues) enter(s *Expirable, w *expirableWaiter) (*expirableQueue, error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.get(s)
	defer qs.put(q)
	if w.Once {
		switch {
		case q.blocked:
			w.next = q.line.First().next
			return nil, request.ErrWaitOver
		case q.turns.Owes(q.news.Foreign(), time.Now()) > 0:
			return nil, handoff.OwedError(q.turns.Owed)
		}
	}
	if !q.working {
		q.working, q.setUp, q.rest, q.reach = true, false, 0, mostAsked
		q.trouble.Over()
		qs.all.Retain(q)
		s.all.Server.Go(q.work)
	}
	q.line.Push(&w.place, w, w.Once)
	if w.Once && q.rest > 0 {
		q.askNow() // it does not wait for a rest to end
	}
	return q, nil
}

// leave takes w out of the line of s and returns true, or false if it has been
// decided: then w.done is closed.
func (qs *expirableQueues) leave(s *Expirable, w *expirableWaiter) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if !w.place.Taken() {
		return false
	}
	q := qs.all.Find(s.Key)
	w.left = true
	first := q.line.First()
	if q.asksFor(w) {
		return true // the worker sees to it
	}
	q.line.Remove(&w.place)
	if w.uncertain {
		s.discard(w.ids, true)
	}
	if w == first {
		q.blocked = false
		q.askNow()
	}
	return true
}

// asksFor says whether the request that is in flight asks for w. Holding expirableQueues.mu.
func (q *expirableQueue) asksFor(w *expirableWaiter) bool {
	i := 0
	for x := range q.line.All() {
		if i == q.asking {
			break
		}
		if x == w {
			return true
		}
		i++
	}
	return false
}

// askNow wakes the worker, if it sleeps.
func (q *expirableQueue) askNow() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// decide tells w how it went. Holding expirableQueues.mu.
func (q *expirableQueue) decide(w *expirableWaiter, err error) {
	q.line.Remove(&w.place)
	w.err = err
	if (err != nil && w.uncertain) || (err == nil && w.left) {
		q.sem.discard(w.ids, w.uncertain)
	}
	close(w.done)
}

// decideAll tells everybody in line the same. Holding expirableQueues.mu.
func (q *expirableQueue) decideAll(err error) {
	for w := range q.line.All() {
		q.decide(w, err)
	}
}

// decideOnces tells those the same that do not wait, and when the first permit is over,
// if that is known. Holding expirableQueues.mu.
func (q *expirableQueue) decideOnces(err error, next time.Duration) {
	for w := range q.line.All() {
		if q.line.Tries() == 0 {
			break
		}
		if w.Once {
			w.next = next
			q.decide(w, err)
		}
	}
}

// releasing prepares the release of a permit. It returns the queue that hears of it,
// how many subscriptions are the client's own, and how many messages of others were
// heard.
func (qs *expirableQueues) releasing(s *Expirable) (q *expirableQueue, own string, foreign int) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q = qs.get(s)
	q.news.Expect()
	q.releases.underWay++
	return q, s.all.Server.Own(&q.news, s.channel), q.news.Foreign()
}

// released notes what is owed for a release that q has heard of, foreign messages
// having been heard before.
func (qs *expirableQueues) released(q *expirableQueue, reply driver.Reply, foreign int, sent time.Time) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	defer qs.put(q)
	nothing := len(reply.List) != 2 || reply.List[0].Int == 0
	q.releases.underWay--
	q.news.Answered(!nothing)
	if q.releases.awaited || qs.all.Kept(q) {
		defer q.askNow()
	}
	if nothing {
		return
	}
	n, now := int(reply.List[1].Int), time.Now()
	if n == 0 && !q.sem.all.Blind.Yields(q.sem.channel, now.Add(-handoff.Keep), now) {
		q.unowed(now)
		return
	}
	q.turns.Used(foreign)
	q.turns.Yield(n, foreign, sent, now)
	qs.all.Keep(q.sem.Key, q, handoff.Keep)
}
