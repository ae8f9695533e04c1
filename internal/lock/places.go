package lock

import (
	"context"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/gate"
	"github.com/redlatch/redlatch/internal/request"
)

// Who waits for a fair lock stands in a queue in Redis, not at a gate of this
// process: each has a line of its own, with the channel on which it is called.
// They share an entrance only, at which one at a time asks for a place, so that
// they stand in the queue in the order in which they came.

// places are what a client knows of its callers of fair locks. It is guarded by
// lines.mu.
type places struct {
	own       map[string]*line     // lines of one waiter each, by its first owner id
	entrances map[string]*entrance // by lock name
	waiting   int                  // callers that may still leave something to settle
	drained   chan struct{}        // closed when waiting is 0 after Close; made by drain
	closed    bool
}

// An entrance is where the callers of one fair lock line up for the queue.
type entrance struct {
	gate gate.Gate[*tenure] // nothing is passed; its waiters are the client's
	refs int
}

// entrancePause bounds how long a caller waits at the entrance: the order is
// worth that much.
const entrancePause = time.Second

func newPlaces() places {
	return places{own: make(map[string]*line), entrances: make(map[string]*entrance)}
}

// newPlace makes a tenure that has yet to be taken, in a line of its own.
func (c *Locks) newPlace(l *Spec, o *Params) *tenure {
	ln := &line{lineKey: lineKey{name: l.name}, refs: 1}
	ln.gate.TryEnter()
	t := c.newTenure(ln, l, o)
	ls := &c.lines
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln.id = t.id
	ls.own[ln.id] = ln
	return t
}

// ownLocked returns the lines of one waiter whose tenure may have that owner id.
func (ls *lines) ownLocked(name, owner string) (candidates []*line) {
	if !strings.HasPrefix(owner, ls.c.ID) {
		return nil
	}
	if ln := ls.own[owner]; ln != nil {
		return append(candidates, ln)
	}
	for _, ln := range ls.own { // a holder's may have changed
		if ln.name == name {
			candidates = append(candidates, ln)
		}
	}
	return candidates
}

// join notes a caller of a fair lock or a barrier, unless the client is closed;
// part forgets it.
func (ls *lines) join() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.closed {
		ls.waiting++
	}
	return !ls.closed
}

func (ls *lines) part() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.waiting--
	if ls.closed && ls.waiting == 0 {
		close(ls.drained)
	}
}

// drain waits until all callers of fair locks and barriers have returned, at most for d: what
// they leave to be settled is their place in a queue, at which others would wait
// for them.
func (ls *lines) drain(d time.Duration) {
	ls.mu.Lock()
	ls.closed = true
	waiting := ls.waiting
	ls.drained = make(chan struct{})
	ls.mu.Unlock()
	if waiting == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ls.drained:
	case <-t.C:
	}
}

// comeIn waits until the callers before this one have their places. through lets
// the next one in, and may be called more than once.
func (p *patience) comeIn(ctx context.Context, l *Spec, o *Params) (through func(), err error) {
	ls := &p.c.lines
	ls.mu.Lock()
	e := ls.entrances[l.name]
	if e == nil {
		e = &entrance{}
		ls.entrances[l.name] = e
	}
	e.refs++
	ls.mu.Unlock()
	in, err := p.pass(ctx, e, o)
	done := false // through is called by one goroutine only
	through = func() {
		if done {
			return
		}
		done = true
		if in {
			e.gate.Exit()
		}
		ls.mu.Lock()
		defer ls.mu.Unlock()
		e.refs--
		if e.refs == 0 {
			delete(ls.entrances, l.name)
		}
	}
	if err != nil {
		through()
	}
	return through, err
}

// pass waits at the entrance, and says whether the caller is inside. One that
// does not wait for the lock does not wait there either: somebody is about to
// take the lock, or to line up for it.
func (p *patience) pass(ctx context.Context, e *entrance, o *Params) (in bool, err error) {
	if o.Once {
		if e.gate.TryEnter() {
			return true, nil
		}
		return false, request.ErrWaitOver
	}
	w := p.c.newWaiter()
	defer p.c.freeWaiter(w)
	if e.gate.Enter(w.Waiter) {
		return true, nil
	}
	brief := *p
	brief.until = time.Now().Add(entrancePause)
	if !p.until.IsZero() && p.until.Before(brief.until) {
		brief.until = p.until
	}
	err = brief.await(ctx, w, nil, func(time.Duration) {})
	if err == nil || !e.gate.Cancel(w.Waiter) {
		w.Take()
		in = true
	}
	if err == request.ErrWaitOver && (p.until.IsZero() || time.Until(p.until) > 0) { //nolint:errorlint // made by await, never wrapped
		err = nil
	}
	return in, err
}

// A quitter is an owner id that leaves a fair lock's queue, or gives back the lock that
// nobody wants any more.
type quitter struct {
	id string
	t  *tenure // whose id it is, unless it is an orphan
}

// mostQuit is how many ids one request releases. It goes through the queue once for
// them all, and keeps the server from everybody else for 25 ms if 10,000 wait.
const mostQuit = 1000

// quit releases an id, together with others that leave the same fair lock.
func (c *Locks) quit(l *Spec, x quitter) {
	c.quitters.Add(l.name, x, func(all []quitter) {
		o := request.Call{Server: c.Server, Script: l.kind.release, Keys: l.keys, Args: []string{l.channel}, Lease: c.Watchdog, Stop: c.Server.Over, Single: true}
		for _, x := range all {
			o.Args = append(o.Args, x.id)
			o.Single = o.Single && x.t == nil // an orphan is released again anyway
		}
		reply, err := o.Run(context.Background())
		for i, x := range all {
			if x.t == nil {
				continue
			}
			own := reply
			if own.Int != int64(i+1) {
				own.Int = 0
			}
			_ = x.t.released(&o, own, err)
			c.lines.put(x.t.line)
		}
	})
}
