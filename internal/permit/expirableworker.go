package permit

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// The worker of an expirableQueue asks Redis, one request at a time, for as many
// of the first in line as fit into it; Redis serves them in order, up to the first
// who has to wait. Then the worker sleeps until there is a message, the first
// permit is over or two seconds have passed.

const (
	// mostAsked is for how many ids one request asks at most, unless the first in
	// line wants more. A line that has to wait asks for fewer: for twice what it
	// got, and not less than fewAsked, as most of it would ask in vain.
	mostAsked = 100
	fewAsked  = 4
	// shortestPause is the pause after a request that failed, doubled up to a second.
	shortestPause = 5 * time.Millisecond
)

// longer returns the pause that comes after a pause.
func longer(pause time.Duration) time.Duration {
	return min(max(2*pause, shortestPause), time.Second)
}

// work is the worker's life.
func (q *expirableQueue) work() {
	defer q.sem.all.expirable.put(q)
	server := q.Server
	var pause time.Duration
	for {
		if owed := q.owes(); owed > 0 {
			server.Listen(&q.news, q.sem.channel, nil, nil)
			q.sleep(owed)
			continue
		}
		batch := q.next()
		if batch == nil {
			return
		}
		call := q.request(batch)
		reply, err := call.Run(context.WithoutCancel(batch[0].Ctx))
		short := call.Doubt(err == nil && request.First(reply).Int > 0)
		if err != nil {
			q.failed(batch, &call, err)
			pause = longer(pause)
			q.Sleep(pause/2+rand.N(pause/2), nil) //nolint:gosec // jitter
			continue
		}
		pause = 0
		if wait := q.answered(batch, &call, reply, short); wait != 0 {
			server.Listen(&q.news, q.sem.channel, nil, nil)
			q.sleep(wait)
		}
	}
}

// owes returns for how long permits are left to others, if anybody here wants
// some.
func (q *expirableQueue) owes() time.Duration {
	q.Lock()
	defer q.Unlock()
	q.releases.awaited, q.releases.heard = false, q.news.Foreign()
	if q.Line.Len() == 0 || q.Server.Closed() {
		return 0
	}
	owed := q.turns.Owes(q.releases.heard, time.Now())
	if owed > 0 {
		q.tellOncesLocked(handoff.OwedError(q.turns.Owed), 0)
	}
	return owed
}

// next returns those to ask for, or nil if nobody is in line: then there is no
// worker any more.
func (q *expirableQueue) next() []*expirableWaiter {
	q.Lock()
	if q.Server.Closed() {
		q.tellAllLocked(request.ErrClosed)
	}
	q.blocked = false
	ids := 0
	batch := q.BatchLocked(func(w *expirableWaiter) bool {
		first := ids == 0
		ids += len(w.Want.ids)
		return first || ids <= q.reach
	})
	for _, w := range batch {
		w.Want.asked = true
	}
	var stop func()
	if batch == nil {
		q.EndLocked()
		stop = q.news.Detach()
	}
	q.Unlock()
	if stop != nil {
		stop()
	}
	return batch
}

// request prepares the request for a batch. It is one attempt only: the line is
// another by the time of the next.
func (q *expirableQueue) request(batch []*expirableWaiter) request.Call {
	all := q.sem.all
	args := []string{q.sem.channel}
	lease := batch[0].Want.Lease
	for _, w := range batch {
		args = append(args, all.leaseMs(w.Want.Lease), strconv.Itoa(len(w.Want.ids)))
		args = append(args, w.Want.ids...)
		lease = min(lease, w.Want.Lease)
	}
	return request.Call{
		Server: all.Server, Script: lua.ExpirableTake, Keys: q.sem.keys, Args: args,
		Lease: lease, Stop: all.Server.Over, Single: true, Acks: all.Server.Acks.Holds, Refusals: &q.Refusals,
	}
}

// failed notes that a request brought no answer, or none that helps.
func (q *expirableQueue) failed(batch []*expirableWaiter, call *request.Call, err error) {
	q.Lock()
	defer q.Unlock()
	for _, w := range batch {
		w.Want.asked = false
		w.Want.uncertain = w.Want.uncertain || call.Uncertain(err) || call.Left
	}
	q.discardLocked(batch)
	if !call.Left && driver.Failure(err).Permanent() {
		q.tellAllLocked(err)
	}
}

// discardLocked releases what those may still get who have left while they were
// asked for, and did not get it.
func (q *expirableQueue) discardLocked(batch []*expirableWaiter) {
	for _, w := range batch {
		if w.Gone && w.Want.uncertain {
			q.sem.discard(w.Want.ids, true)
		}
	}
}

// answered deals with the server's answer, and returns for how long to sleep; 0 if
// there is more to ask for at once. short, if it is not nil, says why what was
// given does not count.
func (q *expirableQueue) answered(batch []*expirableWaiter, call *request.Call, reply driver.Reply, short error) time.Duration {
	q.Lock()
	defer q.Unlock()
	for _, w := range batch {
		w.Want.asked = false
	}
	if len(reply.List) != 2 || reply.List[0].Kind != driver.ReplyInt || reply.List[0].Int > int64(len(batch)) {
		q.discardLocked(batch)
		q.tellAllLocked(request.Unexpected(reply, lua.ExpirableTake))
		return 0
	}
	given := int(reply.List[0].Int)
	q.discardLocked(batch[max(given, 0):])
	if given < 0 {
		q.notSetLocked(batch)
		return 0
	}
	q.setUp, q.rest = false, 0
	got := 0
	for _, w := range batch[:given] {
		got += len(w.Want.ids)
		w.Want.sent = call.Sent
		if short != nil {
			w.Want.uncertain = true // the server may forget them
		}
		q.tellLocked(w, short)
	}
	if given > 0 {
		q.turns.Settled(q.news.Foreign(), time.Now())
	}
	if given == len(batch) {
		q.reach = min(2*q.reach, mostAsked)
		return 0
	}
	q.reach = min(max(2*got, fewAsked), mostAsked)
	return q.refusedLocked(batch[given:], reply.List[1].Int)
}

// refusedLocked notes that the first of those who did not get theirs has to wait,
// and so has everybody behind. ms is when the first permit is over, or less than
// 0. It returns for how long to sleep.
func (q *expirableQueue) refusedLocked(batch []*expirableWaiter, ms int64) time.Duration {
	wait := request.Jittered(request.LongestPause)
	var next time.Duration
	if ms >= 0 {
		next = wire.FromMillis(ms + 1)
		wait = min(wait, next)
	}
	head := batch[0]
	for _, w := range batch {
		w.Want.next = next
	}
	if !head.Gone {
		q.tellOncesLocked(request.ErrWaitOver, next)
	}
	if q.blocked = !head.Gone; !q.blocked {
		return 0 // the next one may want less
	}
	return wait
}

// notSetLocked gives the semaphore the permits that a caller has brought. If
// nobody has, or that does not help, it tells those that there are no permits yet
// for whom it has asked: the others may know better.
func (q *expirableQueue) notSetLocked(batch []*expirableWaiter) {
	if q.giveFirstLocked() {
		return
	}
	for _, w := range batch {
		if !w.Gone {
			q.tellLocked(w, notSet(q.sem.Name(), "semaphore.NewExpirable"))
		}
	}
}

// giveFirstLocked gives the semaphore as many permits as the first one has brought
// who has brought any, and says whether there is a point in asking again. The
// queue is not locked meanwhile.
func (q *expirableQueue) giveFirstLocked() bool {
	if q.rest > 0 && q.bringerLocked() != nil { // the last set-up did not last, and the next one may not
		rest := q.rest
		q.tellOncesLocked(notSet(q.sem.Name(), "semaphore.NewExpirable"), 0)
		q.Unlock()
		q.Sleep(rest, nil)
		q.Lock()
	}
	for w := q.bringerLocked(); w != nil && !q.setUp; w = q.bringerLocked() {
		q.Unlock()
		done, err := q.sem.TrySet(context.WithoutCancel(w.Ctx), w.Want.Permits, &q.Refusals)
		q.Lock()
		if err == nil {
			q.setUp = !done // once more without permits it is a semaphore that cannot be used
			q.rest = longer(q.rest)
			return true
		}
		if request.Outlasted(err) { // each of them sees that for itself
			continue
		}
		for w := range q.Line.All() {
			if w.Want.Permits > 0 {
				q.tellLocked(w, err)
			}
		}
	}
	q.setUp = false
	return false
}

// bringerLocked returns the first in line who has brought permits; nil if nobody
// has.
func (q *expirableQueue) bringerLocked() *expirableWaiter {
	for w := range q.Line.All() {
		if w.Want.Permits > 0 {
			return w
		}
	}
	return nil
}

// sleep waits for d, or until there is news, or a waiter leaves that was waited
// for.
func (q *expirableQueue) sleep(d time.Duration) {
	end, news := time.Now().Add(d), q.news.Wake()
	for awaited := false; q.Sleep(time.Until(end), news) && q.awaits(); awaited = true {
		if latest := time.Now().Add(handoff.LongestPause); !awaited && latest.Before(end) { // each release has a message
			end = latest
		}
	}
}

// awaits says whether the news is of a release of this process that is in flight.
// Its answer says what is owed for it, and wakes the worker. A worker that asked
// before that would take what is left to others, and believe that nobody wanted
// it.
func (q *expirableQueue) awaits() bool {
	q.Lock()
	defer q.Unlock()
	q.releases.awaited = q.releases.underWay > 0 && q.news.Foreign() == q.releases.heard
	return q.releases.awaited
}
