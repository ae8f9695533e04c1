package redlatch

import (
	"container/list"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// A desk is where the callers of this client line up that want permits of one
// semaphore. One worker stands behind it and asks Redis, one request at a time,
// for as many of the first in line as fit into it; Redis serves them in order, up
// to the first who has to wait. Then the worker sleeps until there is a message,
// the first permit is over or two seconds have passed. The desk exists while
// there is a line, a release of this process is under way, or what this process owes
// to others is remembered.
//
// Who leaves while a request is under way that asks for him is not waited for:
// the worker gives back what the request brings.
type desk struct {
	sem  *ExpirableSemaphore // one of that name
	news notify.Listener
	poke chan struct{} // one slot: somebody whom the others waited for has left

	// Guarded by desks.mu.
	line     list.List      // of *asker
	onces    int            // how many in line do not wait
	asking   int            // how many of the first are asked for right now; they stay in line
	unset    bool           // the semaphore has not been given permits, as the server last said
	serving  bool           // there is a worker
	leaving  int            // releases of this process that are under way
	awaiting bool           // the worker waits for the answer to one of them
	heard    int            // messages of others that the worker has acted on
	blocked  bool           // the first is known to have to wait
	reach    int            // for how many ids the next request asks at most, unless the first wants more
	answered time.Time      // when the server last answered
	outage   error          // why the last request brought no answer; nil if it brought one
	turns    handoff.Budget // what this process owes to others,
	kept     handoff.Stay   // for as long as that is remembered
}

// desks are a client's desks by the names of their semaphores.
type desks struct {
	mu sync.Mutex // guards m, every desk and every asker
	m  map[string]*desk
}

// An asker is a caller in line.
type asker struct {
	ctx      context.Context //nolint:containedctx // for its values
	ids      []string
	length   time.Duration // the lease it asks for
	once     bool          // it does not wait
	untilSet bool          // it waits for a semaphore to be given permits, too
	at       callsite.Site
	since    time.Time
	done     chan struct{} // closed when it is decided what err says

	// Guarded by desks.mu until done is closed.
	place   *list.Element // nil when decided, or left
	left    bool
	suspect bool          // a request of unknown outcome may still create its ids
	sent    time.Time     // when the request was sent that brought the permits
	next    time.Duration // when the first permit is over, as last seen; 0: not known
	outage  error
	err     error // nil: the permits are his
}

const (
	// deskBatch is for how many ids one request asks at most, unless the first in
	// line wants more. A line that has to wait asks for fewer: for twice what it
	// got, and not less than deskFew, as most of it would ask in vain.
	deskBatch = 100
	deskFew   = 4
	// deskPause is the pause after a request that failed, doubled up to a second.
	deskPause = 5 * time.Millisecond
)

// get returns the desk of s. Holding desks.mu.
func (ds *desks) get(s *ExpirableSemaphore) *desk {
	d := ds.m[s.name]
	if d == nil {
		d = &desk{sem: s, poke: make(chan struct{}, 1)}
		d.unowed(time.Now())
		if ds.m == nil {
			ds.m = map[string]*desk{}
		}
		ds.m[s.name] = d
	}
	return d
}

// unowed notes that nothing is owed to anybody. Holding desks.mu.
func (d *desk) unowed(now time.Time) {
	d.turns.Free()
	d.turns.Unused = now.Add(-handoff.Keep) // a later pause would be remembered
}

// put forgets the desk, unless it is of use. Holding desks.mu.
func (ds *desks) put(d *desk) {
	if ds.m[d.sem.name] == d && !d.serving && d.leaving == 0 && !d.kept.Lasts() { // there may be another since
		delete(ds.m, d.sem.name)
	}
}

// enter puts a into the line of s. It fails with request.ErrWaitOver if a does not wait
// and somebody else does.
func (ds *desks) enter(s *ExpirableSemaphore, a *asker) error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d := ds.get(s)
	defer ds.put(d)
	if a.once {
		switch {
		case d.blocked:
			a.next = front(d).next
			return request.ErrWaitOver
		case d.turns.Owes(d.news.Foreign(), a.since) > 0:
			return handoff.Owed(d.turns.Owed)
		}
	}
	switch {
	case !d.serving:
		d.serving, d.unset, d.outage, d.reach, d.answered = true, false, nil, deskBatch, a.since
		s.c.server.Go(func() { d.serve(ds) })
	case d.unset && !a.untilSet:
		d.askNow()
	}
	a.place, a.outage = d.line.PushBack(a), d.outage
	if a.once {
		d.onces++
	}
	return nil
}

// leave takes a out of the line of s and returns true, or false if it has been
// decided: then a.done is closed.
func (ds *desks) leave(s *ExpirableSemaphore, a *asker) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if a.place == nil {
		return false
	}
	d := ds.m[s.name]
	a.left = true
	first := d.line.Front() == a.place
	if i := 0; d.asking > 0 {
		for e := d.line.Front(); e != nil && i < d.asking; e, i = e.Next(), i+1 {
			if e == a.place {
				return true // the worker sees to it
			}
		}
	}
	d.remove(a)
	if a.suspect {
		s.drop(a.ids, true)
	}
	if first {
		d.blocked = false
		d.askNow()
	}
	return true
}

// askNow wakes the worker, if it sleeps.
func (d *desk) askNow() {
	select {
	case d.poke <- struct{}{}:
	default:
	}
}

// remove takes a out of the line. Holding desks.mu.
func (d *desk) remove(a *asker) {
	d.line.Remove(a.place)
	a.place = nil
	if a.once {
		d.onces--
	}
}

// decide tells a how it went. Holding desks.mu.
func (d *desk) decide(a *asker, err error) {
	d.remove(a)
	a.err = err
	if (err != nil && a.suspect) || (err == nil && a.left) {
		d.sem.drop(a.ids, a.suspect)
	}
	close(a.done)
}

// serve is the worker's life.
func (d *desk) serve(ds *desks) {
	var pause time.Duration
	for {
		if rest := d.rest(ds); rest > 0 {
			d.sem.c.server.Listen(&d.news, d.sem.channel, nil, nil)
			d.sleep(ds, rest, true)
			continue
		}
		batch, stop := d.next(ds)
		if batch == nil {
			if stop != nil {
				stop()
			}
			return
		}
		o := d.request(batch)
		reply, err := o.Run(context.WithoutCancel(batch[0].ctx))
		short := o.Doubt(err == nil && request.First(reply).Int > 0)
		ds.mu.Lock()
		d.asking = 0
		if err != nil {
			d.failed(batch, &o, err)
			pause = min(max(2*pause, deskPause), time.Second)
			ds.mu.Unlock()
			d.sleep(ds, pause/2+rand.N(pause/2), false) //nolint:gosec // jitter
			continue
		}
		pause = 0
		wait := d.answer(batch, &o, reply, short)
		ds.mu.Unlock()
		if wait != 0 {
			d.sem.c.server.Listen(&d.news, d.sem.channel, nil, nil)
			d.sleep(ds, wait, true)
		}
	}
}

// rest returns for how long permits are left to others, if anybody here wants some.
func (d *desk) rest(ds *desks) time.Duration {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d.awaiting, d.heard = false, d.news.Foreign()
	if d.line.Len() == 0 || d.sem.c.open() != nil {
		return 0
	}
	rest := d.turns.Owes(d.heard, time.Now())
	for e := d.line.Front(); e != nil && d.onces > 0 && rest > 0; {
		a := e.Value.(*asker) //nolint:forcetypeassert // only askers stand in line
		e = e.Next()
		if a.once {
			d.decide(a, handoff.Owed(d.turns.Owed))
		}
	}
	return rest
}

// releasing prepares the release of a permit. It returns the desk that hears of it, how
// many subscriptions are the client's own, and how many messages of others were heard.
func (ds *desks) releasing(s *ExpirableSemaphore) (d *desk, own string, foreign int) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d = ds.get(s)
	d.news.Expect()
	d.leaving++
	return d, s.c.server.Own(&d.news, s.channel), d.news.Foreign()
}

// released notes what is owed for a release that d has heard of, foreign messages
// having been heard before.
func (ds *desks) released(d *desk, reply driver.Reply, foreign int) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	defer ds.put(d)
	nothing := len(reply.List) != 2 || reply.List[0].Int == 0
	d.leaving--
	d.news.Answered(!nothing)
	if d.awaiting || d.kept.Lasts() {
		defer d.askNow()
	}
	if nothing {
		return
	}
	n, now := int(reply.List[1].Int), time.Now()
	if n == 0 && !d.sem.c.blind.Yields(d.sem.channel, now.Add(-handoff.Keep), now) {
		d.unowed(now)
		return
	}
	d.turns.Used(foreign)
	d.turns.Yield(n, foreign, now)
	d.kept.Prolong(handoff.Keep, func() {
		ds.mu.Lock()
		defer ds.mu.Unlock()
		ds.put(d)
	})
}

// next returns those to ask for, or nil if nobody is in line: then there is no worker
// any more, and what ends its subscription is to be called.
func (d *desk) next(ds *desks) (batch []*asker, stop func()) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if d.sem.c.open() != nil {
		for d.line.Len() > 0 {
			d.decide(front(d), ErrClosed)
		}
	}
	ids := 0
	for e := d.line.Front(); e != nil; e = e.Next() {
		a := e.Value.(*asker) //nolint:forcetypeassert // only askers stand in line
		if ids += len(a.ids); ids > d.reach && len(batch) > 0 {
			break
		}
		batch = append(batch, a)
	}
	d.asking, d.blocked = len(batch), false
	if len(batch) == 0 {
		d.serving, stop = false, d.news.Detach()
		ds.put(d)
	}
	return batch, stop
}

// request prepares the request for a batch. It is one attempt only: the line is
// another by the time of the next.
func (d *desk) request(batch []*asker) request.Call {
	c := d.sem.c
	args := []string{d.sem.channel}
	lease := batch[0].length
	for _, a := range batch {
		args = append(args, c.permitMs(a.length), strconv.Itoa(len(a.ids)))
		args = append(args, a.ids...)
		lease = min(lease, a.length)
	}
	return request.Call{Server: c.server, Script: lua.ExpirableTake, Keys: d.sem.keys, Args: args, Lease: lease, Stop: c.server.Over, Single: true, Acks: c.server.Acks.Holds}
}

// failed notes that a request brought no answer, or none that helps. Holding
// desks.mu.
func (d *desk) failed(batch []*asker, o *request.Call, err error) {
	for _, a := range batch {
		a.suspect = a.suspect || o.Uncertain(err) || o.Left
		if a.left {
			d.decide(a, err)
		}
	}
	if !o.Left && driver.Failure(err).Permanent() {
		d.all(err)
		return
	}
	d.outage = err
	now, limit := time.Now(), d.sem.c.cfg.OutageTimeout
	for e := d.line.Front(); e != nil; {
		a := e.Value.(*asker) //nolint:forcetypeassert // only askers stand in line
		e = e.Next()
		a.outage = err
		heard := d.answered
		if a.since.After(heard) {
			heard = a.since
		}
		if now.Sub(heard) >= limit {
			d.decide(a, &request.OutageError{Cause: err})
		}
	}
}

// answer deals with the server's answer, and returns for how long to sleep; 0 if
// there is more to ask for at once. short, if it is not nil, says why what was given
// does not count. Holding desks.mu.
func (d *desk) answer(batch []*asker, o *request.Call, reply driver.Reply, short error) time.Duration {
	d.answered, d.outage = time.Now(), nil
	if len(reply.List) != 2 || reply.List[0].Kind != driver.ReplyInt || reply.List[0].Int > int64(len(batch)) {
		d.all(request.Unexpected(reply, lua.ExpirableTake))
		return 0
	}
	given := int(reply.List[0].Int)
	if d.unset = given < 0; d.unset {
		return d.uninitialized()
	}
	got := 0
	for _, a := range batch[:given] {
		got += len(a.ids)
		a.sent = o.Sent
		if short != nil {
			a.suspect = true // the server may forget them
			d.decide(a, short)
			continue
		}
		d.decide(a, nil)
	}
	if given > 0 {
		d.turns.Settled(d.news.Foreign(), d.answered)
	}
	if given == len(batch) {
		d.reach = min(2*d.reach, deskBatch)
		return 0
	}
	d.reach = min(max(2*got, deskFew), deskBatch)
	// The first who did not get his has to wait, and so has everybody behind.
	wait := request.Jittered(request.LongestPause)
	var next time.Duration
	if ms := reply.List[1].Int; ms >= 0 {
		next = wire.FromMillis(ms + 1)
		wait = min(wait, next)
	}
	d.blocked = true
	for _, a := range batch[given:] {
		a.next, a.outage = next, nil
		if a.left {
			d.blocked = d.blocked && a != batch[given]
			d.decide(a, request.ErrWaitOver)
		}
	}
	if !d.blocked {
		return 0
	}
	for e := d.line.Front(); e != nil && d.onces > 0; {
		a := e.Value.(*asker) //nolint:forcetypeassert // only askers stand in line
		e = e.Next()
		if a.once {
			d.blocked = d.blocked && a != batch[given]
			a.next = next
			d.decide(a, request.ErrWaitOver)
		}
	}
	if !d.blocked {
		return 0
	}
	return wait
}

// uninitialized tells those that there are no permits yet who do not wait for them.
// Holding desks.mu.
func (d *desk) uninitialized() time.Duration {
	for e := d.line.Front(); e != nil; {
		a := e.Value.(*asker) //nolint:forcetypeassert // only askers stand in line
		e = e.Next()
		if a.left || !a.untilSet {
			d.decide(a, fmt.Errorf("%w: semaphore %q has never been given permits; call TrySetPermits once", ErrUninitialized, d.sem.name))
		}
	}
	if d.line.Len() == 0 {
		return 0
	}
	return request.Jittered(request.LongestPause)
}

// all tells everybody in line the same. Holding desks.mu.
func (d *desk) all(err error) {
	for d.line.Len() > 0 {
		d.decide(front(d), err)
	}
}

// front returns the first in line.
func front(d *desk) *asker {
	return d.line.Front().Value.(*asker) //nolint:forcetypeassert // only askers stand in line
}

// sleep waits for t, or until somebody leaves who was waited for, or, if it is
// news that is waited for, until there is some.
func (d *desk) sleep(ds *desks, t time.Duration, forNews bool) {
	timer, end, awaited := time.NewTimer(t), time.Now().Add(t), false
	defer timer.Stop()
	var news <-chan struct{}
	if forNews {
		news = d.news.Wake()
	}
	for {
		select {
		case <-timer.C:
		case <-news:
			if d.awaits(ds) {
				if !awaited { // each release has a message
					awaited = true
					timer.Reset(min(time.Until(end), handoff.LongestPause))
				}
				continue
			}
		case <-d.poke:
		case <-d.sem.c.server.Done:
		}
		return
	}
}

// awaits says whether the news is of a release of this process that is under way. Its
// answer says what is owed for it, and wakes the worker. Who asks before that takes
// what is left to others, and believes that nobody wanted it.
func (d *desk) awaits(ds *desks) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d.awaiting = d.leaving > 0 && d.news.Foreign() == d.heard
	return d.awaiting
}

// wait waits in line until a has its permits.
func (ds *desks) wait(ctx context.Context, s *ExpirableSemaphore, a *asker, until time.Time, ttl *time.Duration) error {
	if err := ds.enter(s, a); err != nil {
		*ttl = a.next
		return err
	}
	_, end := request.Await(ctx, s.c.server.Done, a.done, until)
	if end == nil || !ds.leave(s, a) {
		*ttl = a.next
		return a.err
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	*ttl = a.next
	return request.During(a.outage, end)
}
