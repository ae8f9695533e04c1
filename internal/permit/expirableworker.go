package permit

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// The worker of an expirableQueue asks Redis, one request at a time, for as many of the first in line
// as fit into it; Redis serves them in order, up to the first who has to wait. Then the
// worker sleeps until there is a message, the first permit is over or two seconds have
// passed.

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
	qs, server := &q.sem.all.expirable, q.sem.all.Server
	var pause time.Duration
	for {
		if owed := q.owes(); owed > 0 {
			server.Listen(&q.news, q.sem.channel, nil, nil)
			q.sleep(owed, true)
			continue
		}
		batch, stop := q.next()
		if batch == nil {
			if stop != nil {
				stop()
			}
			return
		}
		o := q.request(batch)
		reply, err := o.Run(context.WithoutCancel(batch[0].ctx))
		short := o.Doubt(err == nil && request.First(reply).Int > 0)
		qs.mu.Lock()
		q.asking = 0
		if err != nil {
			q.failed(batch, &o, err)
			pause = longer(pause)
			qs.mu.Unlock()
			q.sleep(pause/2+rand.N(pause/2), false) //nolint:gosec // jitter
			continue
		}
		pause = 0
		wait := q.answer(batch, &o, reply, short)
		qs.mu.Unlock()
		if wait != 0 {
			server.Listen(&q.news, q.sem.channel, nil, nil)
			q.sleep(wait, true)
		}
	}
}

// owes returns for how long permits are left to others, if anybody here wants some.
func (q *expirableQueue) owes() time.Duration {
	qs := &q.sem.all.expirable
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.releases.awaited, q.releases.heard = false, q.news.Foreign()
	if q.line.Len() == 0 || q.sem.all.Server.Closed() {
		return 0
	}
	owed := q.turns.Owes(q.releases.heard, time.Now())
	if owed > 0 {
		q.decideOnces(handoff.OwedError(q.turns.Owed), 0)
	}
	return owed
}

// next returns those to ask for, or nil if nobody is in line: then there is no worker
// any more, and what ends its subscription is to be called.
func (q *expirableQueue) next() (batch []*expirableWaiter, stop func()) {
	qs := &q.sem.all.expirable
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q.sem.all.Server.Closed() {
		q.decideAll(request.ErrClosed)
	}
	ids := 0
	for w := range q.line.All() {
		if ids += len(w.ids); ids > q.reach && len(batch) > 0 {
			break
		}
		batch = append(batch, w)
	}
	q.asking, q.blocked = len(batch), false
	if len(batch) == 0 {
		q.working, stop = false, q.news.Detach()
		qs.put(q)
	}
	return batch, stop
}

// request prepares the request for a batch. It is one attempt only: the line is
// another by the time of the next.
func (q *expirableQueue) request(batch []*expirableWaiter) request.Call {
	all := q.sem.all
	args := []string{q.sem.channel}
	lease := batch[0].Lease
	for _, w := range batch {
		args = append(args, all.leaseMs(w.Lease), strconv.Itoa(len(w.ids)))
		args = append(args, w.ids...)
		lease = min(lease, w.Lease)
	}
	return request.Call{
		Server: all.Server, Script: lua.ExpirableTake, Keys: q.sem.keys, Args: args,
		Lease: lease, Stop: all.Server.Over, Single: true, Acks: all.Server.Acks.Holds, Trouble: &q.trouble,
	}
}

// failed notes that a request brought no answer, or none that helps. Holding
// expirableQueues.mu.
func (q *expirableQueue) failed(batch []*expirableWaiter, o *request.Call, err error) {
	for _, w := range batch {
		w.uncertain = w.uncertain || o.Uncertain(err) || o.Left
		if w.left {
			q.decide(w, err)
		}
	}
	if !o.Left && driver.Failure(err).Permanent() {
		q.decideAll(err)
	}
}

// answer deals with the server's answer, and returns for how long to sleep; 0 if
// there is more to ask for at once. short, if it is not nil, says why what was given
// does not count. Holding expirableQueues.mu.
func (q *expirableQueue) answer(batch []*expirableWaiter, o *request.Call, reply driver.Reply, short error) time.Duration {
	if len(reply.List) != 2 || reply.List[0].Kind != driver.ReplyInt || reply.List[0].Int > int64(len(batch)) {
		q.decideAll(request.Unexpected(reply, lua.ExpirableTake))
		return 0
	}
	given := int(reply.List[0].Int)
	if given < 0 {
		q.notSet(batch)
		return 0
	}
	q.setUp, q.rest = false, 0
	got := 0
	for _, w := range batch[:given] {
		got += len(w.ids)
		w.sent = o.Sent
		if short != nil {
			w.uncertain = true // the server may forget them
		}
		q.decide(w, short)
	}
	if given > 0 {
		q.turns.Settled(q.news.Foreign(), time.Now())
	}
	if given == len(batch) {
		q.reach = min(2*q.reach, mostAsked)
		return 0
	}
	q.reach = min(max(2*got, fewAsked), mostAsked)
	return q.refused(batch[given:], reply.List[1].Int)
}

// refused notes that the first of those who did not get theirs has to wait, and so has
// everybody behind. ms is when the first permit is over, or less than 0. It returns for
// how long to sleep. Holding expirableQueues.mu.
func (q *expirableQueue) refused(batch []*expirableWaiter, ms int64) time.Duration {
	wait := request.Jittered(request.LongestPause)
	var next time.Duration
	if ms >= 0 {
		next = wire.FromMillis(ms + 1)
		wait = min(wait, next)
	}
	head := batch[0]
	for _, w := range batch {
		w.next = next
		if w.left {
			q.decide(w, request.ErrWaitOver)
		}
	}
	if head.place.Taken() {
		q.decideOnces(request.ErrWaitOver, next)
	}
	if q.blocked = head.place.Taken(); !q.blocked {
		return 0 // the next one may want less
	}
	return wait
}

// notSet gives the semaphore the permits that a caller has brought. If nobody has, or that does not help, it tells
// those that there are no permits yet for whom it has asked: the others may know better. Holding expirableQueues.mu.
func (q *expirableQueue) notSet(batch []*expirableWaiter) {
	if q.giveFirst() {
		return
	}
	for w := range q.line.All() {
		if slices.Contains(batch, w) {
			q.decide(w, q.sem.all.Errors.NotSet(q.sem.Name()))
		}
	}
}

// giveFirst gives the semaphore as many permits as the first one has brought who has brought any, and says whether there
// is a point in asking again. Holding expirableQueues.mu, which is not locked meanwhile.
func (q *expirableQueue) giveFirst() bool {
	qs := &q.sem.all.expirable
	if q.rest > 0 && q.bringer() != nil { // the last set-up did not last, and the next one may not
		rest := q.rest
		q.decideOnces(q.sem.all.Errors.NotSet(q.sem.Name()), 0)
		qs.mu.Unlock()
		q.sleep(rest, false)
		qs.mu.Lock()
	}
	for w := q.bringer(); w != nil && !q.setUp; w = q.bringer() {
		qs.mu.Unlock()
		done, err := q.sem.TrySet(context.WithoutCancel(w.ctx), w.Permits, &q.trouble)
		qs.mu.Lock()
		if err == nil {
			q.setUp = !done // once more without permits it is a semaphore that cannot be used
			q.rest = longer(q.rest)
			return true
		}
		if request.Outlasted(err) { // each of them sees that for itself
			continue
		}
		for w := range q.line.All() {
			if w.Permits > 0 {
				q.decide(w, err)
			}
		}
	}
	q.setUp = false
	return false
}

// bringer returns the first in line who has brought permits; nil if nobody has. Holding expirableQueues.mu.
func (q *expirableQueue) bringer() *expirableWaiter {
	for w := range q.line.All() {
		if w.Permits > 0 && !w.left {
			return w
		}
	}
	return nil
}

// sleep waits for t, or until a waiter leaves that was waited for, or, if it is
// news that is waited for, until there is some.
func (q *expirableQueue) sleep(t time.Duration, forNews bool) {
	timer, end, awaited := time.NewTimer(t), time.Now().Add(t), false
	defer timer.Stop()
	var news <-chan struct{}
	if forNews {
		news = q.news.Wake()
	}
	for {
		select {
		case <-timer.C:
		case <-news:
			if q.awaits() {
				if !awaited { // each release has a message
					awaited = true
					timer.Reset(min(time.Until(end), handoff.LongestPause))
				}
				continue
			}
		case <-q.wake:
		case <-q.sem.all.Server.Done:
		}
		return
	}
}

// awaits says whether the news is of a release of this process that is in flight. Its
// answer says what is owed for it, and wakes the worker. A worker that asked before that
// would take what is left to others, and believe that nobody wanted it.
func (q *expirableQueue) awaits() bool {
	qs := &q.sem.all.expirable
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.releases.awaited = q.releases.underWay > 0 && q.news.Foreign() == q.releases.heard
	return q.releases.awaited
}
