package redlatch

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// A rateQueue is the callers of this client that want permits of one limiter,
// in order. A worker asks for them while there are any.
//
//	serve ──► ask for the first of them ── given ──► tell them, and again
//	  ▲          └── refused: tell those who do not wait
//	  └── sleep until there are permits, the first has left, or two seconds are over
type rateQueue struct {
	l    *RateLimiter
	refs int           // guarded by rateQueues.mu
	wake chan struct{} // one slot: to ask now is worth it

	mu      sync.Mutex // guards what follows, and the line's waiters
	line    list.List  // of *rateWaiter
	tries   int        // how many of these do not wait
	serving bool       // a worker does
	retry   time.Time  // not before then are there permits for the first, who waits; zero: not known
	rate    int        // as the server last said; 0: not known
	unset   bool       // there is no rate, as the server last said
	silent  bool       // the server has been asked more than once, and has not answered
}

// A rateWaiter is one caller.
type rateWaiter struct {
	n        int
	once     bool          // does not wait
	untilSet bool          // waits for a rate, too
	place    *list.Element // nil: no longer in line
	gone     bool          // has left, or was told an error, before its permits came
	done     chan error    // one slot: nil if it has got them
}

// mostAsked is for how many callers one request asks.
const mostAsked = 256

// rateQueues are a client's by limiter name. They exist while they have callers.
type rateQueues struct {
	c  *Client
	mu sync.Mutex
	m  map[string]*rateQueue
}

func (qs *rateQueues) get(l *RateLimiter) *rateQueue {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.m[l.name]
	if q == nil {
		q = &rateQueue{l: l, wake: make(chan struct{}, 1)}
		if qs.m == nil {
			qs.m = map[string]*rateQueue{}
		}
		qs.m[l.name] = q
	}
	q.refs++
	return q
}

func (qs *rateQueues) put(q *rateQueue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q.refs--; q.refs == 0 {
		delete(qs.m, q.l.name)
	}
}

// changed says that this client has done something to a limiter.
func (qs *rateQueues) changed(name string) {
	qs.mu.Lock()
	q := qs.m[name]
	qs.mu.Unlock()
	if q != nil {
		q.mu.Lock()
		q.rate = 0
		q.mu.Unlock()
		q.askNow()
	}
}

func (q *rateQueue) askNow() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take lines up for the permits of w.
func (q *rateQueue) take(ctx context.Context, w *rateWaiter, until time.Time) error {
	if err := q.join(w); err != nil {
		return err
	}
	var over <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		over = t.C
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return q.leave(w, ctxError(ctx))
	case <-q.l.c.done:
		return q.leave(w, ErrClosed)
	case <-over:
		return q.leave(w, nil)
	}
}

// join puts w at the end of the line, if there is a point in it.
func (q *rateQueue) join(w *rateWaiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.rate > 0 && w.n > q.rate:
		return q.tooMany(w.n, q.rate)
	case w.once && !q.retry.IsZero():
		return q.busyLocked(w, nil)
	}
	w.place = q.line.PushBack(w)
	if w.once {
		q.tries++
	}
	if q.unset && !w.untilSet {
		q.askNow()
	}
	if !q.serving {
		q.serving = true
		c := q.l.c
		c.rates.mu.Lock()
		q.refs++
		c.rates.mu.Unlock()
		c.settle(q.serve)
	}
	return nil
}

// leave returns what w has got nevertheless, or takes it out of the line.
func (q *rateQueue) leave(w *rateWaiter, why error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.place == nil {
		return <-w.done
	}
	err := q.busyLocked(w, why)
	if q.line.Front() == w.place {
		q.retry = time.Time{}
		q.askNow() // the next one may want less, or there is none
	}
	q.dropLocked(w)
	switch {
	case errors.Is(why, ErrClosed):
		return why
	case q.silent:
		return &outageError{cause: errNoAnswer, ended: why}
	}
	return err
}

// removeLocked takes w out of the line.
func (q *rateQueue) removeLocked(w *rateWaiter) {
	q.line.Remove(w.place)
	w.place = nil
	if w.once {
		q.tries--
	}
}

// dropLocked takes w out of the line without its permits.
func (q *rateQueue) dropLocked(w *rateWaiter) {
	q.removeLocked(w)
	w.gone = true
}

// tellLocked is dropLocked, and tells w why.
func (q *rateQueue) tellLocked(w *rateWaiter, why error) {
	q.dropLocked(w)
	w.done <- why
}

// tellAll empties the line.
func (q *rateQueue) tellAll(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.line.Front(); e != nil; e = q.line.Front() {
		q.tellLocked(e.Value.(*rateWaiter), why)
	}
}

// noRate tells those that there is no rate who do not wait for one.
func (q *rateQueue) noRate() (pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unset, q.rate = true, 0
	for e, next := q.line.Front(), (*list.Element)(nil); e != nil; e = next {
		next = e.Next()
		if w := e.Value.(*rateWaiter); !w.untilSet {
			q.tellLocked(w, q.l.noRate())
		}
	}
	if q.line.Len() == 0 {
		return 0
	}
	return jittered(longestSleep)
}

func (q *rateQueue) busyLocked(w *rateWaiter, cause error) error {
	e := &RateError{Name: q.l.name, Permits: w.n, Cause: cause}
	if !q.retry.IsZero() {
		e.RetryAfter = max(time.Until(q.retry), 0)
	}
	return e
}

func (q *rateQueue) tooMany(n, rate int) error {
	return fmt.Errorf("redlatch: rate limiter %q gives %d permits in an interval, so %d at once can never be had; ask for fewer, or raise the rate", q.l.name, rate, n)
}

// serve asks for those who are in line until nobody is.
func (q *rateQueue) serve() {
	c := q.l.c
	defer c.rates.put(q)
	for {
		if c.open() != nil {
			q.tellAll(ErrClosed)
		}
		first := q.first()
		if len(first) == 0 {
			return
		}
		pause := q.ask(first)
		if pause == 0 {
			continue
		}
		_, _ = nap(context.Background(), c.done, q.wake, time.Time{}, pause)
		q.mu.Lock()
		q.retry = time.Time{}
		q.mu.Unlock()
	}
}

// first returns those to ask for. With none the worker is no longer serving.
func (q *rateQueue) first() []*rateWaiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	var first []*rateWaiter
	for e := q.line.Front(); e != nil && len(first) < mostAsked; e = e.Next() {
		first = append(first, e.Value.(*rateWaiter))
	}
	q.serving = len(first) > 0
	return first
}

// ask asks for the first ones, tells those who need not wait any longer, and
// returns for how long there is no point in asking again.
func (q *rateQueue) ask(first []*rateWaiter) (pause time.Duration) {
	c, id := q.l.c, recordID()
	args := []string{strconv.FormatInt(c.cfg.MaxClockSkew.Milliseconds(), 10), id}
	for _, w := range first {
		args = append(args, strconv.Itoa(w.n))
	}
	o := op{c: c, script: rateTake, keys: q.l.keys, args: args, lease: c.cfg.WatchdogTimeout, stop: c.over}
	o.retried = func() { q.setSilent(true) }
	for {
		reply, err := o.run(context.Background())
		if err == nil {
			q.setSilent(false)
			return q.answered(reply, id, first)
		}
		q.tellAll(err)
		if !errors.Is(err, ErrUnavailable) || !o.unknown || c.open() != nil {
			q.setSilent(false)
			return 0
		}
	}
}

// recordID returns the random bytes of a record. None is ever used again.
func recordID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return string(id[:])
}

func (q *rateQueue) setSilent(silent bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.silent = silent
}

// answered does with the server's answer what is to be done.
func (q *rateQueue) answered(reply Reply, id string, first []*rateWaiter) (pause time.Duration) {
	r := reply.List
	if len(r) != 2 || r[0].Kind != ReplyInt || r[1].Kind != ReplyInt || r[0].Int > int64(len(first)) {
		q.tellAll(unexpected(reply, rateTake))
		return 0
	}
	answer, rate := r[0].Int, int(r[1].Int)
	switch {
	case answer == 0:
		return q.noRate()
	case answer < 0:
		return q.refused(first, -fromMillis(answer), rate)
	default:
		if given, back := q.given(first[:answer], rate); back > 0 {
			c := q.l.c
			o := op{
				c: c, script: rateUndo, keys: q.l.keys, lease: c.cfg.WatchdogTimeout, stop: c.over,
				args: []string{id, recordID(), strconv.Itoa(given), strconv.Itoa(back)},
			}
			_, _ = o.run(context.Background()) // or they are free when the interval is over
		}
	}
	return 0
}

// given tells those who got what they wanted, and returns how much that was and
// how much of it nobody wants any more.
func (q *rateQueue) given(first []*rateWaiter, rate int) (given, back int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range first {
		given += w.n
		if w.gone {
			back += w.n
			continue
		}
		q.removeLocked(w)
		w.done <- nil
	}
	q.learntLocked(rate)
	return given, back
}

// refused tells those who do not wait, or wait for what will never come.
func (q *rateQueue) refused(first []*rateWaiter, d time.Duration, rate int) (pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.learntLocked(rate)
	head := first[0]
	if head.gone {
		return 0 // what the next one wants may be there
	}
	q.retry = time.Now().Add(d)
	for e, next := q.line.Front(), (*list.Element)(nil); e != nil && q.tries > 0; e = next {
		next = e.Next()
		w := e.Value.(*rateWaiter)
		if w.once && (!head.once || w.n >= head.n) {
			q.tellLocked(w, q.busyLocked(w, nil))
		}
	}
	if head.once {
		q.retry = time.Time{}
		return 0
	}
	// Processes that wait for the same moment get their turns by chance. A client of
	// Redisson comes 3 ms later than it could.
	d += 1 + mathrand.N(1+min(d/8, 6*time.Millisecond)) //nolint:gosec // jitter
	return min(d, jittered(longestSleep))
}

// learntLocked notes the rate, and sends those away who want more.
func (q *rateQueue) learntLocked(rate int) {
	q.unset = false
	if q.rate == rate {
		return
	}
	q.rate = rate
	for e, next := q.line.Front(), (*list.Element)(nil); e != nil; e = next {
		next = e.Next()
		if w := e.Value.(*rateWaiter); w.n > rate {
			q.tellLocked(w, q.tooMany(w.n, rate))
		}
	}
}
