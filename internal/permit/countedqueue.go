package permit

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/waitq"
	"github.com/redlatch/redlatch/internal/wire"
)

// A countedQueue is what the callers of this client that want permits of one
// semaphore, or give some back, have in common. It exists while there is such a
// caller, something to give back, or turns that are owed.
//
// Callers do nothing but line up, or put down what they release, and wait to be
// told. One worker at a time does the rest, while there is anything to do: see
// countedworker.go.
type countedQueue struct {
	waitq.Queue[countedWant] // its mutex guards what follows news

	sem     *Counted         // one of that name
	session *request.Session // nobody else enters it: there is one worker
	news    notify.Listener

	hand  hand
	redis outlook
	rest  time.Duration // before the next set-up, as the last one may not have lasted
	turns handoff.Budget
	fresh bool // the next permits from Redis begin a quantum
}

// A hand is permits of this process that nobody here uses; never for long.
type hand struct {
	n         int
	doubted   bool        // not to be handed out: replicas may not know of them
	untold    bool        // of some of them nobody waits to be told
	releasers []*releaser // to be told when they are in Redis, or somebody's
}

// A releaser is a caller that gives permits back.
type releaser struct {
	told chan error // one slot
	left bool       // nobody waits to be told; guarded by the queue
}

// take empties the hand.
func (h *hand) take() hand {
	all := *h
	*h = hand{}
	return all
}

// putBack puts back what was taken and did not get to Redis.
func (h *hand) putBack(taken hand) {
	h.n += taken.n
	h.doubted = h.doubted || taken.doubted
	h.untold = h.untold || taken.untold
	h.releasers = append(taken.releasers, h.releasers...)
}

// tell tells those who have released what is in the hand, and says whether
// somebody has heard of each permit. From then on it is nobody's.
func (h *hand) tell(err error) (heard bool) {
	heard = !h.untold
	for _, r := range h.releasers {
		r.told <- err
		heard = heard && !r.left
	}
	h.untold, h.releasers = false, nil
	return heard
}

// An outlook is what is known of the permits in Redis.
type outlook struct {
	fewer int       // there were fewer than this when we last asked
	heard bool      // that may have changed
	poll  time.Time // when it may have changed without a word
}

// countedHands is for how many hand-offs a quantum lasts. A turn yields what one
// release has brought, so a process that has more permits than another must have
// shorter quanta, or they would never share alike: they end by number before
// they do by time.
const countedHands = 8

// A countedWaiter is a caller's place in a countedQueue. It serves one caller
// after the other: see countedQueues.pool.
type countedWaiter = waitq.Waiter[countedWant]

// A countedWant is what a caller wants, and how it fares.
type countedWant struct {
	n       int // permits
	permits int // gives the semaphore so many if it has not been set up; 0: does not

	asked  bool // for its permits,
	turn   int  // and after so many others
	passed bool // they came from another goroutine of the process
}

// countedQueues are a client's by the names of semaphores.
type countedQueues struct {
	all  queue.Registry[string, *countedQueue]
	pool sync.Pool // of *countedWaiter: out of line, told nothing
}

func (qs *countedQueues) waiter(want countedWant, once bool) *countedWaiter {
	w, ok := qs.pool.Get().(*countedWaiter)
	if !ok {
		w = &countedWaiter{}
	}
	w.Want, w.Once = want, once
	return w
}

func (qs *countedQueues) free(w *countedWaiter) {
	w.Ctx = nil
	qs.pool.Put(w)
}

// get returns the queue for a semaphore; put gives it back.
func (qs *countedQueues) get(s *Counted) *countedQueue {
	return qs.all.Get(s.Key, func() *countedQueue {
		q := &countedQueue{
			sem:     s,
			session: s.all.Server.Session(wire.Session(s.Key, s.all.Client, "exchange")),
			redis:   outlook{fewer: math.MaxInt}, // nothing is known
			fresh:   true,
		}
		q.Start(s.all.Server, s.keys, q.work)
		now := time.Now()
		q.turns.Begin(now, true)
		q.turns.Unused = now.Add(-handoff.Keep) // a later pause would be remembered
		return q
	})
}

func (qs *countedQueues) put(q *countedQueue) {
	var stop func()
	qs.all.Put(q.sem.Key, q, func() { stop = q.news.Detach() }) // others would take it for a waiter's
	if stop != nil {
		stop()
	}
}

// keep has what a queue owes remembered for a while longer than it has callers.
func (qs *countedQueues) keep(q *countedQueue) { qs.all.Keep(q.sem.Key, q, handoff.Keep) }

// close ends all subscriptions.
func (qs *countedQueues) close() {
	for _, q := range qs.all.All() {
		q.news.Stop()
	}
}

// acquire lines up for permits, and returns when they are the caller's.
func (q *countedQueue) acquire(ctx context.Context, want countedWant, once bool, until time.Time, at callsite.Site) (passed bool, err error) {
	all := q.sem.all
	w := all.counted.waiter(want, once)
	defer all.counted.free(w)
	w.Ctx, w.Until, w.Site = ctx, until, at
	if err := q.join(w); err != nil {
		return false, err
	}
	left := false
	err = q.Await(w, func(why error) error {
		left = true
		return request.During(all.Server.NoAnswer(q.Keys[0], &q.Refusals), why)
	})
	switch {
	case left:
		q.Lock()
		defer q.Unlock()
		q.settleLocked() // the next one may want less
		return false, err
	case err != nil:
		return false, err
	case all.Server.Closed(): // Close may have come first
		err = request.ErrClosed
	case ctx.Err() != nil: // or the end of the context
		err = request.ContextError(ctx)
	default:
		return w.Want.passed, nil
	}
	q.give(want.n, false) // not wanted any more
	return false, err
}

// join lines up w. A caller that only tries does not stand behind others that
// wait.
func (q *countedQueue) join(w *countedWaiter) error {
	q.Lock()
	defer q.Unlock()
	now := time.Now()
	switch {
	case !w.Once:
	case q.Line.Len() > q.Line.Tries():
		return request.ErrWaitOver
	case q.owesLocked(now):
		return handoff.OwedError(q.turns.Owed)
	}
	w.Since = now
	q.PushLocked(w)
	q.settleLocked()
	return nil
}

// release gives n permits back, and returns when they are in Redis, or at once if
// somebody here waits for permits. told says that err is what became of them; else
// they are given back nevertheless, and a failure is an event.
func (q *countedQueue) release(ctx context.Context, n int) (told bool, err error) {
	r := q.give(n, true)
	if r == nil {
		return true, nil
	}
	server := q.sem.all.Server
	answer, err := request.Wait(ctx, server, &request.Waiting{Key: q.Keys[0], Asks: &q.Refusals, Since: time.Now()}, r.told)
	if err == nil {
		return true, answer
	}
	err = request.During(server.NoAnswer(q.Keys[0], &q.Refusals), err)
	q.Lock()
	defer q.Unlock()
	select {
	case answer = <-r.told: // both: the outcome says more
		return true, answer
	default:
		r.left = true // a failure is an event from here on
		return false, err
	}
}

// give puts n permits in hand. It returns nil if they are somebody's already or
// will soon be, or if the caller does not wait; else who is told when they are in
// Redis.
func (q *countedQueue) give(n int, waits bool) *releaser {
	q.Lock()
	defer q.Unlock()
	wanted := q.Line.First() != nil
	q.hand.n += n
	q.hand.untold = q.hand.untold || wanted || !waits
	q.settleLocked()
	if wanted || !waits {
		return nil
	}
	r := &releaser{told: make(chan error, 1)}
	q.hand.releasers = append(q.hand.releasers, r)
	return r
}

// settleLocked gives what is in hand to those in line, and has a worker look if
// there is anything else to do.
func (q *countedQueue) settleLocked() {
	q.handOutLocked(time.Now(), false)
	q.attendLocked()
}

// handOutLocked gives what is in hand to those in line, first come, first served.
// Permits that Redis has just granted are for whoever is first. Others pass on
// inside the process for a quantum only, then the worker gives those who wait
// elsewhere their turn.
func (q *countedQueue) handOutLocked(now time.Time, granted bool) {
	for w := q.Line.First(); w != nil && w.Want.n <= q.hand.n && !q.hand.doubted; w = q.Line.First() {
		if !granted {
			if !q.sem.all.Local || q.turns.OverAfter(countedHands, now) {
				break
			}
			q.turns.Hands++
		}
		q.hand.n -= w.Want.n
		w.Want.passed = !granted
		q.TellLocked(w, nil)
	}
	if q.hand.n == 0 {
		q.hand.tell(nil)
	}
}

// attendLocked makes sure that a worker looks, if there is anything to do.
func (q *countedQueue) attendLocked() {
	switch work := q.hand.n > 0 || q.Line.First() != nil && !q.Server.Closed(); {
	case work && !q.WorkLocked(func() { q.sem.all.counted.all.Retain(q) }): // a worker begins
	case q.hand.n > 0 || q.hopesLocked() || q.rest > 0: // a rest ends with those who want it
		q.Nudge()
	}
}

// hopesLocked says whether Redis may have what the first waiter wants. A waiter
// that is first only because others were served does not want less than they:
// there is no use in asking for each.
func (q *countedQueue) hopesLocked() bool {
	w := q.Line.First()
	return w != nil && (w.Once || q.redis.heard || w.Want.n < q.redis.fewer)
}

// owesLocked says whether other processes are to have the permits that are in
// Redis.
func (q *countedQueue) owesLocked(now time.Time) bool {
	return q.turns.Owed > 0 && q.turns.Owes(q.news.Foreign(), now) > 0
}
