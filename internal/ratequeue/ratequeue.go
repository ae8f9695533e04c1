package ratequeue

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/waitq"
	"github.com/redlatch/redlatch/internal/wire"
)

// A rateQueue is the callers who want permits of one limiter. Its mutex guards
// what follows the key.
type rateQueue struct {
	waitq.Queue[Want]

	qs  *Queues
	key string // in Redis

	retry time.Time // not before then are there permits for the first, who waits; zero: not known
	rate  int       // as the server last said; 0: not known
	asked int       // how many had come when the server was asked last
	setUp bool      // though a caller's set-up has seen to that
}

type waiter = waitq.Waiter[Want]

// A Want is what a caller wants.
type Want struct {
	N     int  // permits
	Once  bool // does not wait
	SetUp SetUp
	Site  callsite.Site
}

// A SetUp gives a limiter that has no rate the one that a caller has brought,
// unless it has one by now. It is nil for those who have brought none. Its
// requests are noted for all that wait for them.
type SetUp func(asks *request.Refusals) error

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
}

// New returns the queues of a client.
func New(o Options) *Queues { return &Queues{Options: o} }

// Take lines up for permits of a limiter with these keys, until a time if that is
// not zero. It fails with fact.ErrUninitialized if the limiter has no rate.
func (qs *Queues) Take(ctx context.Context, key string, keys []string, want Want, until time.Time) error {
	q := qs.all.Get(key, func() *rateQueue {
		q := &rateQueue{qs: qs, key: key}
		q.Start(qs.Server, keys, q.serve)
		return q
	})
	defer q.put()
	w := &waiter{Want: want, Once: want.Once, Wait: claim.Wait{Ctx: ctx, Since: time.Now(), Until: until, Site: want.Site}}
	err := q.join(w)
	if err == nil {
		err = q.Await(w, func(end error) error { return q.leave(w, end) })
	}
	return qs.Server.Public(err)
}

func (q *rateQueue) put() { q.qs.all.Put(q.key, q, nil) }

// Changed says that this client has done something to a limiter.
func (qs *Queues) Changed(key string) {
	if q := qs.all.Find(key); q != nil {
		q.Lock()
		q.rate = 0
		q.Unlock()
		q.Nudge()
	}
}

// Claims tells what callers of this client wait for, each as it is when it is
// looked at. Those who only try do not wait. No mutex is locked while yield runs.
func (qs *Queues) Claims(yield claim.Yield) {
	var list claim.List
	for _, q := range qs.all.All() {
		q.Queue.Claims(&list, func(w *waiter) claim.Claim {
			return claim.Claim{Name: q.key, Kind: claim.RateLimiter, Count: w.Want.N}
		})
		if !list.Tell(yield) {
			return
		}
	}
}

// join puts w at the end of the line, if there is a point in it.
func (q *rateQueue) join(w *waiter) error {
	q.Lock()
	defer q.Unlock()
	switch {
	case q.rate > 0 && w.Want.N > q.rate: // unless somebody has raised it
		q.rate = 0
		q.Nudge()
	case !q.retry.IsZero() && (w.Once || q.inVainLocked(w, q.Line.First())):
		return q.busyLocked(nil)
	}
	q.JoinLocked(w, func() { q.qs.all.Retain(q) })
	return nil
}

// leave returns the error of w, which end keeps from waiting any longer.
func (q *rateQueue) leave(w *waiter, end error) error {
	gaveUp, why := request.GaveUp(end)
	err, known := q.busyLocked(why), !q.retry.IsZero()
	if q.Line.First() == w {
		q.retry = time.Time{}
	}
	if !gaveUp {
		return end
	}
	if silence := q.qs.Server.NoAnswer(q.Keys[0], &q.Refusals); silence != nil && !known {
		return request.During(silence, end)
	}
	return err
}

// noRate gives the limiter the rate that a caller has brought. If nobody has, or
// that does not help, it tells those that there is none who had come when the
// server was asked: the others may know better.
func (q *rateQueue) noRate() {
	q.Lock()
	defer q.Unlock()
	q.rate = 0
	if q.setUpLocked() {
		return
	}
	for w := range q.Line.All() {
		if w.Nth <= q.asked {
			q.TellLocked(w, fact.ErrUninitialized)
		}
	}
}

// setUpLocked gives the limiter the rate that the first one has brought who has
// brought any, and says whether there is a point in asking again. The queue is not
// locked meanwhile.
func (q *rateQueue) setUpLocked() bool {
	for w := q.bringerLocked(); w != nil && !q.setUp; w = q.bringerLocked() {
		q.Unlock()
		err := w.Want.SetUp(&q.Refusals)
		q.Lock()
		if err == nil {
			q.setUp = true // once more without a rate it is one that cannot be used, or ends too soon for that
			return true
		}
		if request.Outlasted(err) { // each of them sees that for itself
			continue
		}
		for w := range q.Line.All() {
			if w.Want.SetUp != nil {
				q.TellLocked(w, err)
			}
		}
	}
	q.setUp = false
	return false
}

// bringerLocked returns the first in line who has brought a rate; nil if nobody
// has.
func (q *rateQueue) bringerLocked() *waiter {
	for w := range q.Line.All() {
		if w.Want.SetUp != nil {
			return w
		}
	}
	return nil
}

func (q *rateQueue) busyLocked(cause error) error {
	var after time.Duration
	if !q.retry.IsZero() {
		after = max(time.Until(q.retry), 0)
	}
	return fact.Busy{Name: q.qs.Server.Name(q.key), Kind: claim.RateLimiter, After: after, Cause: cause}
}

// inVainLocked says whether w wants as many permits as the first in line, and
// waits less long than there are too few for that one. A caller that wants fewer
// may have them as soon as the first one leaves.
func (q *rateQueue) inVainLocked(w, first *waiter) bool {
	return !w.Until.IsZero() && w.Until.Before(q.retry) && w.Want.N >= first.Want.N
}

func (q *rateQueue) tooMany(n, rate int) error {
	return invalid.Errorf("redlatch: rate limiter %q gives %d permits in an interval, so %d at once can never be had; ask for fewer, or raise the rate", q.qs.Server.Name(q.key), rate, n)
}

// serve asks for those who are in line until nobody is.
func (q *rateQueue) serve() {
	defer q.put()
	for {
		first := q.Batch(mostAsked)
		if len(first) == 0 {
			return
		}
		pause := q.ask(first)
		if pause == 0 {
			continue
		}
		q.Sleep(pause, nil)
		q.Lock()
		q.retry = time.Time{}
		q.Unlock()
	}
}

// ask asks for the first ones, tells those who need not wait any longer, and
// returns for how long there is no point in asking again.
func (q *rateQueue) ask(first []*waiter) (pause time.Duration) {
	server, id := q.qs.Server, recordID()
	q.Lock()
	q.asked = q.Came
	q.Unlock()
	args := []string{wire.Millis(q.qs.Skew), id}
	for _, w := range first {
		args = append(args, strconv.Itoa(w.Want.N))
	}
	call := request.Call{Server: server, Script: lua.RateLimiterTake, Keys: q.Keys, Args: args, Lease: server.Length, Stop: server.Over, Refusals: &q.Refusals}
	for {
		reply, err := call.Run(context.Background())
		if err == nil {
			return q.answered(reply, call.Sent, id, first)
		}
		if !request.Outlasted(err) {
			q.tellAll(err)
		}
		if !call.Unknown || server.Closed() || !call.Again(err) {
			return 0
		}
	}
}

func (q *rateQueue) tellAll(err error) {
	q.Lock()
	defer q.Unlock()
	q.TellAllLocked(err)
}

// recordID returns the random bytes of a record. None is ever used again.
func recordID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return string(id[:])
}

// answered does what is to be done with the server's answer to a request that was
// sent then.
func (q *rateQueue) answered(reply driver.Reply, sent time.Time, id string, first []*waiter) (pause time.Duration) {
	r := reply.List
	if len(r) != 2 || r[0].Kind != driver.ReplyInt || r[1].Kind != driver.ReplyInt || r[0].Int > int64(len(first)) {
		q.tellAll(request.Unexpected(reply, lua.RateLimiterTake))
		return 0
	}
	answer, rate := r[0].Int, int(r[1].Int)
	switch {
	case answer == 0:
		q.noRate()
		return 0
	case answer < 0:
		return q.refused(first, sent, -wire.FromMillis(answer), rate)
	default:
		if given, back := q.given(first[:answer], rate); back > 0 {
			q.giveBack(id, given, back)
		}
	}
	return 0
}

// giveBack gives back what nobody wants any more of the permits of a record. Those
// in line wait for that only while an attempt may last: the server may be silent.
func (q *rateQueue) giveBack(id string, given, back int) {
	server := q.qs.Server
	call := request.Call{
		Server: server, Script: lua.RateLimiterUndo, Keys: q.Keys, Lease: server.Length, Stop: server.Over,
		Until: time.Now().Add(request.AttemptTimeout(server.Length)),
		Args:  []string{id, recordID(), strconv.Itoa(given), strconv.Itoa(back)},
	}
	_, err := call.Run(context.Background())
	if call.Left && !errors.Is(err, request.ErrClosed) {
		server.Go(func() { _, _ = call.Finish() }) // or they are free when the interval is over
	}
}

// given tells those who got what they wanted, and returns how much that was and
// how much of it nobody wants any more.
func (q *rateQueue) given(first []*waiter, rate int) (given, back int) {
	q.Lock()
	defer q.Unlock()
	for _, w := range first {
		given += w.Want.N
		if !q.TellLocked(w, nil) {
			back += w.Want.N
		}
	}
	q.learntLocked(rate)
	return given, back
}

// refused tells those who do not wait, or not for long enough, or for what will
// never come. d is from when the server ran a request that was sent then: counted
// from its reply, waits were refused that are long enough.
func (q *rateQueue) refused(first []*waiter, sent time.Time, d time.Duration, rate int) (pause time.Duration) {
	q.Lock()
	defer q.Unlock()
	q.learntLocked(rate)
	head := first[0]
	if head.Gone {
		return 0 // what the next one wants may be there
	}
	q.retry = sent.Add(d)
	leaves := head.Once || q.inVainLocked(head, head)
	for w := range q.Line.All() {
		if w.Once && (!leaves || w.Want.N >= head.Want.N) || q.inVainLocked(w, head) {
			q.TellLocked(w, q.busyLocked(nil))
		}
	}
	if leaves {
		q.retry = time.Time{}
		return 0
	}
	// Processes that wait for the same moment get their turns by chance. A client of
	// Redisson comes 3 ms later than it could.
	pause = max(0, time.Until(q.retry)) + 1 + mathrand.N(1+min(d/8, 6*time.Millisecond)) //nolint:gosec // jitter
	return min(pause, request.Jittered(request.LongestPause))
}

// learntLocked notes the rate, and sends the callers away that want more. A caller
// that has come since the server was asked may know of a higher rate: it stays,
// and is no reason to believe in this one.
func (q *rateQueue) learntLocked(rate int) {
	q.setUp = false
	if q.rate == rate && rate > 0 { // 0 says that it is not known, and with less nobody may stay
		return
	}
	q.rate = rate
	for w := range q.Line.All() {
		switch {
		case w.Want.N <= rate:
		case w.Nth > q.asked:
			q.rate = 0
			q.Nudge()
		default:
			q.TellLocked(w, q.tooMany(w.Want.N, rate))
		}
	}
}
