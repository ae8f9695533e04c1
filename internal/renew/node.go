package renew

import "time"

// MaxSenders is how many batches of a node are in flight at a time. So many round
// trips overlap. The other batches wait here, where waiting costs nothing, and not
// for a connection.
const MaxSenders = 64

// A node is a server, and what is due there. Its senders come one by one: each
// calls the next one if it leaves something to do. They end when nothing is left.
type node struct {
	name    string
	senders int
	coming  bool     // the latest of them has not begun
	queue   []*bunch // of which something is due; one that was served goes to the end

	kick  time.Time // when its leases were last doubted, or will be
	quiet time.Time // a batch was not answered: the node is silent if nothing is answered until then; zero: no
	heard time.Time // when a silence last ended
}

// sendLocked puts l into its node, unless it is there already.
func (c *Clock) sendLocked(l *Lease, now time.Time) {
	if l.due || l.bunch == nil {
		return
	}
	c.joinLocked(l, c.nodeLocked(l.Holder.Node())) // it may be another's node now
	l.due = true
	b := l.bunch
	if b.due = append(b.due, l); len(b.due) == 1 {
		b.node.queue = append(b.node.queue, b)
	}
	c.planLocked(l, now)
	c.callLocked(b.node)
}

// callLocked calls one more sender, if a batch could be sent and none is coming.
func (c *Clock) callLocked(ln *node) {
	if len(ln.queue) > 0 && !ln.coming && ln.senders < MaxSenders {
		ln.senders++
		ln.coming = true
		c.spawn(func() { c.send(ln) })
	}
}

// send is a sender: it works until there is nothing left in its node.
func (c *Clock) send(ln *node) {
	batch := make([]*Lease, 0, MaxBatch)
	c.mu.Lock()
	ln.coming = false
	for batch = ln.take(batch); len(batch) > 0; batch = ln.take(batch[:0]) {
		c.callLocked(ln)
		c.mu.Unlock()
		sent := time.Now()
		batch[0].Kind.Renew(batch)
		c.settle(ln.name, batch, sent)
		c.mu.Lock()
	}
	ln.senders--
	c.mu.Unlock()
}

// take moves the leases that are to be asked about next to batch, and readies
// them. It adds nothing if nothing is due.
func (ln *node) take(batch []*Lease) []*Lease {
	for len(ln.queue) > 0 && len(batch) == 0 {
		b := ln.queue[0]
		ln.queue = ln.queue[1:]
		n := min(len(b.due), MaxBatch)
		for _, l := range b.due[:n] {
			if l.bunch == nil {
				l.due = false
				continue
			}
			l.Ask, l.Result, l.doubted = 0, Failed, false
			if l.renewing {
				l.Ask = l.Length
			}
			batch = append(batch, l)
		}
		clear(b.due[:n])
		if b.due = b.due[n:]; len(b.due) > 0 {
			ln.queue = append(ln.queue, b)
		}
	}
	return batch
}

// settle acts on the results of a batch of a node that was sent at sent.
func (c *Clock) settle(name string, batch []*Lease, sent time.Time) {
	var gone []Holder
	var longest time.Duration // that somebody is to wait now
	answered := false
	c.mu.Lock()
	ln, now := c.nodeLocked(name), time.Now()
	for _, l := range batch {
		l.due = false
		answered = answered || l.Result == Confirmed || l.Result == Gone
		switch {
		case l.bunch == nil:
		case l.Result == Gone:
			l.leave()
			if c.ends.remove(l) { // else its holder is told that it is over
				gone = append(gone, l.Holder)
			}
		case l.Result == Confirmed && l.Left(now) <= 0: // a late reply never revives a lease
		case l.Result == Confirmed:
			l.retry = 0
			if l.Ask > 0 {
				l.Confirm(sent, l.Ask)
				l.renewed = sent
			}
			if l.doubted { // the answer may be older than the reason to doubt it
				c.sendLocked(l, now)
			}
		default:
			if ln.heard.After(sent) {
				l.retry = 0 // a silence that lasts is another one
			}
			l.retry = backoff(l.retry)
			l.retryAt = now.Add(l.retry)
			longest = max(longest, l.retry)
		}
		if l.bunch != nil {
			c.joinLocked(l, l.bunch.node)
		}
		c.planLocked(l, now)
	}
	switch {
	case answered:
		c.answeredLocked(name, now)
	case longest > 0 && ln.quiet.IsZero():
		ln.quiet = now.Add(longest)
		c.silent.Add(1)
	}
	c.mu.Unlock()
	for _, h := range gone {
		h.Gone()
	}
}

// answeredLocked ends the pauses of a node that has been silent. A node on which
// the server only refused one lease, and answered others, was not.
func (c *Clock) answeredLocked(name string, now time.Time) {
	ln := c.nodes[name]
	if ln == nil || ln.quiet.IsZero() {
		return
	}
	c.silent.Add(-1)
	if !now.Before(ln.quiet) {
		ln.heard = now
		go c.rouse(func(s sort) bool { return s.retry && s.node == ln }, false) // what rests is not concerned, and may be very much
	}
	ln.quiet = time.Time{}
}
