package renew

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// soon is when a lease is renewed that is shorter than it is to be: not at once,
// because many are over by then.
const soon = 100 * time.Millisecond

// A Clock renews leases and ends them. Its methods are safe for concurrent
// use and never block on I/O.
type Clock struct {
	spawn  func(func()) // runs a sender
	ends   deadlines
	silent atomic.Int32 // how many lanes are

	mu      sync.Mutex // guards everything below and what a Lease says of renewing
	leases  schedule
	resting resting
	lanes   map[string]*lane
	talks   map[string]*talk // by lane
	alarm
	closed bool
}

// NewClock returns an empty clock that runs its senders with spawn, and calls
// glance, if that is not nil, at least once a second while it has a lease.
func NewClock(spawn func(func()), glance func()) *Clock {
	c := &Clock{spawn: spawn, resting: make(resting), lanes: make(map[string]*lane), talks: make(map[string]*talk)}
	c.leases.which = 1
	c.ring = c.tick
	c.ends.ring, c.ends.glance, c.ends.woke = c.ends.tick, glance, c.woke
	return c
}

// Add starts to watch l, whose window must have been confirmed; renewing says
// whether it is also to be renewed. It returns false if the clock is closed:
// then nobody watches l, and its holder will not be told anything. A lease that
// has ended may be added again, by one who knows that it can be trusted.
func (c *Clock) Add(l *Lease, renewing bool) bool {
	if !c.ends.add(l) {
		return false
	}
	if l.Kind != nil {
		c.mu.Lock()
		l.renewing, l.removed, l.retry = renewing, false, 0 // it may still be with its sender
		l.lane = l.Holder.Lane()
		now := time.Now()
		if _, lease := l.rests(); renewing && lease < l.Length {
			l.retry, l.retryAt = soon, now.Add(soon)
		}
		c.scheduleLocked(l, now)
		c.mu.Unlock()
	}
	return true
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
	if !l.removed && l.Kind != nil {
		c.scheduleLocked(l, time.Now())
	}
}

// Remove forgets l. A renewal that is under way ends without telling anybody.
func (c *Clock) Remove(l *Lease) {
	c.ends.remove(l)
	if l.Kind == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(l)
}

func (c *Clock) removeLocked(l *Lease) {
	l.removed = true
	c.resting.remove(l)
	c.leases.remove(l)
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
	for some := range slices.Chunk(c.kicked(name), someAtOnce) {
		c.mu.Lock()
		for _, l := range some {
			if !l.removed && !c.closed && (name == "" || l.lane == name) &&
				(l.due || l.retry == 0 || l.lane != l.Holder.Lane()) {
				c.sendLocked(l)
			}
		}
		c.mu.Unlock() // a holder may be waiting for it
	}
}

// kicked returns the leases among which a kick finds its own: none if there was one
// a moment ago. Then it comes later.
func (c *Clock) kicked(name string) []*Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.leases.entries) == 0 {
		return nil
	}
	t, now := c.talkLocked(name), time.Now()
	if t.rekick {
		return nil
	}
	if rest := kickPause - now.Sub(t.kicked); rest > 0 { // each failure of an outage may be a break
		t.rekick = true
		time.AfterFunc(rest, func() {
			c.mu.Lock()
			t.rekick = false
			c.mu.Unlock()
			c.Kick(name)
		})
		return nil
	}
	t.kicked = now
	all := make([]*Lease, len(c.leases.entries))
	for i, e := range c.leases.entries {
		all[i] = e.lease
	}
	return all
}

// Close forgets every lease and returns their holders.
func (c *Clock) Close() []Holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, e := range c.leases.clear() {
		e.lease.removed = true
	}
	c.resting = nil
	c.stop()
	all := c.ends.close()
	holders := make([]Holder, len(all))
	for i, e := range all {
		holders[i] = e.lease.Holder
	}
	return holders
}

// scheduleLocked computes when to look at l next: when it is to be renewed, or when
// there is nothing left to renew.
func (c *Clock) scheduleLocked(l *Lease, now time.Time) {
	if c.closed || l.removed {
		return
	}
	at := l.ends(now)
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
	c.leases.set(l, at)
	c.setAlarmLocked(now)
}

// setAlarmLocked sets the alarm to the first lease.
func (c *Clock) setAlarmLocked(now time.Time) {
	if len(c.leases.entries) > 0 && !c.closed {
		c.set(c.leases.entries[0].at, now)
	}
}

// woke looks at all leases: while the machine slept the timer stood still.
func (c *Clock) woke() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leases.allAt(time.Now())
	c.setAlarmLocked(time.Now())
}

// tick has what is due renewed, so many at once. It does no I/O, and sets the timer
// again. While it runs wakeAt is zero.
func (c *Clock) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.wakeAt = time.Time{}
	for n := 0; n < someAtOnce && len(c.leases.entries) > 0 && !c.leases.entries[0].at.After(now); n++ {
		l := c.leases.entries[0].lease
		switch {
		case l.over(now): // its holder removes it, when the deadline says the same
			c.resting.remove(l)
			c.leases.remove(l)
		case !l.due && renewalDue(l, now):
			c.sendLocked(l)
			c.scheduleLocked(l, now)
			c.joinLocked(l.sort(), now)
		default:
			c.scheduleLocked(l, now)
			if e := c.leases.entries[l.places[c.leases.which]-1]; !e.at.After(now) { // rounding: look again in a moment
				c.leases.set(l, now.Add(time.Millisecond))
			}
		}
	}
	c.setAlarmLocked(now)
	if len(c.leases.entries) == 0 {
		c.timer = nil
		c.silent.Store(0)
		clear(c.talks)
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
			if c.ends.remove(l) { // else its holder is told that it is over
				gone = append(gone, l.Holder)
			}
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
