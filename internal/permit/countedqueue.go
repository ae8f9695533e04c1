package permit

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
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
	queue.Users

	sem     *Counted         // one of that name
	session *request.Session // nobody else enters it: there is one worker
	news    notify.Listener
	wake    chan struct{} // one slot; for the worker

	mu      sync.Mutex // guards what follows
	line    queue.Line[*countedWaiter]
	hand    hand
	working bool
	redis   outlook
	rest    time.Duration // before the next set-up, as the last one may not have lasted

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
	left bool       // nobody waits to be told; guarded by countedQueue.mu
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

// tell tells those who have released what is in the hand, and says whether somebody has heard of
// each permit. From then on it is nobody's.
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

// A countedWant is what a caller wants.
type countedWant struct {
	n       int  // permits
	permits int  // gives the semaphore so many if it has not been set up; 0: does not
	once    bool // only tries
}

// A countedWaiter is a caller's place in a countedQueue. It serves one caller after
// the other: see countedQueues.pool.
type countedWaiter struct {
	claim.Wait
	countedWant

	asked  bool       // for its permits,
	turn   int        // and after so many others
	passed bool       // they came from another goroutine of the process
	told   chan error // one slot: nil when it has its permits
	place  queue.Place[*countedWaiter]
}

// countedQueues are a client's by the names of semaphores.
type countedQueues struct {
	all  queue.Registry[string, *countedQueue]
	pool sync.Pool // of *countedWaiter: out of line, told nothing
}

func (qs *countedQueues) waiter(want countedWant) *countedWaiter {
	w, ok := qs.pool.Get().(*countedWaiter)
	if !ok {
		w = &countedWaiter{told: make(chan error, 1)}
	}
	w.countedWant, w.asked, w.passed = want, false, false
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
			wake:    make(chan struct{}, 1),
			redis:   outlook{fewer: math.MaxInt}, // nothing is known
			fresh:   true,
		}
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
func (q *countedQueue) acquire(ctx context.Context, want countedWant, until time.Time, at callsite.Site) (passed bool, err error) {
	all := q.sem.all
	w := all.counted.waiter(want)
	defer all.counted.free(w)
	w.Ctx, w.Until, w.Site = ctx, until, at
	if err := q.join(w); err != nil {
		return false, err
	}
	told, err := q.await(ctx, w.told, all.Server.Done, until)
	if told && err != nil {
		return false, err
	}
	if err == nil && all.Server.Closed() {
		err = request.ErrClosed // Close may have come first
	}
	if err != nil && !q.leave(w) && (told || <-w.told == nil) {
		q.give(want.n, false) // not wanted any more
	}
	return err == nil && w.passed, err
}

// join lines up w. A caller that only tries does not stand behind others that wait.
func (q *countedQueue) join(w *countedWaiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	switch {
	case !w.once:
	case q.line.Len() > q.line.Tries():
		return request.ErrWaitOver
	case q.owes(now):
		return handoff.OwedError(q.turns.Owed)
	}
	w.Since = now
	q.line.Push(&w.place, w, w.once)
	q.handOut(now, false)
	q.attend()
	return nil
}

// leave takes w out of the line and returns true, or returns false if it has
// been told how it ended.
func (q *countedQueue) leave(w *countedWaiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !w.place.Taken() {
		return false
	}
	q.line.Remove(&w.place)
	q.handOut(time.Now(), false) // the next one may want less
	q.attend()
	return true
}

// release gives n permits back, and returns when they are in Redis, or at once
// if somebody here waits for permits. told says that err is what became of them; else they
// are given back nevertheless, and a failure is an event.
func (q *countedQueue) release(ctx context.Context, n int) (told bool, err error) {
	r := q.give(n, true)
	if r == nil {
		return true, nil
	}
	told, err = q.await(ctx, r.told, nil, time.Time{})
	if told {
		return true, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case err = <-r.told: // both: the outcome says more
		return true, err
	default:
		r.left = true // a failure is an event from here on
		return false, err
	}
}

// give puts n permits in hand. It returns nil if they are somebody's already or
// will soon be, or if the caller does not wait; else who is told when they are in Redis.
func (q *countedQueue) give(n int, waits bool) *releaser {
	q.mu.Lock()
	defer q.mu.Unlock()
	wanted := q.line.First() != nil
	q.hand.n += n
	q.hand.untold = q.hand.untold || wanted || !waits
	q.handOut(time.Now(), false)
	q.attend()
	if wanted || !waits {
		return nil
	}
	r := &releaser{told: make(chan error, 1)}
	q.hand.releasers = append(q.hand.releasers, r)
	return r
}

// await waits to be told, until a time unless that is zero. If it gives up, err says why.
func (q *countedQueue) await(ctx context.Context, told <-chan error, stop <-chan struct{}, until time.Time) (_ bool, err error) {
	server, key, asks := q.sem.all.Server, q.sem.keys[0], &q.session.Trouble
	answer, err := request.Wait(ctx, server, &request.Waiting{Key: key, Asks: asks, Since: time.Now(), Until: until, Stop: stop}, told)
	if err == nil {
		return true, answer
	}
	return false, request.During(server.NoAnswer(key, asks), err)
}

// What follows is called holding countedQueue.mu.

// handOut gives what is in hand to those in line, first come, first served. Permits
// that Redis has just granted are for whoever is first. Others pass on inside the
// process for a quantum only, then the worker gives those who wait elsewhere their
// turn.
func (q *countedQueue) handOut(now time.Time, granted bool) {
	for w := q.line.First(); w != nil && w.n <= q.hand.n && !q.hand.doubted; w = q.line.First() {
		if !granted {
			if !q.sem.all.Local || q.turns.OverAfter(countedHands, now) {
				break
			}
			q.turns.Hands++
		}
		q.hand.n -= w.n
		w.passed = !granted
		q.tell(w, nil)
	}
	if q.hand.n == 0 {
		q.hand.tell(nil)
	}
}

// tell takes a waiter out of the line and tells it how it went: nil, if it has its
// permits.
func (q *countedQueue) tell(w *countedWaiter, err error) {
	q.line.Remove(&w.place)
	w.told <- err
}

// attend makes sure that a worker looks, if there is anything to do.
func (q *countedQueue) attend() {
	switch {
	case q.working && (q.hand.n > 0 || q.hopes() || q.rest > 0): // a rest ends with those who want it
		q.nudge()
	case !q.working && (q.hand.n > 0 || (q.line.First() != nil && !q.sem.all.Server.Closed())):
		q.working = true
		q.sem.all.counted.all.Retain(q)
		q.sem.all.Server.Go(q.work)
	}
}

// nudge wakes the worker, if it sleeps.
func (q *countedQueue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// hopes says whether Redis may have what the first waiter wants. A waiter that is first
// only because others were served does not want less than they: there is no use in
// asking for each.
func (q *countedQueue) hopes() bool {
	w := q.line.First()
	return w != nil && (w.once || q.redis.heard || w.n < q.redis.fewer)
}

// owes says whether other processes are to have the permits that are in Redis.
func (q *countedQueue) owes(now time.Time) bool {
	return q.turns.Owed > 0 && q.turns.Owes(q.news.Foreign(), now) > 0
}
