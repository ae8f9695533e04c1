package lock

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/gate"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
)

// A caller that waits for a fair lock stands in a queue in Redis, not at a gate of this
// process: each has an entry of its own, with the channel on which it is called.
// They share a local queue only, at which one at a time asks for a place, so that
// they stand in the queue in the order in which they came.

// queuers are what a client knows of its callers of fair locks.
type queuers struct {
	own         queue.Registry[string, *entry]      // entries of one waiter each, by its owner id
	localQueues queue.Registry[string, *localQueue] // by lock name

	mu      sync.Mutex          // guards what follows
	waiting queue.Pending       // callers that may still leave something to settle
	spares  map[string][]*entry // by lock name, the oldest first
	closed  bool
}

// A localQueue is where the callers of one fair lock line up for the queue.
type localQueue struct {
	queue.Users

	gate gate.Gate[*term] // nothing is passed; its waiters are the client's
}

// localQueuePause bounds how long a caller waits at the local queue: the order is
// worth that much.
const localQueuePause = time.Second

// A spare is an entry that nobody has yet, and that listens to its channel already. A
// caller that lines up with it asks once. Any other has to ask again when the server
// confirms its subscription: before that, the lock may have been given to it unheard. So
// a caller that had to wait leaves a spare for the next one.
const (
	mostSpares = 16 // for a lock
	spareTime  = time.Second
)

// An ownPlace is what an entry of one waiter has more than others.
type ownPlace struct {
	id    string      // of its term
	nonce string      // the message that gives the waiter this lock,
	given atomic.Bool // and that it has come
}

// newOwn returns the entry of a waiter that is yet to come, with the owner id that it will have.
func (l *Spec) newOwn() *entry {
	x := &struct {
		entry

		place ownPlace
	}{entry{ls: &l.locks.table, entryKey: l.entry}, ownPlace{id: l.c.NewID(), nonce: newNonce()}}
	x.own = &x.place
	return &x.entry
}

// hear starts the subscription of an entry of one waiter, if it has none.
func (l *Spec) hear(e *entry) {
	l.c.Server.Listen(&e.news, l.channel+":"+e.own.id, func(n driver.Notice) {
		if n.Payload == e.own.nonce {
			e.own.given.Store(true)
		}
	}, nil)
}

// spare makes a spare, which is there for a while.
func (l *Spec) spare() {
	ls, e := &l.locks.table, l.newOwn()
	if !ls.addSpare(l.key, e, func() { l.hear(e) }) {
		return
	}
	time.AfterFunc(spareTime, func() {
		if ls.takeSpare(l.key, e) != nil {
			e.news.Stop()
		}
	})
}

// addSpare adds a spare for a lock and has hear start its subscription, and says whether it did: not if there are
// enough, or the client is closed.
func (ls *table) addSpare(name string, e *entry, hear func()) bool {
	ls.mu.Lock()
	all := ls.spares[name]
	enough := ls.closed || len(all) >= mostSpares
	if !enough {
		if ls.spares == nil {
			ls.spares = map[string][]*entry{}
		}
		ls.spares[name] = append(all, e)
	}
	ls.mu.Unlock()
	if enough {
		return false
	}
	hear()
	ls.mu.Lock()
	closed := ls.closed
	ls.mu.Unlock()
	if closed { // it may have been ended before there was anything to end
		e.news.Stop()
	}
	return !closed
}

// takeSpare takes the oldest spare for a lock that the server has confirmed, or the one
// that is asked for, if it is there.
func (ls *table) takeSpare(name string, e *entry) *entry {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	all := ls.spares[name]
	i := slices.IndexFunc(all, func(x *entry) bool { return x == e || e == nil && x.news.Confirmed() })
	if i < 0 {
		return nil
	}
	e = all[i]
	if ls.spares[name] = slices.Delete(all, i, i+1); len(all) == 1 {
		delete(ls.spares, name)
	}
	return e
}

// closeSpares ends all spares. There are no new ones after drain.
func (ls *table) closeSpares() {
	ls.mu.Lock()
	spares := ls.spares
	ls.spares = nil
	ls.mu.Unlock()
	for _, all := range spares {
		for _, e := range all {
			e.news.Stop()
		}
	}
}

// addOwn adds the entry of a waiter.
func (ls *table) addOwn(e *entry) {
	ls.own.Get(e.own.id, func() *entry { return e })
}

// ownOf returns the entries of one waiter whose term may have that owner id.
func (ls *table) ownOf(name, owner string) []*entry {
	if !strings.HasPrefix(owner, ls.c.ID) {
		return nil
	}
	if e := ls.own.Find(owner); e != nil {
		return []*entry{e}
	}
	return ls.own.Select(func(e *entry) bool { return e.name == name }) // a holder's may have changed
}

// enterLocal waits until the callers before this one have their places. through lets
// the next one in, and may be called more than once.
func (p *waiter) enterLocal(ctx context.Context, l *Spec, o *Params) (through func(), err error) {
	ls := &p.c.table
	e := ls.localQueues.Get(l.key, func() *localQueue { return &localQueue{} })
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
		ls.localQueues.Put(l.key, e, nil)
	}
	if err != nil {
		through()
	}
	return through, err
}

// pass waits at the local queue, and says whether the caller is inside. One that
// does not wait for the lock does not wait there either: somebody is about to
// take the lock, or to line up for it.
func (p *waiter) pass(ctx context.Context, e *localQueue, o *Params) (in bool, err error) {
	if o.Try {
		if e.gate.TryEnter() {
			return true, nil
		}
		return false, request.ErrWaitOver
	}
	brief := *p
	brief.order = time.Now().Add(localQueuePause)
	if !p.until.IsZero() && p.until.Before(brief.order) {
		brief.order = p.until
	}
	_, in, err = brief.lineUp(ctx, &e.gate, nil, nil, func(time.Duration) {})
	if err == request.ErrWaitOver && (p.until.IsZero() || time.Until(p.until) > 0) { //nolint:errorlint // made by await, never wrapped
		err = nil
	}
	return in, err
}

// A leaver is an owner id that leaves a fair lock's queue, or gives back the lock that
// nobody wants any more.
type leaver struct {
	id string
	t  *term // whose id it is, unless it is an orphan
}

// mostQuit is how many ids one request releases. It goes through the queue once for
// them all, and keeps the server from everybody else for 25 ms if 10,000 wait.
const mostQuit = 1000

// leaveQueue is quit of a client.
func (c *Locks) leaveQueue(l *Spec, id string, t *term) {
	c.leavers.Add(l.key, leaver{id, t}, func(all []leaver) {
		o := request.Call{Server: c.Server, Script: l.kind.release, Keys: l.allKeys(), Args: fairForcing(l), Lease: c.Watchdog, Stop: c.Server.Over, Single: true}
		for _, x := range all {
			o.Args = append(o.Args, x.id)
			o.Single = o.Single && x.t == nil // an orphan is released again anyway
		}
		reply, err := o.Run(context.Background())
		for i, x := range all {
			if x.t == nil {
				c.Server.Orphans.Answered(x.id, err)
				continue
			}
			own := reply
			if own.Int != int64(i+1) {
				own.Int = 0
			}
			_ = x.t.released(&o, own, err)
			x.t.home.put()
		}
	})
}
