package redlatch

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// A permitLine is what the callers of this client that want permits of one
// semaphore, or give some back, have in common. It exists while there is such a
// caller, something to give back, or turns that are owed.
//
// Callers do nothing but line up, or put down what they release, and wait to be
// told. One worker at a time does the rest, while there is anything to do: see
// permitwork.go.
type permitLine struct {
	c       *Client
	name    string
	channel string
	keys    []string
	session *request.Session // nobody else enters it: there is one worker
	news    notify.Listener
	wake    chan struct{} // one slot; for the worker

	refs int // guarded by permitLines.mu

	mu          sync.Mutex // guards what follows
	first, last *permitWaiter
	patient     int          // how many of those wait for permits, and do not only try
	hand        int          // permits of this process that nobody here uses; never for long
	doubted     bool         // what is in hand is not to be handed out: replicas may not know of it
	releasers   []chan error // to be told when what is in hand is in Redis, or somebody's
	working     bool

	refused int       // Redis had fewer permits than this when we last asked
	heard   bool      // that may have changed
	poll    time.Time // when it may have changed without a word

	turns handoff.Budget
	fresh bool         // the next permits from Redis begin a quantum
	stay  handoff.Stay // of a line that is kept because of what it owes

	silent time.Time // since when the server owes us an answer; zero: it does not
	cause  error     // why it did not answer last time, if it failed
}

// permitHands is for how many hand-offs a quantum lasts. A turn yields what one
// release has brought, so a process that has more permits than another must have
// shorter quanta, or they would never share alike: they end by number before
// they do by time.
const permitHands = 8

// A permitWaiter is a caller's place in a permitLine. It serves one caller after
// the other: see permitLines.pool.
type permitWaiter struct {
	n          int
	once       bool       // it only tries
	asked      bool       // for its permits,
	place      int        // and in which place
	told       chan error // one slot: nil when it has its permits
	timer      *time.Timer
	prev, next *permitWaiter
	queued     bool
}

// permitLines are a client's permitLines by the names of semaphores.
type permitLines struct {
	mu   sync.Mutex // guards m and permitLine.refs
	m    map[string]*permitLine
	pool sync.Pool // of *permitWaiter: out of line, told nothing
}

func (ls *permitLines) waiter(n int, once bool) *permitWaiter {
	w, ok := ls.pool.Get().(*permitWaiter)
	if !ok {
		w = &permitWaiter{told: make(chan error, 1), timer: time.NewTimer(time.Hour)}
	}
	w.n, w.once, w.asked = n, once, false
	return w
}

func (ls *permitLines) free(w *permitWaiter) {
	w.timer.Stop()
	ls.pool.Put(w)
}

// get returns the line for a semaphore; put gives it back.
func (ls *permitLines) get(s *Semaphore) *permitLine {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.m[s.name]
	if ln == nil {
		ln = &permitLine{
			c: s.c, name: s.name, channel: s.channel, keys: s.keys,
			session: s.c.server.Session(wire.Session(s.name, s.c.id, "exchange")),
			wake:    make(chan struct{}, 1),
			refused: math.MaxInt, // nothing is known
			fresh:   true,
		}
		now := time.Now()
		ln.turns.Begin(now, true)
		ln.turns.Unused = now.Add(-handoff.Keep) // a later pause would be remembered
		if ls.m == nil {
			ls.m = make(map[string]*permitLine)
		}
		ls.m[s.name] = ln
	}
	ln.refs++
	return ln
}

// retain takes one more share of a line that the caller has a share of.
func (ls *permitLines) retain(ln *permitLine) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln.refs++
}

func (ls *permitLines) put(ln *permitLine) {
	ls.mu.Lock()
	ln.refs--
	var stop func()
	if ln.refs == 0 {
		stop = ln.news.Detach() // others would take it for a waiter's
		ls.dropLocked(ln)
	}
	ls.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// keep keeps a line that somebody has a share of, and with it what it owes, for a
// while longer than for its callers.
func (ls *permitLines) keep(ln *permitLine) {
	ln.stay.Prolong(handoff.Keep, func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.dropLocked(ln)
	})
}

// dropLocked forgets a line that nobody needs any more.
func (ls *permitLines) dropLocked(ln *permitLine) {
	if ln.refs == 0 && ls.m[ln.name] == ln && !ln.stay.Lasts() {
		delete(ls.m, ln.name)
	}
}

// close ends all subscriptions.
func (ls *permitLines) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, ln := range ls.m {
		ln.news.Stop()
	}
}

// acquire lines up for n permits, and returns when they are the caller's.
func (ln *permitLine) acquire(ctx context.Context, n int, once bool, until time.Time) error {
	w := ln.c.permitLines.waiter(n, once)
	defer ln.c.permitLines.free(w)
	if err := ln.join(w); err != nil {
		return err
	}
	told, err := ln.await(ctx, w.told, w.timer, ln.c.server.Done, until)
	if told && err != nil {
		return err
	}
	if err == nil {
		err = ln.c.open() // Close may have come first
	}
	if err != nil && !ln.leave(w) && (told || <-w.told == nil) {
		ln.give(n) // not wanted any more
	}
	return err
}

// join lines up w. Who only tries does not stand behind others that wait.
func (ln *permitLine) join(w *permitWaiter) error {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	now := time.Now()
	switch {
	case !w.once:
	case ln.patient > 0:
		return request.ErrWaitOver
	case ln.owes(now):
		return handoff.Owed(ln.turns.Owed)
	}
	w.queued, w.prev = true, ln.last
	if ln.last == nil {
		ln.first = w
	} else {
		ln.last.next = w
	}
	ln.last = w
	if !w.once {
		ln.patient++
	}
	ln.serve(now, false)
	ln.stir()
	return nil
}

// leave takes w out of the line and returns true, or returns false if it has
// been told how it ended.
func (ln *permitLine) leave(w *permitWaiter) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if !w.queued {
		return false
	}
	ln.remove(w)
	ln.serve(time.Now(), false) // the next one may want less
	ln.stir()
	return true
}

// release gives n permits back, and returns when they are in Redis, or at once
// if somebody here waits for permits.
func (ln *permitLine) release(ctx context.Context, n int) error {
	told := ln.give(n)
	if told == nil {
		return nil
	}
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	_, err := ln.await(ctx, told, t, nil, time.Time{})
	return err
}

// give puts n permits in hand. It returns nil if they are somebody's already or
// will soon be; else a channel that tells when they are in Redis.
func (ln *permitLine) give(n int) <-chan error {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	wanted := ln.first != nil
	ln.hand += n
	ln.serve(time.Now(), false)
	ln.stir()
	if wanted {
		return nil
	}
	told := make(chan error, 1)
	ln.releasers = append(ln.releasers, told)
	return told
}

// await waits to be told, and gives up when ctx ends, stop is closed, until has
// come (zero: never) or the server has not answered for Config.OutageTimeout.
func (ln *permitLine) await(ctx context.Context, told <-chan error, t *time.Timer, stop <-chan struct{}, until time.Time) (bool, error) {
	select {
	case err := <-told:
		return true, err
	default:
	}
	start := time.Now()
	for {
		d := ln.patience(start)
		if d <= 0 {
			return false, ln.during(nil)
		}
		if !until.IsZero() {
			left := time.Until(until)
			if left <= 0 {
				return false, ln.during(request.ErrWaitOver)
			}
			d = min(d, left)
		}
		t.Reset(d)
		select {
		case err := <-told:
			return true, err
		case <-ctx.Done():
			return false, ln.during(request.ContextError(ctx))
		case <-stop:
			return false, ErrClosed
		case <-t.C:
		}
	}
}

// patience returns for how long a call that began at start goes on before it has
// to look at the server again. 0 is the end of it.
func (ln *permitLine) patience(start time.Time) time.Duration {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	limit := ln.c.cfg.OutageTimeout
	if ln.silent.IsZero() {
		return limit
	}
	return limit - min(time.Since(start), time.Since(ln.silent))
}

// during says why a call ended, and if so that the server does not answer. nil
// means that this alone has ended it.
func (ln *permitLine) during(err error) error {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if err == nil {
		cause := ln.cause
		if cause == nil {
			cause = request.ErrNoAnswer
		}
		return &request.OutageError{Cause: cause}
	}
	return request.During(ln.cause, err)
}

// What follows is called holding ln.mu.

// serve hands out what is in hand, first come, first served. Permits that Redis
// has just granted are for whoever is first. Others pass on inside the process
// for a quantum only, then the worker gives those who wait elsewhere their turn.
func (ln *permitLine) serve(now time.Time, granted bool) {
	for w := ln.first; w != nil && w.n <= ln.hand && !ln.doubted; w = ln.first {
		if !granted {
			if ln.c.cfg.HandOff == HandOffNone || ln.turns.OverAfter(permitHands, now) {
				break
			}
			ln.turns.Hands++
		}
		ln.hand -= w.n
		ln.remove(w)
		w.told <- nil
	}
	if ln.hand == 0 {
		ln.tell(ln.releasers, nil)
		ln.releasers = nil
	}
}

func (ln *permitLine) tell(releasers []chan error, err error) {
	for _, told := range releasers {
		told <- err
	}
}

// stir makes sure that a worker looks, if there is anything to do.
func (ln *permitLine) stir() {
	switch {
	case ln.working && (ln.hand > 0 || ln.curious()):
		ln.nudge()
	case !ln.working && (ln.hand > 0 || (ln.first != nil && ln.c.open() == nil)):
		ln.working = true
		ln.c.permitLines.retain(ln)
		ln.c.server.Go(ln.work)
	}
}

// nudge wakes the worker, if it sleeps.
func (ln *permitLine) nudge() {
	select {
	case ln.wake <- struct{}{}:
	default:
	}
}

// curious says whether Redis may have what the first waiter wants. Who comes
// first only because others were served does not want less than they: there is
// no use in asking for each.
func (ln *permitLine) curious() bool {
	w := ln.first
	return w != nil && (w.once || ln.heard || w.n < ln.refused)
}

// owes says whether other processes are to have the permits that are in Redis.
func (ln *permitLine) owes(now time.Time) bool {
	return ln.turns.Owed > 0 && ln.turns.Owes(ln.news.Foreign(), now) > 0
}

func (ln *permitLine) remove(w *permitWaiter) {
	if w.prev == nil {
		ln.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		ln.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	if !w.once {
		ln.patient--
	}
}

// fail ends the waiting of all that are in line.
func (ln *permitLine) fail(err error) {
	for ln.first != nil {
		w := ln.first
		ln.remove(w)
		w.told <- err
	}
}

// sleep waits for d, for a nudge or for the client's end.
func (ln *permitLine) sleep(d time.Duration) {
	_, _ = request.Pause(context.Background(), ln.c.server.Done, ln.wake, time.Time{}, d)
}

// soon is when to ask again without having heard anything.
func soon(now time.Time) time.Time {
	return now.Add(request.Jittered(request.LongestPause))
}
