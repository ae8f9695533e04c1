package ratequeue

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// A rateQueue is the callers who want permits of one limiter.
type rateQueue struct {
	queue.Users

	qs   *Queues
	key  string // in Redis
	keys []string
	wake chan struct{} // one slot: to ask now is worth it

	mu      sync.Mutex // guards what follows, and the line's waiters
	line    queue.Line[*waiter]
	serving bool      // a worker does
	retry   time.Time // not before then are there permits for the first, who waits; zero: not known
	rate    int       // as the server last said; 0: not known
	came    int       // how many callers have come
	asked   int       // how many had when the server was asked last
	unset   bool      // there is no rate, as the server last said
	setUp   bool      // though a caller's set-up has seen to that
	asking  bool      // the server is being asked
}

// A Want is what a caller wants.
type Want struct {
	N        int  // permits
	Once     bool // does not wait
	UntilSet bool // waits for a rate, too
	SetUp    SetUp
	Site     callsite.Site
}

// A SetUp gives a limiter that has no rate the one that a caller has brought, unless it has one by now. It is nil for
// those who have brought none.
type SetUp func() error

// A waiter is one caller.
type waiter struct {
	Want
	claim.Wait

	place queue.Place[*waiter]
	nth   int        // to come
	gone  bool       // has left, or was told an error, before its permits came
	done  chan error // one slot: nil if it has got them
}

// mostAsked is for how many callers one request asks.
const mostAsked = 256

// Queues are a client's by limiter name. They exist while they have callers.
type Queues struct {
	Options

	all queue.Registry[string, *rateQueue]
}

// Options say what queues work with.
type Options struct {
	Server *request.Server
	Skew   time.Duration // by how much clocks of others may be wrong

	// Busy makes the error that says that permits could not be had in time, and when
	// they can be had, if that is not 0; NoRate the one that says that there is no rate.
	Busy   func(name string, permits int, after time.Duration, cause error) error
	NoRate func(name string) error
}

// New returns the queues of a client.
func New(o Options) *Queues { return &Queues{Options: o} }

// Take lines up for permits of a limiter with these keys, until a time if that is not
// zero.
func (qs *Queues) Take(ctx context.Context, key string, keys []string, want Want, until time.Time) error {
	q := qs.all.Get(key, func() *rateQueue {
		return &rateQueue{qs: qs, key: key, keys: keys, wake: make(chan struct{}, 1)}
	})
	defer q.put()
	w := &waiter{Want: want, Wait: claim.Wait{Ctx: ctx, Since: time.Now(), Until: until, Site: want.Site}, done: make(chan error, 1)}
	return q.take(ctx, w, until)
}

func (q *rateQueue) put() { q.qs.all.Put(q.key, q, nil) }

// Changed says that this client has done something to a limiter.
func (qs *Queues) Changed(key string) {
	if q := qs.all.Find(key); q != nil {
		q.mu.Lock()
		q.rate = 0
		q.mu.Unlock()
		q.askNow()
	}
}

// Claims tells what callers of this client wait for, each as it is when it is looked at. Those who
// only try do not wait. No mutex is locked while yield runs.
func (qs *Queues) Claims(yield claim.Yield) {
	var list claim.List
	for _, q := range qs.all.All() {
		if q.claims(&list); !list.Tell(yield) {
			return
		}
	}
}

func (q *rateQueue) claims(list *claim.List) {
	q.mu.Lock()
	defer q.mu.Unlock()
	others := q.line.Len()
	for w := range q.line.All() {
		others--
		if !w.Once && !list.Wait(claim.Claim{Name: q.key, Kind: claim.RateLimiter, Count: w.N}, &w.Wait) {
			break
		}
	}
	list.Others(others)
}

func (q *rateQueue) askNow() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take lines up for the permits of w.
func (q *rateQueue) take(ctx context.Context, w *waiter, until time.Time) error {
	if err := q.join(w); err != nil {
		return err
	}
	decided, end := request.Await(ctx, q.qs.Server.Done, w.done, until)
	if end == nil {
		return decided
	}
	return q.leave(w, end)
}

// join puts w at the end of the line, if there is a point in it.
func (q *rateQueue) join(w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.rate > 0 && w.N > q.rate: // unless somebody has raised it
		q.rate = 0
		q.askNow()
	case w.Once && !q.retry.IsZero():
		return q.busyLocked(w, nil)
	}
	q.came++
	w.nth = q.came
	q.line.Push(&w.place, w, w.Once)
	if q.unset && (!w.UntilSet || w.SetUp != nil) {
		q.askNow()
	}
	if !q.serving {
		q.serving = true
		q.qs.all.Retain(q)
		q.qs.Server.Go(q.serve)
	}
	return nil
}

// leave returns what w has got nevertheless, or takes it out of the line.
func (q *rateQueue) leave(w *waiter, end error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !w.place.Taken() {
		return <-w.done
	}
	gaveUp, why := request.GaveUp(end)
	err := q.busyLocked(w, why)
	if q.line.First() == w {
		q.retry = time.Time{}
		q.askNow() // the next one may want less, or there is none
	}
	q.dropLocked(w)
	switch {
	case !gaveUp:
		return end
	case q.asking:
		if silence := q.qs.Server.NoAnswer(q.keys); silence != nil {
			return request.During(silence, end)
		}
	}
	return err
}

// dropLocked takes w out of the line without its permits.
func (q *rateQueue) dropLocked(w *waiter) {
	q.line.Remove(&w.place)
	w.gone = true
}

// tellLocked is dropLocked, and tells w why.
func (q *rateQueue) tellLocked(w *waiter, why error) {
	q.dropLocked(w)
	w.done <- why
}

// tellAll empties the line, but for those who came so late in an outage that they go on. It returns when that one of them
// came which has waited longest.
func (q *rateQueue) tellAll(why error) (since time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for w := range q.line.All() {
		if since = request.Longest(q.qs.Server, why, since, w.Since); !request.Early(q.qs.Server, why, w.Since) {
			q.tellLocked(w, why)
		}
	}
	return since
}

// noRate gives the limiter the rate that a caller has brought. If nobody has, or that does not help, it tells those that
// there is none who do not wait for one.
func (q *rateQueue) noRate() (pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unset, q.rate = true, 0
	if q.setUpLocked() {
		return 0
	}
	for w := range q.line.All() {
		if !w.UntilSet {
			q.tellLocked(w, q.qs.NoRate(q.qs.Server.Name(q.key)))
		}
	}
	if q.line.Len() == 0 {
		return 0
	}
	return request.Jittered(request.LongestPause)
}

// setUpLocked gives the limiter the rate that the first one has brought who has brought any, and says whether there is
// a point in asking again. q.mu is not locked meanwhile.
func (q *rateQueue) setUpLocked() bool {
	for w := range q.line.All() {
		if w.SetUp == nil || q.setUp {
			continue
		}
		q.mu.Unlock()
		err := w.SetUp()
		q.mu.Lock()
		if err == nil {
			q.setUp = true // once more without a rate it is one that cannot be used, or ends too soon for that
			return true
		}
		early := false
		for w := range q.line.All() {
			switch {
			case w.SetUp == nil:
			case request.Early(q.qs.Server, err, w.Since):
				early = true // it goes on
			default:
				q.tellLocked(w, err)
			}
		}
		if early {
			return true
		}
		break
	}
	q.setUp = false
	return false
}

func (q *rateQueue) busyLocked(w *waiter, cause error) error {
	var after time.Duration
	if !q.retry.IsZero() {
		after = max(time.Until(q.retry), 0)
	}
	return q.qs.Busy(q.qs.Server.Name(q.key), w.N, after, cause)
}

func (q *rateQueue) tooMany(n, rate int) error {
	return invalid.Errorf("redlatch: rate limiter %q gives %d permits in an interval, so %d at once can never be had; ask for fewer, or raise the rate", q.qs.Server.Name(q.key), rate, n)
}

// serve asks for those who are in line until nobody is.
func (q *rateQueue) serve() {
	server := q.qs.Server
	defer q.put()
	for {
		if server.Closed() {
			q.tellAll(request.ErrClosed)
		}
		first := q.first()
		if len(first) == 0 {
			return
		}
		pause := q.ask(first)
		if pause == 0 {
			continue
		}
		_, _ = request.Pause(context.Background(), server.Done, q.wake, time.Time{}, pause)
		q.mu.Lock()
		q.retry = time.Time{}
		q.mu.Unlock()
	}
}

// first returns those to ask for. With none the worker is no longer serving.
func (q *rateQueue) first() []*waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	var first []*waiter
	for w := range q.line.All() {
		if len(first) == mostAsked {
			break
		}
		first = append(first, w)
	}
	q.serving, q.asked = len(first) > 0, q.came
	return first
}

// ask asks for the first ones, tells those who need not wait any longer, and
// returns for how long there is no point in asking again.
func (q *rateQueue) ask(first []*waiter) (pause time.Duration) {
	server, id := q.qs.Server, recordID()
	args := []string{wire.Millis(q.qs.Skew), id}
	for _, w := range first {
		args = append(args, strconv.Itoa(w.N))
	}
	o := request.Call{Server: server, Script: lua.RateLimiterTake, Keys: q.keys, Args: args, Lease: server.Length, Stop: server.Over, Since: first[0].Since}
	q.setAsking(true)
	defer q.setAsking(false)
	for {
		reply, err := o.Run(context.Background())
		if err == nil {
			return q.answered(reply, id, first)
		}
		o.Since = q.tellAll(err)
		if !o.Unknown || server.Closed() || !o.Again(err) {
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

func (q *rateQueue) setAsking(asking bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asking = asking
}

// answered does with the server's answer what is to be done.
func (q *rateQueue) answered(reply driver.Reply, id string, first []*waiter) (pause time.Duration) {
	r := reply.List
	if len(r) != 2 || r[0].Kind != driver.ReplyInt || r[1].Kind != driver.ReplyInt || r[0].Int > int64(len(first)) {
		q.tellAll(request.Unexpected(reply, lua.RateLimiterTake))
		return 0
	}
	answer, rate := r[0].Int, int(r[1].Int)
	switch {
	case answer == 0:
		return q.noRate()
	case answer < 0:
		return q.refused(first, -wire.FromMillis(answer), rate)
	default:
		if given, back := q.given(first[:answer], rate); back > 0 {
			q.giveBack(id, given, back)
		}
	}
	return 0
}

// giveBack gives back what nobody wants any more of the permits of a record. Those in line wait for that only while an
// attempt may last: the server may be silent.
func (q *rateQueue) giveBack(id string, given, back int) {
	server := q.qs.Server
	o := request.Call{
		Server: server, Script: lua.RateLimiterUndo, Keys: q.keys, Lease: server.Length, Stop: server.Over,
		Until: time.Now().Add(request.AttemptTimeout(server.Length)),
		Args:  []string{id, recordID(), strconv.Itoa(given), strconv.Itoa(back)},
	}
	_, err := o.Run(context.Background())
	if o.Left && !errors.Is(err, request.ErrClosed) {
		server.Go(func() { _, _ = o.Finish() }) // or they are free when the interval is over
	}
}

// given tells those who got what they wanted, and returns how much that was and
// how much of it nobody wants any more.
func (q *rateQueue) given(first []*waiter, rate int) (given, back int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range first {
		given += w.N
		if w.gone {
			back += w.N
			continue
		}
		q.line.Remove(&w.place)
		w.done <- nil
	}
	q.learntLocked(rate)
	return given, back
}

// refused tells those who do not wait, or wait for what will never come.
func (q *rateQueue) refused(first []*waiter, d time.Duration, rate int) (pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.learntLocked(rate)
	head := first[0]
	if head.gone {
		return 0 // what the next one wants may be there
	}
	q.retry = time.Now().Add(d)
	for w := range q.line.All() {
		if q.line.Tries() == 0 {
			break
		}
		if w.Once && (!head.Once || w.N >= head.N) {
			q.tellLocked(w, q.busyLocked(w, nil))
		}
	}
	if head.Once {
		q.retry = time.Time{}
		return 0
	}
	// Processes that wait for the same moment get their turns by chance. A client of
	// Redisson comes 3 ms later than it could.
	d += 1 + mathrand.N(1+min(d/8, 6*time.Millisecond)) //nolint:gosec // jitter
	return min(d, request.Jittered(request.LongestPause))
}

// learntLocked notes the rate, and sends the callers away that want more. A caller that has come since the server was asked
// may know of a higher rate: it stays, and is no reason to believe in this one.
func (q *rateQueue) learntLocked(rate int) {
	q.unset, q.setUp = false, false
	if q.rate == rate && rate > 0 { // 0 says that it is not known, and with less nobody may stay
		return
	}
	q.rate = rate
	for w := range q.line.All() {
		switch {
		case w.N <= rate:
		case w.nth > q.asked:
			q.rate = 0
			q.askNow()
		default:
			q.tellLocked(w, q.tooMany(w.N, rate))
		}
	}
}
