package poll

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
)

// A poll is what callers share that wait for the same thing.
type poll struct {
	queue.Users

	ps      *Polls
	key     string
	about   claim.Claim
	channel string
	news    notify.Listener
	leader  chan struct{} // full while somebody asks
	joined  chan struct{} // delivers when there is a new round

	mu     sync.Mutex // guards what follows, and what rounds say
	rounds []*round   // that wait, in the order of their beginnings
	since  time.Time  // when that one began to wait which has waited longest of those that go on in an outage
}

// A round is callers that get the same answer.
type round struct {
	settled chan struct{}
	err     error // the answer; written before settled is closed

	// Guarded by poll.mu.
	callers queue.Line[*caller]
	since   time.Time // when that one began to wait which has waited longest
	closed  bool      // has been asked about: nobody joins it
}

// A caller is one that waits, in its round.
type caller struct {
	claim.Wait

	round *round
	place queue.Place[*caller]
}

// Polls are what the callers of a client wait for, by its keys.
type Polls struct {
	server *request.Server
	all    queue.Registry[string, *poll]
}

// A Question is what the leader asks.
type Question struct {
	Script     *script.Script
	Keys, Args []string
	// Read says whether an answer ends the waiting, and with what.
	Read func(driver.Reply) (over bool, err error)
	// About has the name and the kind of what is waited for, and the site and the owner id of the caller.
	About claim.Claim
}

// New returns the polls of a client whose requests go to server.
func New(server *request.Server) *Polls { return &Polls{server: server} }

// joinPause is how long the leader waits for more callers, to ask for all of them at once.
const joinPause = 5 * time.Millisecond

// Wait waits until the answer to q ends the waiting. q is the same for all that
// wait under the same key.
func (ps *Polls) Wait(ctx context.Context, until time.Time, key, channel string, q Question) error {
	by := claim.Wait{Ctx: ctx, Since: time.Now(), Until: until, Site: q.About.Site, Owner: q.About.Owner}
	for {
		told, err := ps.wait(by, key, channel, q)
		if !told || !request.Early(ps.server, err, by.Since) {
			return request.During(ps.server.NoAnswer(q.Keys), err)
		}
	}
}

// wait waits in one round, and says whether another caller's answer has ended that.
func (ps *Polls) wait(by claim.Wait, key, channel string, q Question) (told bool, err error) {
	if ps.server.Closed() {
		return false, request.ErrClosed
	}
	ctx, until := by.Ctx, by.Until
	w, x := ps.join(key, channel, q.About, by)
	r := x.round
	defer w.leave(x)
	var over <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		over = t.C
	}
	var left error
	select {
	case <-r.settled:
		return true, r.err
	case w.leader <- struct{}{}:
		defer func() { <-w.leader }()
		err = w.ask(by, r, q)
		return r.over(), err
	case <-ctx.Done():
		left = request.ContextError(ctx)
	case <-over:
		left = request.ErrWaitOver
	case <-ps.server.Done:
		left = request.ErrClosed
	}
	if r.over() { // both: the answer says more
		return false, r.err
	}
	return false, left
}

func (r *round) over() bool {
	select {
	case <-r.settled:
		return true
	default:
		return false
	}
}

// ask asks until r is settled, or its caller leaves.
func (w *poll) ask(by claim.Wait, r *round, q Question) error {
	ctx, until, srv := by.Ctx, by.Until, w.ps.server
	for !r.over() {
		if !until.IsZero() && time.Until(until) <= 0 {
			return request.ErrWaitOver
		}
		since := w.close()
		o := request.Call{Server: srv, Script: q.Script, Keys: q.Keys, Args: q.Args, Lease: srv.Length, Stop: srv.Done, Until: until, Since: since}
		reply, err := o.Run(ctx)
		over := false
		switch {
		case err == nil:
			over, err = q.Read(reply)
		case o.Left: // only this caller's context has ended
			return err
		}
		if over || err != nil {
			w.settle(err)
			continue
		}
		srv.Listen(&w.news, w.channel, nil, nil)
		if err := w.sleep(ctx, until); err != nil {
			return err
		}
	}
	return r.err
}

// sleep waits until it is time to ask again.
func (w *poll) sleep(ctx context.Context, until time.Time) error {
	srv := w.ps.server
	longest := min(request.LongestPause, srv.Length/3)
	d, over := request.Jittered(longest), error(nil)
	if left := time.Until(until); !until.IsZero() && left <= d {
		d, over = left, request.ErrWaitOver
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.news.Wake():
		return nil
	case <-w.joined:
		_, err := request.Pause(ctx, srv.Done, w.news.Wake(), until, joinPause)
		return err
	case <-ctx.Done():
		return request.ContextError(ctx)
	case <-srv.Done:
		return request.ErrClosed
	case <-t.C:
		return over
	}
}

// join adds a caller.
func (ps *Polls) join(key, channel string, about claim.Claim, wait claim.Wait) (*poll, *caller) {
	w := ps.all.Get(key, func() *poll {
		return &poll{ps: ps, key: key, about: claim.Claim{Name: about.Name, Kind: about.Kind}, channel: channel, leader: make(chan struct{}, 1), joined: make(chan struct{}, 1)}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.rounds) - 1
	if last < 0 || w.rounds[last].closed {
		w.rounds = append(w.rounds, &round{settled: make(chan struct{}), since: wait.Since})
		last++
		select {
		case w.joined <- struct{}{}:
		default:
		}
	}
	x := &caller{Wait: wait, round: w.rounds[last]}
	if wait.Since.Before(x.round.since) {
		x.round.since = wait.Since
	}
	x.round.callers.Push(&x.place, x, false)
	return w, x
}

// Claims tells what callers of this client wait for, each as it is when it is looked at. No mutex
// is locked while yield runs.
func (ps *Polls) Claims(yield claim.Yield) {
	var list claim.List
	for _, w := range ps.all.All() {
		if w.claims(&list); !list.Tell(yield) {
			return
		}
	}
}

func (w *poll) claims(list *claim.List) {
	w.mu.Lock()
	defer w.mu.Unlock()
	others := 0
	for _, r := range w.rounds {
		others += r.callers.Len()
	}
	for _, r := range w.rounds {
		for x := range r.callers.All() {
			others--
			if !list.Wait(w.about, &x.Wait) {
				list.Others(others)
				return
			}
		}
	}
}

// leave takes a caller away.
func (w *poll) leave(x *caller) {
	r := x.round
	w.mu.Lock()
	if r.callers.Remove(&x.place); r.callers.Len() == 0 {
		w.rounds = slices.DeleteFunc(w.rounds, func(other *round) bool { return other == r })
	}
	w.mu.Unlock()
	if w.ps.all.Put(w.key, w, nil) {
		w.news.Stop()
	}
}

// close lets nobody join the rounds that there are, and returns since when they wait.
func (w *poll) close() (since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.joined: // they are about to be asked for
	default:
	}
	since = w.since
	for _, r := range w.rounds {
		if r.closed = true; since.IsZero() || r.since.Before(since) {
			since = r.since
		}
	}
	return since
}

// settle gives the rounds that have been asked about their answer.
func (w *poll) settle(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Time{}
	w.rounds = slices.DeleteFunc(w.rounds, func(r *round) bool {
		if r.closed {
			r.err = err
			close(r.settled)
			for x := range r.callers.All() {
				w.since = request.Longest(w.ps.server, err, w.since, x.Since)
			}
		}
		return r.closed
	})
}
