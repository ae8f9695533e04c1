package permit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// An exchange is one request of a countedQueue: what was in hand goes back to
// Redis, and the first in line ask for theirs.
//
// There is one at a time, and nobody waits for it but the worker: a caller that
// leaves cuts nothing short. What was granted to a caller that has left meanwhile
// is in hand, for the next one in line or for the next exchange.
type exchange struct {
	hand    hand // what it gives back
	wants   []int
	turn    string // whether others go first: see the script
	foreign int    // messages heard before
	begun   time.Time
}

// unset is what an exchange is answered for a semaphore that there is not: nobody
// has set it up, or it is gone.
const unset = -Most - 1

// mostWants is for how many callers one exchange asks.
const mostWants = 64

// work does exchanges for as long as there is anything to do.
func (q *countedQueue) work() {
	defer q.sem.all.counted.put(q)
	for {
		x, pause := q.next()
		switch {
		case x != nil:
			q.send(x)
		case pause > 0:
			q.listen()
			q.Sleep(pause, nil)
		default:
			return
		}
	}
}

// next returns the next exchange, or how long there is nothing to do; if that is
// 0 the work is over.
func (q *countedQueue) next() (*exchange, time.Duration) {
	q.Lock()
	defer q.Unlock()
	now := time.Now()
	open := !q.Server.Closed()
	owes := q.owesLocked(now)
	for owes && q.Line.First() != nil && q.Line.First().Once {
		q.TellLocked(q.Line.First(), handoff.OwedError(q.turns.Owed))
	}
	if q.hand.n == 0 && (q.Line.First() == nil || !open) {
		q.EndLocked()
		return nil, 0
	}
	if !now.Before(q.redis.poll) {
		q.redis.heard = true
	}
	ask := open && !owes && (q.hopesLocked() || (q.Line.First() != nil && q.hand.n > 0))
	if q.hand.n == 0 && !ask {
		until := q.redis.poll
		if owes {
			until = q.turns.Rest
		}
		return nil, max(until.Sub(now), 1)
	}
	x := &exchange{turn: "0", foreign: q.news.Foreign(), begun: now}
	if q.Line.First() != nil && q.hand.n >= q.Line.First().Want.n && q.turns.Yields(now) {
		// What could have been handed out is there because a quantum is over. What is
		// released meanwhile belongs to the next one.
		x.turn = "1"
		if q.turns.Last(now) {
			x.turn = "2"
		}
		q.turns.Begin(now, false)
	}
	x.hand = q.hand.take()
	if ask {
		for w := range q.Line.All() {
			if len(x.wants) == mostWants {
				break
			}
			w.Want.asked, w.Want.turn = true, len(x.wants)
			x.wants = append(x.wants, w.Want.n)
		}
		q.redis.heard = false
	}
	return x, 0
}

// send does an exchange.
func (q *countedQueue) send(x *exchange) {
	args := []string{q.sem.channel, strconv.Itoa(x.hand.n), x.turn, q.Server.Own(&q.news, q.sem.channel)}
	for _, n := range x.wants {
		args = append(args, strconv.Itoa(n))
	}
	call := q.session.Call(lua.SemaphoreExchange, q.sem.keys, args)
	call.Refusals, call.Acks = &q.Refusals, q.Server.Acks.Holds
	if x.hand.n > 0 {
		q.news.Expect()
	}
	var answer int64
	var err error
	q.session.Deliver(&call, false, func(a int64, e error) {
		if answer, err = a, e; e != nil && driver.Failure(e).Permanent() {
			q.Lock()
			defer q.Unlock()
			q.TellAllLocked(e) // at once, as that may last: what is granted is in hand in the end
		}
	})
	if answer > int64(len(x.wants)) || answer < unset || answer == unset && x.hand.n > 0 {
		err = fmt.Errorf("redlatch: semaphore %q: %s answered %d to %d callers", q.sem.Name(), call.Script.Name(), answer, len(x.wants))
	}
	if x.hand.n > 0 {
		q.news.Answered(err == nil)
	}
	if err != nil {
		q.failed(x, err)
		return
	}
	if answer == unset {
		q.setUp()
		return
	}
	short := call.Doubt(answer > 0)
	if x.hand.n > 0 && (answer <= 0 || short != nil) {
		call.Unacked() // what was given back counts
	}
	if q.answered(x, int(answer), short) {
		q.listen()
	}
}

// setUp gives the semaphore, of which the server has just said that there is none,
// as many permits as the first one has brought who has brought any.
func (q *countedQueue) setUp() {
	server := q.sem.all.Server
	q.Lock()
	rest := q.rest
	for w := range q.Line.All() {
		if rest > 0 && w.Once && w.Want.asked {
			q.TellLocked(w, notSet(q.sem.Name(), "semaphore.New")) // it does not wait
		}
	}
	q.Unlock()
	if rest > 0 && q.brought() > 0 { // the last set-up did not last, and the next one may not
		q.Sleep(rest, nil)
	}
	for n := q.brought(); n > 0; n = q.brought() {
		call := q.session.Call(lua.SemaphoreSet, q.sem.keys, []string{q.sem.channel, strconv.Itoa(n), wire.MillisUp(0)})
		call.Refusals, call.Acks = &q.Refusals, server.Acks.Holds
		var err error
		q.session.Deliver(&call, false, func(_ int64, e error) {
			if err = e; e == nil || request.Outlasted(e) {
				return // of an outage each of those who wait sees for itself how long it lasts
			}
			q.Lock()
			defer q.Unlock()
			for w := range q.Line.All() {
				if w.Want.permits > 0 {
					q.TellLocked(w, e)
				}
			}
		})
		if err == nil {
			call.Unacked()
			q.Lock()
			q.rest = longer(q.rest)
			q.Unlock()
			return
		}
	}
}

// brought returns how many permits the first one in line has brought who has
// brought any. If nobody has, it tells those for whom the worker has asked that
// there is no semaphore: the others may know better. It returns 0 as well if there
// is something to give back, which makes the semaphore.
func (q *countedQueue) brought() int {
	q.Lock()
	defer q.Unlock()
	q.redis.heard, q.redis.fewer = true, math.MaxInt // to be asked again
	if q.hand.n > 0 || q.Server.Closed() {
		return 0
	}
	for w := range q.Line.All() {
		if w.Want.permits > 0 {
			return w.Want.permits
		}
	}
	for w := range q.Line.All() {
		if w.Want.asked {
			q.TellLocked(w, notSet(q.sem.Name(), "semaphore.New"))
		}
	}
	return 0
}

// listen starts the queue's subscription, if it has none.
func (q *countedQueue) listen() {
	if q.Server.Closed() {
		return
	}
	q.news.Start(func(h func(confirmed bool)) func() {
		return q.Server.Subscribe(q.sem.channel, func(n driver.Notice) {
			h(n.Subscribed)
			if n.Subscribed {
				q.hear()
			}
		}, q.hear)
	}, q.hear)
}

// hear notes that Redis may have permits.
func (q *countedQueue) hear() {
	q.Lock()
	defer q.Unlock()
	q.redis.heard = true
	q.turns.Used(q.news.Foreign())
	q.attendLocked()
}

// answered notes what became of an exchange, and says whether there is anything
// to listen for.
func (q *countedQueue) answered(x *exchange, answer int, short error) (listen bool) {
	q.Lock()
	defer q.Unlock()
	now := time.Now()
	q.rest = 0
	x.hand.tell(nil)
	if len(x.wants) > 0 {
		q.redis.poll = soon(now)
	}
	switch {
	case answer < 0: // others go first
		if x.turn == "2" && answer == -1 {
			answer = 0 // whoever they are
		}
		q.turns.Yield(-answer, x.foreign, x.begun, now)
		q.turns.Begin(now, true) // for what we still have
		q.fresh = true
		q.sem.all.counted.keep(q)
		q.redis.heard = true
		q.redis.fewer = math.MaxInt
		for q.Line.First() != nil && q.Line.First().Once && q.Line.First().Want.asked {
			q.TellLocked(q.Line.First(), handoff.OwedError(q.turns.Owed))
		}
		return q.Line.First() != nil
	case len(x.wants) == 0:
		q.redis.heard = true // what we gave
		q.turns.Free()
		if q.sem.all.Unseen.Yields(q.sem.channel, now.Add(-handoff.Keep), now) {
			q.turns.Yield(0, x.foreign, x.begun, now)
			q.sem.all.counted.keep(q)
		}
		return false
	}
	for _, n := range x.wants[:answer] {
		q.hand.n += n
		q.hand.untold = true
	}
	if short != nil {
		q.hand.doubted = true // what is in hand goes back before anybody gets it
		for w := q.Line.First(); w != nil && w.Want.asked && w.Want.turn < answer; w = q.Line.First() {
			q.TellLocked(w, short)
		}
		return false // there is something to send at once
	}
	if answer == 0 {
		q.turns.Taken()
	} else if q.turns.Owed > 0 {
		q.turns.Settled(q.news.Foreign(), now)
	}
	if answer > 0 && q.fresh {
		q.turns.Begin(now, true)
		q.fresh = false
	}
	q.redis.fewer = math.MaxInt
	q.handOutLocked(now, true)
	if answer < len(x.wants) {
		q.redis.fewer = x.wants[answer]
		for w := q.Line.First(); w != nil && w.Once && w.Want.asked && w.Want.n >= q.redis.fewer; w = q.Line.First() {
			q.TellLocked(w, request.ErrWaitOver)
		}
	}
	return answer < len(x.wants) && q.Line.First() != nil
}

// failed notes that an exchange was not done, or that nobody will know.
func (q *countedQueue) failed(x *exchange, err error) {
	if q.lost(x, err) {
		q.sem.all.Events.ReleaseFailed(q.sem.Name(), "", err)
	}
}

// lost does what failed says, and says whether permits were to be given back that
// nobody is told of.
func (q *countedQueue) lost(x *exchange, err error) bool {
	q.Lock()
	defer q.Unlock()
	forgotten := errors.Is(err, request.ErrForgotten)
	if errors.Is(err, request.ErrUnavailable) && !forgotten && !q.Server.Left() {
		// Not done, and not refused: it will be tried again for as long as
		// anybody wants something. Callers lose patience by themselves.
		q.hand.putBack(x.hand)
		q.redis.heard = true
		return false
	}
	heard := x.hand.tell(err)
	if forgotten {
		// What was given may be there, and is not given again. A waiter does not have
		// what it wants, and asks once more.
		q.redis.heard = true
		return true
	}
	q.TellAllLocked(err)
	return x.hand.n > 0 && !heard
}

// soon is when to ask again without having heard anything.
func soon(now time.Time) time.Time {
	return now.Add(request.Jittered(request.LongestPause))
}
