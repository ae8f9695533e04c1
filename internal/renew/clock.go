package renew

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// maxSleep is how often the clock compares its leases with the wall clock, which
// may have been ahead of the timers while the machine slept.
const maxSleep = time.Second

// slept is how far the wall clock may run ahead of the timers between two
// looks before every lease is looked at. It is well below any Margin.
const slept = 5 * time.Millisecond

// soon is when a lease is renewed that is shorter than it is to be: not at once,
// because many are over by then.
const soon = 100 * time.Millisecond

// A Clock renews leases and ends them. Its methods are safe for concurrent
// use and never block on I/O.
type Clock struct {
	spawn  func(func()) // runs a sender
	glance func()       // called each time the clock looks; may be nil
	silent atomic.Int32 // how many lanes are

	mu      sync.Mutex // guards everything below and the schedule of each Lease
	leases  schedule
	resting resting
	lanes   map[string]*lane
	talks   map[string]*talk // by lane
	timer   *time.Timer      // nil while no lease is in the clock
	wakeAt  time.Time        // what timer is set to
	seen    time.Time        // when the clock last looked
	closed  bool
}

// NewClock returns an empty clock that runs its senders with spawn, and calls
// glance, if that is not nil, at least once a second while it has a lease.
func NewClock(spawn func(func()), glance func()) *Clock {
	return &Clock{spawn: spawn, glance: glance, resting: make(resting), lanes: make(map[string]*lane), talks: make(map[string]*talk)}
}

// Add starts to watch l, whose window must have been confirmed; renewing says
// whether it is also to be renewed. It returns false if the clock is closed:
// then nobody watches l, and its holder will not be told anything. A lease that
// has ended may be added again, by one who knows that it can be trusted.
func (c *Clock) Add(l *Lease, renewing bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.renewing, l.removed, l.retry = renewing, false, 0 // it may still be with its sender
	l.lane = l.Holder.Lane()
	now := time.Now()
	if _, lease := l.rests(); renewing && lease < l.Length {
		l.retry, l.retryAt = soon, now.Add(soon)
	}
	c.scheduleLocked(l, now)
	return !c.closed
}

// SetRenewing starts the renewal of l, each time for length, or stops it.
func (c *Clock) SetRenewing(l *Lease, renewing bool, length time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.renewing == renewing || l.removed {
		return
	}
	l.renewing = renewing
	if renewing {
		l.Length = length
	}
	c.scheduleLocked(l, time.Now())
}

// Touch looks at l again after its window was confirmed by its owner.
func (c *Clock) Touch(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !l.removed {
		c.scheduleLocked(l, time.Now())
	}
}

// Remove forgets l. A renewal that is under way ends without telling anybody.
func (c *Clock) Remove(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(l)
}

func (c *Clock) removeLocked(l *Lease) {
	l.removed = true
	c.resting.remove(l)
	if l.index > 0 {
		heap.Remove(&c.leases, l.index-1)
	}
}

// Check makes l due at once, because somebody has reason to doubt it. One that
// is not to be renewed is only asked about.
func (c *Clock) Check(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !l.removed && !c.closed {
		c.sendLocked(l)
	}
}

// Kick does what Check does for every lease of a lane, or of all lanes if name is
// empty. One whose last renewal has failed is asked about soon anyway, unless there
// is another node to ask.
func (c *Clock) Kick(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.leases) == 0 {
		return
	}
	t, now := c.talkLocked(name), time.Now()
	if t.rekick {
		return
	}
	if rest := kickPause - now.Sub(t.kicked); rest > 0 { // each failure of an outage may be a break
		t.rekick = true
		time.AfterFunc(rest, func() {
			c.mu.Lock()
			t.rekick = false
			c.mu.Unlock()
			c.Kick(name)
		})
		return
	}
	t.kicked = now
	for _, e := range c.leases {
		if l := e.lease; l.Kind != nil && (name == "" || l.lane == name) &&
			(l.due || l.retry == 0 || l.lane != l.Holder.Lane()) {
			c.sendLocked(l)
		}
	}
}

// Close forgets every lease and returns their holders.
func (c *Clock) Close() []Holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	holders := make([]Holder, 0, len(c.leases))
	for _, e := range c.leases {
		e.lease.removed, e.lease.index = true, 0
		holders = append(holders, e.lease.Holder)
	}
	c.leases, c.resting = nil, nil
	if c.timer != nil {
		c.timer.Stop()
	}
	return holders
}

// scheduleLocked computes when to look at l next.
func (c *Clock) scheduleLocked(l *Lease, now time.Time) {
	if c.closed || l.removed {
		return
	}
	at := now.Add(l.Left(now))
	if !l.Until.IsZero() && l.Until.Before(at) {
		at = l.Until
	}
	c.resting.remove(l)
	if (l.renewing || l.retry > 0) && !l.due {
		since, third := l.third()
		renewal := since.Add(third)
		if l.retry > 0 {
			renewal = l.retryAt
		} else {
			c.resting.add(l)
		}
		if renewal.Before(at) {
			at = renewal
		}
	}
	c.lookAtLocked(l, at)
	c.setTimerLocked(now)
}

// lookAtLocked makes the clock look at l at that time.
func (c *Clock) lookAtLocked(l *Lease, at time.Time) {
	if l.index == 0 {
		c.leases = append(c.leases, entry{at, l}) // heap.Push would allocate
		l.index = len(c.leases)
	}
	c.leases[l.index-1].at = at
	heap.Fix(&c.leases, l.index-1)
}

// setTimerLocked makes the timer fire for the first lease, and at the latest
// after maxSleep.
func (c *Clock) setTimerLocked(now time.Time) {
	if len(c.leases) == 0 || c.closed {
		return
	}
	at := c.leases[0].at
	if limit := now.Add(maxSleep); at.After(limit) {
		at = limit
	}
	if c.timer == nil {
		c.wakeAt, c.seen = at, now
		c.timer = time.AfterFunc(max(0, at.Sub(now)), c.tick)
		return
	}
	if c.wakeAt.IsZero() || at.Before(c.wakeAt) {
		c.wakeAt = at
		c.timer.Reset(max(0, at.Sub(now)))
	}
}

// tick is the clock's goroutine: it runs, does no I/O, and sets the timer
// again. While it runs wakeAt is zero.
func (c *Clock) tick() {
	var over []Holder
	c.mu.Lock()
	now := time.Now()
	c.wakeAt = time.Time{}
	if !c.seen.IsZero() && Elapsed(c.seen, now)-now.Sub(c.seen) > slept {
		// The machine was suspended or its wall clock stepped ahead: the timers
		// have not noticed, so every window must be looked at.
		for i := range c.leases {
			c.leases[i].at = now
		}
		heap.Init(&c.leases)
	}
	c.seen = now
	for len(c.leases) > 0 {
		l := c.leases[0].lease
		if c.leases[0].at.After(now) {
			break
		}
		switch {
		case l.Left(now) <= 0 || (!l.Until.IsZero() && !now.Before(l.Until)):
			c.removeLocked(l)
			over = append(over, l.Holder)
		case !l.due && renewalDue(l, now):
			c.sendLocked(l)
			c.scheduleLocked(l, now)
			c.joinLocked(l.sort(), now)
		default:
			c.scheduleLocked(l, now)
			if !c.leases[l.index-1].at.After(now) { // rounding: look again in a moment
				c.lookAtLocked(l, now.Add(time.Millisecond))
			}
		}
	}
	c.setTimerLocked(now)
	if len(c.leases) == 0 {
		c.timer, c.seen = nil, time.Time{}
		c.silent.Store(0)
		clear(c.talks)
	}
	c.mu.Unlock()
	for _, h := range over {
		h.Expired()
	}
	if c.glance != nil {
		c.glance()
	}
}

// renewalDue says whether l is to be renewed, or asked about again, at now.
func renewalDue(l *Lease, now time.Time) bool {
	if l.retry > 0 {
		return !now.Before(l.retryAt)
	}
	since, third := l.third()
	return l.renewing && Elapsed(since, now) >= third
}

// sendLocked puts l into its lane, unless it is there already. One that is with
// a sender is sent once more: the answer to come may be older than the reason to
// ask.
func (c *Clock) sendLocked(l *Lease) {
	if l.due {
		l.again = l.asking
		return
	}
	l.due, l.lane = true, l.Holder.Lane()
	ln := c.lanes[l.lane]
	if ln == nil {
		ln = newLane(l.lane)
		c.lanes[l.lane] = ln
	}
	ln.add(l)
	c.callLocked(ln)
}

// callLocked calls one more sender, if a batch could be sent and none is coming.
func (c *Clock) callLocked(ln *lane) {
	if len(ln.queue) > 0 && !ln.coming && ln.senders < MaxSenders {
		ln.senders++
		ln.coming = true
		c.spawn(func() { c.send(ln) })
	}
}

// send is a sender: it works until there is nothing left in its lane.
func (c *Clock) send(ln *lane) {
	batch := make([]*Lease, 0, MaxBatch)
	c.mu.Lock()
	ln.coming = false
	for {
		batch = ln.take(batch[:0])
		if len(batch) == 0 {
			break
		}
		c.callLocked(ln)
		c.mu.Unlock()
		sent := time.Now()
		batch[0].Kind.Renew(batch)
		c.settle(ln.name, batch, sent)
		c.mu.Lock()
	}
	if ln.senders--; ln.senders == 0 {
		delete(c.lanes, ln.name)
	}
	c.mu.Unlock()
}

// settle acts on the results of a batch of a lane that was sent at sent.
func (c *Clock) settle(name string, batch []*Lease, sent time.Time) {
	var gone []Holder
	var pause time.Duration // the longest that somebody is to make now
	answered := false
	c.mu.Lock()
	now := time.Now()
	for _, l := range batch {
		again := l.again
		l.due, l.asking, l.again = false, false, false
		answered = answered || l.Result == Confirmed || l.Result == Gone
		if l.removed {
			continue
		}
		switch l.Result {
		case Confirmed:
			if l.Left(now) <= 0 {
				break // a late reply never revives a lease
			}
			l.retry = 0
			if l.Ask > 0 {
				l.Confirm(sent, l.Ask)
				l.renewed = sent
			}
			if again {
				c.sendLocked(l)
			}
		case Gone:
			c.removeLocked(l)
			gone = append(gone, l.Holder)
			continue
		default:
			if c.heardSinceLocked(name, sent) {
				l.retry = 0
			}
			l.retry = backoff(l.retry)
			l.retryAt = now.Add(l.retry)
			pause = max(pause, l.retry)
		}
		c.scheduleLocked(l, now)
	}
	if answered {
		c.answeredLocked(name, now)
	} else if pause > 0 {
		c.unansweredLocked(name, now.Add(pause))
	}
	c.mu.Unlock()
	for _, h := range gone {
		h.Gone()
	}
}

// backoff returns the next pause after a failed renewal: 50 ms to 1 s,
// doubled, with jitter.
func backoff(last time.Duration) time.Duration {
	next := min(max(2*last, 100*time.Millisecond), time.Second)
	return next/2 + rand.N(next/2) //nolint:gosec // jitter needs no secrets
}

// An entry says when to look at a lease.
type entry struct {
	at    time.Time
	lease *Lease
}

// schedule is a heap of leases by when to look at them.
type schedule []entry

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].at.Before(s[j].at) }

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].lease.index, s[j].lease.index = i+1, j+1
}

func (s *schedule) Push(any) { panic("not used") }

func (s *schedule) Pop() any {
	old := *s
	last := len(old) - 1
	old[last].lease.index = 0
	old[last] = entry{}
	*s = old[:last]
	return nil
}
