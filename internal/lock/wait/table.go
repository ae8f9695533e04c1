package wait

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/gate"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// An Entry is what the callers of this client that want one lock share: the gate
// that lines them up, the subscription that wakes the first of them, and what
// the process owes to others. It exists while there is such a caller, or it owes
// something.
type Entry struct {
	queue.Users
	term.EntryKey

	ls      *Table
	ID      string // that the term of its only waiter will have; empty: the entry is shared
	gate    gate.Gate[*term.Term]
	news    notify.Listener
	writers int32            // of a read-write lock: how many are in line to write; guarded by the mutex
	budget  handoff.Budget   // belongs to whoever is inside the gate
	refused request.Refusals // of whoever is inside

	sync.Mutex             // guards what follows
	cur        *term.Term  // of whoever is inside: live, or about to be
	seen       seen        // with somebody else
	waits      *takingWait // whoever is inside, if it has to wait
	Extra      Extra       // those who wait beside the gate; nil: nobody
}

// An Extra is callers that wait for an entry's lock as one, as readers do. It is
// called under the entry's mutex.
type Extra interface {
	Waits(list *claim.List)    // tells of them
	Saw(asked, free time.Time) // sends those away who wait less long than the lock stays, which somebody else has now
	Rejoin()                   // has them look at the current term again
}

// A Table is a client's entries.
type Table struct {
	*term.Env

	entries     queue.Registry[term.EntryKey, *Entry]
	queues      queue.Registry[term.EntryKey, *Entry] // those of a Queue
	own         queue.Registry[string, *Entry]        // those of one waiter each, by its owner id
	spaces      []string                              // of all kinds
	unplaced    unplaced                              // those who wait in no entry and in no line
	localQueues queue.Registry[string, *localQueue]   // by lock name, of all kinds
	AtClose     func()                                // ends what else listens
	pool        sync.Pool                             // of entries, which come and go with every uncontended acquisition
	tickets     sync.Pool                             // of *ticket
}

// NewTable returns the entries of a client that has locks of these kinds.
func NewTable(env *term.Env, kinds []*term.Kind) *Table {
	c := &Table{Env: env, AtClose: func() {}}
	for _, k := range kinds {
		if !slices.Contains(c.spaces, k.Space) {
			c.spaces = append(c.spaces, k.Space)
		}
	}
	return c
}

// A localQueue is where callers line up that will have an entry each.
type localQueue struct {
	queue.Users

	gate gate.Gate[*term.Term] // nothing is passed
}

// localQueuePause bounds how long a caller waits at the local queue: the order is
// worth that much.
const localQueuePause = time.Second

// enter waits for the caller's turn, and says whether it is inside. A Try fails at
// once if the queue is not empty: somebody is about to take the lock, or to line
// up for it.
func (local *localQueue) enter(ctx context.Context, p *Waiter, want *term.Params) (in bool, err error) {
	if want.Try {
		if local.gate.TryEnter() {
			return true, nil
		}
		return false, request.ErrWaitOver
	}
	end := time.Now().Add(localQueuePause)
	if !p.until.IsZero() && p.until.Before(end) {
		end = p.until
	}
	_, in, err = p.lineUp(ctx, &local.gate, turn{until: end}, nil, nil)
	if err == request.ErrWaitOver && (p.until.IsZero() || time.Until(p.until) > 0) { //nolint:errorlint // made by await, never wrapped
		err = nil
	}
	return in, err
}

// EnterLocal waits until the callers before this one have their places in Redis.
// through lets the next one in, and may be called more than once.
func (c *Table) EnterLocal(ctx context.Context, p *Waiter, l *term.Lock, want *term.Params) (through func(), err error) {
	local := c.localQueues.Get(l.Key, func() *localQueue { return &localQueue{} })
	in, err := local.enter(ctx, p, want)
	done := false // through is called by one goroutine only
	through = func() {
		if done {
			return
		}
		done = true
		if in {
			local.gate.Exit()
		}
		c.localQueues.Put(l.Key, local, nil)
	}
	if err != nil {
		through()
	}
	return through, err
}

// Occupy lets the only waiter of an entry inside, and returns the term that it is
// to take.
func (c *Table) Occupy(e *Entry, l *term.Lock, want *term.Params) *term.Term {
	e.gate.TryEnter()
	t := e.newTerm(l, want)
	c.own.Get(e.ID, func() *Entry { return e })
	return t
}

// Get returns the entry for a lock; its Put gives it back.
func (c *Table) Get(l *term.Lock) *Entry {
	return c.entries.Get(l.Entry, func() *Entry {
		e, ok := c.pool.Get().(*Entry)
		if !ok {
			e = &Entry{ls: c}
		}
		e.EntryKey = l.Entry
		return e
	})
}

// Close ends all subscriptions. Waiters leave by themselves; a holder may stay.
func (c *Table) Close() {
	c.AtClose()
	for _, e := range c.all() {
		e.news.Stop()
	}
}

// Drain ends the waiting of all callers, now that the server is stopped, and waits
// until those have returned that may leave something to be settled, at most for d.
func (c *Table) Drain(d time.Duration) {
	c.wake()
	c.AwaitCallers(d)
}

// AwaitReleases ends the waiting of all callers, now that the server is stopped,
// and waits until all holds are released, and their locks in Redis. It fails if
// ctx ends, or the client is closed.
func (c *Table) AwaitReleases(ctx context.Context) error {
	c.wake()
	return request.AwaitAll(ctx, c.Server.Over, c.entries.Idle, c.own.Idle)
}

// wake has all waiters at the gates look around, now that the client is closed. A
// caller that comes to a gate later sees that by itself.
func (c *Table) wake() {
	for _, e := range c.all() {
		e.gate.Wake()
	}
	for _, local := range c.localQueues.All() {
		local.gate.Wake()
	}
}

// all returns all entries. The registries are not locked while any of them is
// looked at: shares of an entry are taken under its term's mutex.
func (c *Table) all() []*Entry {
	return slices.Concat(c.entries.All(), c.queues.All(), c.own.All())
}

// Peek returns the term of a lock that this client has, or is about to have,
// if a field in Redis may be that term's.
func (c *Table) Peek(name, owner string) *term.Term {
	t, _ := c.find(name, owner)
	return t
}

// Keeps says whether a hold of this client has an owner id, or has lapsed and may
// not have stopped.
func (c *Table) Keeps(name, owner string) bool {
	t := c.Peek(name, owner)
	return (t != nil && t.Live()) || c.Lapsed(owner)
}

// Known says whether a field of this client belongs to somebody here, if only to
// one whose release is in flight: another one could overtake that.
func (c *Table) Known(name, owner string) bool {
	t, leaving := c.find(name, strings.TrimSuffix(owner, wire.WriteField("")))
	return t != nil || leaving
}

// find looks for the term of an owner in all entries of a lock, whatever its
// type: a name may, by mistake, be that of several. If it is not there, leaving
// says that it may have gone just now.
func (c *Table) find(name, owner string) (t *term.Term, leaving bool) {
	var candidates []*Entry
	if e := c.own.Find(owner); e != nil {
		candidates = append(candidates, e)
	} else if strings.HasPrefix(owner, c.ID) {
		candidates = c.own.Select(func(e *Entry) bool { return e.Name == name }) // a holder's id may have changed
	}
	for _, space := range c.spaces {
		if e := c.entries.Find(term.EntryKey{Name: name, Space: space}); e != nil {
			candidates = append(candidates, e)
		}
	}
	for _, e := range candidates {
		e.Lock()
		t := e.cur
		e.Unlock()
		switch {
		case t == nil:
			leaving = true
		case t.ID == owner:
			return t, false
		}
	}
	return nil, leaving
}

// Holder returns the term of this client that has an owner id of a lock, or nil.
func (c *Table) Holder(name, owner string) *term.Term {
	if t := c.Peek(name, owner); t != nil && t.Lock.Key == name {
		return t
	}
	// The owner may have values of a group.
	for _, e := range c.all() {
		e.Lock()
		t := e.cur
		e.Unlock()
		if t != nil && t.Lock.Kind.Part && t.Lock.Key == name && t.ID == owner {
			return t
		}
	}
	return nil
}

// Listen starts the entry's subscription, if it has none.
func (e *Entry) Listen(c *term.Env, channel string) {
	c.Server.Listen(&e.news, channel, nil, func() {
		// Somebody else released a lock that we believe to hold: ask.
		// (In a group that happens all the time, and is about other values.)
		if t := e.current(); t != nil && !t.Lock.Kind.Part {
			c.Clock.Check(&t.Lease)
		}
	})
}

// current returns the live term, if there is one.
func (e *Entry) current() *term.Term {
	e.Lock()
	t := e.cur
	e.Unlock()
	if t == nil || !t.Live() {
		return nil
	}
	return t
}

// Held says whether a caller of this process has the lock.
func (e *Entry) Held() bool { return e.current() != nil }

// ReapFound releases an id that was found in a lock if it is of this client and
// nobody here has it: a request that came late has put it there. (In a group,
// the id of an owner of other values is nothing unusual.)
func (c *Table) ReapFound(l *term.Lock, owner string) {
	if !c.Made(owner) || c.Known(l.Key, owner) || c.Lapsed(owner) ||
		((l.Kind.Part || c.MayBeDetached(owner)) && !c.Server.Orphans.Has(owner)) {
		return
	}
	c.Server.Go(func() { c.Reap(l, owner) })
}
