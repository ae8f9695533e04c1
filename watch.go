package redlatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/notify"
)

// A watch is what the callers of this process share that wait for the same thing
// to happen in Redis: one subscription, and one of them who asks for all.
//
//	join ──► round ──── settled ──► what the one who asked has learnt
//	           ├─────── seated: asks, sleeps, asks ... until it is settled
//	           └─────── the caller leaves; if it was seated another one sits down
//
// An answer is only good for those who came before the question was sent: what
// has happened may have been undone before the others came. So callers are in
// rounds: a question closes the last one, and who comes later begins another.
type watch struct {
	ws      *watches
	key     string
	channel string
	news    notify.Listener
	seat    chan struct{} // full while somebody asks
	joined  chan struct{} // delivers when there is a new round

	// Guarded by watches.mu.
	refs   int
	rounds []*round // that wait, in the order of their beginnings
}

// A round is callers that get the same answer.
type round struct {
	settled chan struct{}
	err     error // the answer; written before settled is closed

	// Guarded by watches.mu.
	refs   int
	closed bool // has been asked about: nobody joins it
}

// watches are a client's watches, by their keys.
type watches struct {
	c  *Client
	mu sync.Mutex
	m  map[string]*watch
}

// A question is what the one who asks asks.
type question struct {
	script     *Script
	keys, args []string
	// read says whether an answer ends the waiting, and with what.
	read func(Reply) (over bool, err error)
}

// joinPause lets those who come together be asked for together.
const joinPause = 5 * time.Millisecond

// await waits until the answer to q ends the waiting. q is the same for all that
// wait under the same key.
func (c *Client) await(ctx context.Context, until time.Time, key, channel string, q question) error {
	w, r := c.watches.join(key, channel)
	defer w.leave(r)
	var over <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		over = t.C
	}
	var left error
	select {
	case <-r.settled:
		return r.err
	case w.seat <- struct{}{}:
		defer func() { <-w.seat }()
		return w.ask(ctx, until, r, q)
	case <-ctx.Done():
		left = ctxError(ctx)
	case <-over:
		left = errWaitOver
	case <-c.done:
		left = ErrClosed
	}
	if r.over() { // both: the answer says more
		return r.err
	}
	return left
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
func (w *watch) ask(ctx context.Context, until time.Time, r *round, q question) error {
	c := w.ws.c
	for !r.over() {
		if !until.IsZero() && time.Until(until) <= 0 {
			return errWaitOver
		}
		w.close()
		o := op{c: c, script: q.script, keys: q.keys, args: q.args, lease: c.cfg.WatchdogTimeout, stop: c.done, until: until}
		reply, err := o.run(ctx)
		over := false
		switch {
		case err == nil:
			over, err = q.read(reply)
		case o.left: // which is nobody else's concern
			return err
		}
		if over || err != nil {
			w.settle(err)
			continue
		}
		c.listen(&w.news, w.channel, nil, nil)
		if err := w.sleep(ctx, until); err != nil {
			return err
		}
	}
	return r.err
}

// sleep waits until it is time to ask again.
func (w *watch) sleep(ctx context.Context, until time.Time) error {
	c := w.ws.c
	longest := min(longestSleep, c.cfg.WatchdogTimeout/3)
	d, over := jittered(longest), error(nil)
	if left := time.Until(until); !until.IsZero() && left <= d {
		d, over = left, errWaitOver
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.news.Wake():
		return nil
	case <-w.joined:
		_, err := nap(ctx, c.done, w.news.Wake(), until, joinPause)
		return err
	case <-ctx.Done():
		return ctxError(ctx)
	case <-c.done:
		return ErrClosed
	case <-t.C:
		return over
	}
}

// join adds a caller.
func (ws *watches) join(key, channel string) (*watch, *round) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.m[key]
	if w == nil {
		w = &watch{ws: ws, key: key, channel: channel, seat: make(chan struct{}, 1), joined: make(chan struct{}, 1)}
		ws.m[key] = w
	}
	w.refs++
	last := len(w.rounds) - 1
	if last < 0 || w.rounds[last].closed {
		w.rounds = append(w.rounds, &round{settled: make(chan struct{})})
		last++
		select {
		case w.joined <- struct{}{}:
		default:
		}
	}
	r := w.rounds[last]
	r.refs++
	return w, r
}

// leave takes a caller away.
func (w *watch) leave(r *round) {
	w.ws.mu.Lock()
	if r.refs--; r.refs == 0 {
		w.rounds = slices.DeleteFunc(w.rounds, func(other *round) bool { return other == r })
	}
	w.refs--
	last := w.refs == 0
	if last {
		delete(w.ws.m, w.key)
	}
	w.ws.mu.Unlock()
	if last {
		w.news.Stop()
	}
}

// close lets nobody join the rounds that there are.
func (w *watch) close() {
	w.ws.mu.Lock()
	defer w.ws.mu.Unlock()
	select {
	case <-w.joined: // they are about to be asked for
	default:
	}
	for _, r := range w.rounds {
		r.closed = true
	}
}

// settle gives the rounds that have been asked about their answer.
func (w *watch) settle(err error) {
	w.ws.mu.Lock()
	defer w.ws.mu.Unlock()
	w.rounds = slices.DeleteFunc(w.rounds, func(r *round) bool {
		if r.closed {
			r.err = err
			close(r.settled)
		}
		return r.closed
	})
}
