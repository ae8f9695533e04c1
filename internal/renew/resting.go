package renew

import "time"

// resting are the leases that are to be renewed later: for each sort a ring, named
// by the one that has rested longest.
type resting map[sort]*Lease

// add puts l at the end of its ring.
func (r resting) add(l *Lease) {
	first := r[l.sort()]
	if first == nil {
		l.prev, l.next = l, l
		r[l.sort()] = l
		return
	}
	l.prev, l.next = first.prev, first
	first.prev.next, first.prev = l, l
}

// remove takes l out of its ring, if it is in one.
func (r resting) remove(l *Lease) {
	switch {
	case l.next == nil:
		return
	case l.next == l:
		delete(r, l.sort())
	case r[l.sort()] == l:
		r[l.sort()] = l.next
	}
	l.prev.next, l.next.prev = l.next, l.prev
	l.prev, l.next = nil, nil
}

// joinLocked makes others due with one that is, as many as make a batch: those that
// would be in the second half of their rest. So those of a hash slot, however they
// were taken, are soon asked about together.
func (c *Clock) joinLocked(k sort, now time.Time) {
	for range MaxBatch - 1 {
		l := c.resting[k]
		if l == nil {
			return
		}
		since, third := l.third()
		if Elapsed(since, now) < third/2 {
			return
		}
		c.sendLocked(l)
		c.scheduleLocked(l, now)
	}
}
