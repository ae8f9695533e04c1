package renew

import (
	"container/heap"
	"sync"
	"time"
)

// maxSleep is the longest time between two looks at the wall clock, which may be
// ahead of the timers after the machine has slept.
const maxSleep = time.Second

// slept is how far the wall clock may run ahead of the timers between two looks.
// If it ran further, the deadlines look at every lease. It is well below any
// Margin.
const slept = 5 * time.Millisecond

// someAtOnce is how many leases are looked at before others may have the mutex,
// and how many holders are told before the next are looked for.
const someAtOnce = 256

// deadlines tell holders that their windows are over, and do nothing else. No
// goroutine has the mutex while it renews, confirms or tells. A confirmation only
// moves the window; the deadlines look at it when it would have been over.
type deadlines struct {
	woke   func() // called when the machine has slept
	glance func() // called after each look; may be nil

	mu sync.Mutex // guards what follows
	ends
	alarm  alarm
	seen   time.Time // when tick last looked
	closed bool
}

// add looks at l when its window is over, and returns when that was decided. It
// returns false if it never will.
func (d *deadlines) add(l *Lease) (now time.Time, added bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now = time.Now()
	if d.closed {
		return now, false
	}
	if len(d.ends) == 0 {
		d.seen = now
	}
	d.set(l, l.ends(now))
	d.setAlarmLocked(now)
	return now, true
}

// remove forgets l, and says whether it was there.
func (d *deadlines) remove(l *Lease) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.place == 0 {
		return false
	}
	heap.Remove(&d.ends, l.place-1)
	return true
}

// close forgets every lease and returns their holders.
func (d *deadlines) close() []Holder {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.alarm.Stop()
	holders := d.holders()
	for _, e := range d.ends {
		e.lease.place = 0
	}
	d.ends = nil
	return holders
}

// setAlarmLocked sets the alarm to the first lease, and to maxSleep at the latest.
func (d *deadlines) setAlarmLocked(now time.Time) {
	if len(d.ends) > 0 {
		d.alarm.set(min(d.ends[0].at.Sub(now), maxSleep), now)
	}
}

func (d *deadlines) tick() {
	woke := false
	for more := true; more; {
		var over []Holder
		d.mu.Lock()
		now := time.Now()
		d.alarm.at = time.Time{}
		// If the machine was suspended, or its wall clock stepped ahead, the timers
		// have not noticed, so every window must be looked at.
		if Elapsed(d.seen, now)-now.Sub(d.seen) > slept {
			woke = true
			for i := range d.ends { // all alike is in order
				d.ends[i].at = now
			}
		}
		d.seen = now
		for len(over) < someAtOnce && len(d.ends) > 0 && !d.ends[0].at.After(now) {
			l := d.ends[0].lease
			if l.over(now) {
				heap.Pop(&d.ends)
				over = append(over, l.Holder)
			} else {
				d.set(l, l.ends(now))
			}
		}
		if more = len(over) == someAtOnce; !more {
			d.setAlarmLocked(now)
		}
		d.mu.Unlock()
		for _, h := range over {
			h.Expired()
		}
	}
	if woke {
		d.woke()
	}
	if d.glance != nil {
		d.glance()
	}
}

// ends are leases by when to look at them, as a heap. Each lease knows its place.
type ends []end

type end struct {
	at    time.Time
	lease *Lease
}

// holders returns those of all leases.
func (h *ends) holders() []Holder {
	all := make([]Holder, len(*h))
	for i, e := range *h {
		all[i] = e.lease.Holder
	}
	return all
}

// set has l looked at then.
func (h *ends) set(l *Lease, at time.Time) {
	if l.place == 0 {
		*h = append(*h, end{lease: l}) // heap.Push would allocate
		l.place = len(*h)
	}
	(*h)[l.place-1].at = at
	heap.Fix(h, l.place-1)
}

func (h *ends) Len() int           { return len(*h) }
func (h *ends) Less(i, j int) bool { return (*h)[i].at.Before((*h)[j].at) }

func (h *ends) Swap(i, j int) {
	e := *h
	e[i], e[j] = e[j], e[i]
	e[i].lease.place, e[j].lease.place = i+1, j+1
}

func (h *ends) Push(any) { panic("not used") }

func (h *ends) Pop() any {
	last := len(*h) - 1
	(*h)[last].lease.place = 0
	(*h)[last] = end{}
	*h = (*h)[:last]
	return nil
}
