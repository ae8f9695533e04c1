package permit

import (
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/waitq"
)

// An expirableQueue is where the callers of this client line up that want permits
// of one expirable semaphore. One worker asks Redis for them: see
// expirableworker.go. The queue exists while there is a line, a release of this
// process is in flight, or what this process owes to others is remembered.
//
// A caller that leaves while a request is in flight that asks for it is not waited
// for: the worker gives back what the request brings.
type expirableQueue struct {
	waitq.Queue[wanted] // its mutex guards what follows sem and news

	sem  *Expirable // one of that name
	news notify.Listener

	setUp    bool          // a caller's set-up found that it has been given permits, though the server has just said that it has not
	rest     time.Duration // before the next set-up, as the last one may not have lasted
	blocked  bool          // the first is known to have to wait
	reach    int           // for how many ids the next request asks at most, unless the first wants more
	releases releases
	turns    handoff.Budget // what this process owes to others
}

// releases are those of this process, by a queue's worker that hears of them.
type releases struct {
	underWay int
	awaited  bool // the worker waits for the answer to one of them
	heard    int  // messages of others that the worker has acted on
}

type expirableWaiter = waitq.Waiter[wanted]

// A wanted is what a caller in line wants, and how it fares.
type wanted struct {
	Want

	ids []string

	// Guarded by the queue until the caller is told.
	asked     bool          // the request that is in flight asks for them
	uncertain bool          // a request of unknown outcome may still create them
	sent      time.Time     // when the request was sent that brought them
	next      time.Duration // when the first permit is over, as last seen; 0: not known
}

// expirableQueues are a client's by the names of their semaphores.
type expirableQueues struct {
	all queue.Registry[string, *expirableQueue]
}

// get returns the queue of s; put gives it back.
func (qs *expirableQueues) get(s *Expirable) *expirableQueue {
	return qs.all.Get(s.Key, func() *expirableQueue {
		q := &expirableQueue{sem: s}
		q.Start(s.all.Server, s.keys, q.work)
		q.unowedLocked(time.Now())
		return q
	})
}

// unowedLocked notes that nothing is owed to anybody.
func (q *expirableQueue) unowedLocked(now time.Time) {
	q.turns.Free()
	q.turns.Unused = now.Add(-handoff.Keep) // a later pause would be remembered
}

func (qs *expirableQueues) put(q *expirableQueue) { qs.all.Put(q.sem.Key, q, nil) }

// wait waits in line until w has its permits. If it does not get them, next is
// when the first permit is over, if that is known.
func (qs *expirableQueues) wait(s *Expirable, w *expirableWaiter) (next time.Duration, err error) {
	q := qs.get(s)
	defer qs.put(q)
	if next, err = q.join(w); err != nil {
		return next, err
	}
	left := false
	err = q.Await(w, func(why error) error {
		left, next = true, w.Want.next
		return q.leaveLocked(w, why)
	})
	if !left {
		next = w.Want.next
	}
	return next, err
}

// join puts w into the line. It fails with request.ErrWaitOver if w does not wait
// and somebody else does, and says when the first permit is over.
func (q *expirableQueue) join(w *expirableWaiter) (next time.Duration, err error) {
	q.Lock()
	defer q.Unlock()
	if w.Once {
		switch {
		case q.blocked:
			return q.Line.First().Want.next, request.ErrWaitOver
		case q.turns.Owes(q.news.Foreign(), time.Now()) > 0:
			return 0, handoff.OwedError(q.turns.Owed)
		}
	}
	if !q.JoinLocked(w, func() { q.sem.all.expirable.all.Retain(q) }) {
		q.setUp, q.rest, q.reach = false, 0, mostAsked
		q.Refusals.Over()
	}
	if w.Once && q.rest > 0 {
		q.Nudge() // it does not wait for a rest to end
	}
	return 0, nil
}

// leaveLocked returns the error of w, which why keeps from waiting any longer. Of
// those who are asked for right now the worker releases what the request brings.
func (q *expirableQueue) leaveLocked(w *expirableWaiter, why error) error {
	if !w.Want.asked {
		if w.Want.uncertain {
			q.sem.discard(w.Want.ids, true)
		}
		q.blocked = q.blocked && q.Line.First() != w
	}
	silence := q.Refusals.Why()
	if w.Want.next == 0 {
		silence = q.Server.NoAnswer(q.Keys[0], &q.Refusals)
	}
	return request.During(silence, why)
}

// tellLocked tells w how it went, and releases what it does not get, or does not
// want any more.
func (q *expirableQueue) tellLocked(w *expirableWaiter, err error) {
	if !q.TellLocked(w, err) && err == nil || err != nil && w.Want.uncertain {
		q.sem.discard(w.Want.ids, w.Want.uncertain)
	}
}

// tellAllLocked tells everybody in line the same.
func (q *expirableQueue) tellAllLocked(err error) {
	for w := range q.Line.All() {
		q.tellLocked(w, err)
	}
}

// tellOncesLocked tells those the same that do not wait, and when the first permit
// is over, if that is known.
func (q *expirableQueue) tellOncesLocked(err error, next time.Duration) {
	for w := range q.Line.All() {
		if q.Line.Tries() == 0 {
			break
		}
		if w.Once {
			w.Want.next = next
			q.tellLocked(w, err)
		}
	}
}

// releasing prepares the release of a permit. It returns the queue that hears of
// it, how many subscriptions are the client's own, and how many messages of others
// were heard.
func (qs *expirableQueues) releasing(s *Expirable) (q *expirableQueue, own string, foreign int) {
	q = qs.get(s)
	q.Lock()
	defer q.Unlock()
	q.news.Expect()
	q.releases.underWay++
	return q, s.all.Server.Own(&q.news, s.channel), q.news.Foreign()
}

// released notes what is owed for a release that q has heard of, foreign messages
// having been heard before.
func (qs *expirableQueues) released(q *expirableQueue, reply driver.Reply, foreign int, sent time.Time) {
	defer qs.put(q)
	q.Lock()
	defer q.Unlock()
	nothing := len(reply.List) != 2 || reply.List[0].Int == 0
	q.releases.underWay--
	q.news.Answered(!nothing)
	if q.releases.awaited || qs.all.Kept(q) {
		defer q.Nudge()
	}
	if nothing {
		return
	}
	n, now := int(reply.List[1].Int), time.Now()
	if n == 0 && !q.sem.all.Unseen.Yields(q.sem.channel, now.Add(-handoff.Keep), now) {
		q.unowedLocked(now)
		return
	}
	q.turns.Used(foreign)
	q.turns.Yield(n, foreign, sent, now)
	qs.all.Keep(q.sem.Key, q, handoff.Keep)
}
