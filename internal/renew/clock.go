package renew

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// soon is after how long the clock renews a lease that is shorter than it is to
// be. It does not do so at once, because many leases are over by then.
const soon = 100 * time.Millisecond

// pause is the least time between two looks through a bunch, and between two kicks
// of a node: in an outage each failure may be a break.
const pause = 50 * time.Millisecond

// A Clock renews leases and ends them. Its methods are safe for concurrent
// use and never block on I/O.
type Clock struct {
	spawn  func(func()) // runs a sender
	ends   deadlines
	silent atomic.Int32 // how many nodes are

	mu      sync.Mutex // guards everything below and what a Lease says of renewing
	bunches map[sort]*bunch
	nodes   map[string]*node // all that were ever named: there are not many nodes
	apart   bool             // those of one batch have the same group
	closed  bool
}

// A bunch is leases that one request can ask about. The clock looks through it
// when one of them may have rested long enough.
type bunch struct {
	sort
	alarm

	leases map[*Lease]struct{}
	looked time.Time // when it was last looked through
	kicked bool      // there is reason to doubt them all
	due    []*Lease  // to be asked about; some may have been forgotten since
}

// A sort of leases are those that fit into one batch.
type sort struct {
	kind  *Kind
	group int
	node  *node
	retry bool // each has a pause of its own, for which the leases that rest are not looked through
}

// NewClock returns an empty clock that runs its senders with spawn, and calls
// glance, if that is not nil, at least once a second while it has a lease.
func NewClock(spawn func(func()), glance func()) *Clock {
	c := &Clock{spawn: spawn, bunches: make(map[sort]*bunch), nodes: make(map[string]*node)}
	c.ends.alarm, c.ends.glance = newAlarm(c.ends.tick), glance
	c.ends.woke = func() { c.rouse(anyBunch, false) } // the timers stood still
	return c
}

// Add starts to watch l, whose window must have been confirmed; renewing says
// whether it is also to be renewed. It returns false if the clock is closed: then
// the clock does not watch l, and tells its holder nothing. A caller that knows
// that a lease can be trusted may add it again after its end. A caller that
// confirms the window of a lease need not tell the clock.
func (c *Clock) Add(l *Lease, renewing bool) bool {
	now, added := c.ends.add(l)
	if !added {
		return false
	}
	if l.Kind == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return true
	}
	l.renewing, l.retry = renewing, 0 // it may still be with its sender
	if _, lease := l.rests(); renewing && lease < l.Length {
		l.retry, l.retryAt = soon, now.Add(soon)
	}
	c.joinLocked(l, c.nodeLocked(l.Holder.Node()))
	c.planLocked(l, now)
	return true
}

// SetRenewing starts the renewal of l, each time for length, or stops it. Another
// length holds from the next renewal on.
func (c *Clock) SetRenewing(l *Lease, renewing bool, length time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.bunch == nil || (l.renewing == renewing && (!renewing || l.Length == length)) {
		return
	}
	l.renewing = renewing
	if renewing {
		l.Length = length
	}
	c.planLocked(l, time.Now())
}

// Remove forgets l. A renewal that is in flight ends, and the holder is not told.
func (c *Clock) Remove(l *Lease) {
	c.ends.remove(l)
	if l.Kind == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.leave()
}

// Check makes l due at once, because the caller has reason to doubt it. A lease
// that is not to be renewed is only asked about.
func (c *Clock) Check(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.doubted = true
	c.sendLocked(l, time.Now())
}

// Kick does what Check does for every lease of a node, or of all nodes if name is
// empty. It leaves out a lease whose last renewal has failed: the clock asks about
// that one soon anyway, unless there is another node to ask.
func (c *Clock) Kick(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ln, now := c.nodeLocked(name), time.Now()
	if now.Before(ln.kick) {
		return // that is yet to come
	}
	rest := max(0, pause-now.Sub(ln.kick))
	ln.kick = now.Add(rest)
	time.AfterFunc(rest, func() { c.rouse(func(s sort) bool { return name == "" || name == s.node.name }, true) })
}

// Apart has leases of different groups asked about with requests of their own from
// now on, also those that wait to be asked about already.
func (c *Clock) Apart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apart {
		return
	}
	c.apart = true
	now, n := time.Now(), 0
	for _, b := range slices.Collect(maps.Values(c.bunches)) {
		due := b.due
		b.due = nil
		for _, l := range due {
			l.due = false
		}
		for l := range b.leases {
			c.joinLocked(l, b.node)
			c.planLocked(l, now)
			if n++; n%someAtOnce == 0 {
				c.breatheLocked()
			}
		}
		for _, l := range due {
			c.sendLocked(l, now)
		}
	}
}

// Answered says that the server of a node has answered some other request. The
// clock now asks again what that server did not answer. If there is nothing of the
// kind, Answered costs next to nothing.
func (c *Clock) Answered(name string) {
	if c.silent.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answeredLocked(name, time.Now())
}

// Holders returns the holders of all leases.
func (c *Clock) Holders() []Holder {
	c.ends.mu.Lock()
	defer c.ends.mu.Unlock()
	return c.ends.holders()
}

// Close forgets every lease and returns their holders.
func (c *Clock) Close() []Holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, b := range c.bunches {
		b.Stop()
		for l := range b.leases {
			l.leave()
		}
	}
	clear(c.bunches)
	return c.ends.close()
}

// joinLocked puts l into the bunch of those that one request can ask about
// together.
func (c *Clock) joinLocked(l *Lease, ln *node) {
	k := sort{l.Kind, 0, ln, l.retry > 0}
	if c.apart {
		k.group = l.Group
	}
	b := c.bunches[k]
	if b == nil {
		b = &bunch{sort: k, leases: make(map[*Lease]struct{})}
		b.alarm = newAlarm(func() { c.look(b) })
		c.bunches[k] = b
	}
	if l.bunch != b {
		l.leave()
		l.bunch, b.leases[l] = b, struct{}{}
	}
}

func (l *Lease) leave() {
	if l.bunch != nil {
		delete(l.bunch.leases, l)
		l.bunch = nil
	}
}

func (c *Clock) nodeLocked(name string) *node {
	ln := c.nodes[name]
	if ln == nil {
		ln = &node{name: name}
		c.nodes[name] = ln
	}
	return ln
}

// planLocked has the bunch of l looked through when l has rested.
func (c *Clock) planLocked(l *Lease, now time.Time) {
	if b := l.bunch; b != nil {
		left, _ := l.rest(now)
		b.set(max(left, pause-now.Sub(b.looked)), now)
	}
}

func anyBunch(sort) bool { return true }

// rouse looks through the leases of some bunches, one bunch after the other. If
// all bunches rang at once, a holder would wait for the mutex behind them.
func (c *Clock) rouse(some func(sort) bool, kicked bool) {
	var all []*bunch
	c.mu.Lock()
	for _, b := range c.bunches {
		if some(b.sort) {
			b.kicked = b.kicked || kicked
			all = append(all, b)
		}
	}
	c.mu.Unlock()
	for _, b := range all {
		c.look(b)
	}
}

// look sends what is due of b. If that is a renewal, it takes along the leases
// that are in the second half of their rest. So the leases of a hash slot,
// whenever they were taken, are soon renewed together. If b has more leases than a
// batch, look leaves out those that have only just rested half: otherwise there
// would always be some to take along.
func (c *Clock) look(b *bunch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	kicked, renewal := b.kicked, false
	b.looked, b.at, b.kicked = now, time.Time{}, false
	var due, early []*Lease
	first := MaxLease // of these
	n := 0
	for l := range b.leases {
		switch left, slack := l.rest(now); {
		case l.over(now):
			l.leave() // its holder is told by the deadlines
		case kicked && (l.due || l.retry == 0 || l.Holder.Node() != b.node.name):
			l.doubted = true
			due = append(due, l)
		case left <= 0:
			renewal = true
			due = append(due, l)
		case left <= slack-pause || (left <= slack && len(b.leases) <= MaxBatch):
			early, first = append(early, l), min(first, left)
		default:
			b.set(max(left, pause), now)
		}
		if n++; n%someAtOnce == 0 {
			c.breatheLocked()
		}
	}
	if renewal {
		due = append(due, early...)
	} else if len(early) > 0 {
		b.set(max(first, pause), now)
	}
	for some := range slices.Chunk(due, 2*MaxBatch) {
		for _, l := range some {
			c.sendLocked(l, now)
		}
		c.breatheLocked()
	}
	if len(b.leases) == 0 && c.bunches[b.sort] == b {
		delete(c.bunches, b.sort)
	}
	if len(c.bunches) == 0 { // it does not matter which nodes are silent
		for _, ln := range c.nodes {
			ln.quiet = time.Time{}
		}
		c.silent.Store(0)
	}
}

// breatheLocked lets others have the mutex: a holder may be waiting for it. A
// goroutine that only unlocks a mutex has it again before the one that was woken
// runs.
func (c *Clock) breatheLocked() {
	c.mu.Unlock()
	runtime.Gosched()
	c.mu.Lock()
}
