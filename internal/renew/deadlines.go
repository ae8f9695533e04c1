package renew

import (
	"sync"
	"time"
)

// maxSleep is how often leases are compared with the wall clock, which may have
// been ahead of the timers while the machine slept.
const maxSleep = time.Second

// slept is how far the wall clock may run ahead of the timers between two
// looks before every lease is looked at. It is well below any Margin.
const slept = 5 * time.Millisecond

// deadlines tell holders that their windows are over, and do nothing else. Nobody
// holds the mutex while he renews, confirms or tells: a confirmation only moves the
// window, which is looked at when it would have been over.
type deadlines struct {
	woke   func() // called when the machine has slept
	glance func() // called after each look; may be nil

	mu     sync.Mutex // guards what follows
	leases schedule
	alarm
	seen   time.Time // when tick last looked
	closed bool
}

// add looks at l when its window is over. It returns false if it never will.
func (d *deadlines) add(l *Lease) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	now := time.Now()
	d.leases.set(l, l.ends(now))
	d.setAlarmLocked(now)
	return true
}

// remove forgets l, and says whether it was there.
func (d *deadlines) remove(l *Lease) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leases.remove(l)
}

// close forgets every lease and returns them.
func (d *deadlines) close() []entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.stop()
	return d.leases.clear()
}

// setAlarmLocked sets the alarm to the first lease, and to maxSleep at the latest.
func (d *deadlines) setAlarmLocked(now time.Time) {
	if len(d.leases.entries) == 0 || d.closed {
		return
	}
	at := d.leases.entries[0].at
	if limit := now.Add(maxSleep); at.After(limit) {
		at = limit
	}
	if d.timer == nil {
		d.seen = now
	}
	d.set(at, now)
}

// someAtOnce is how many leases are looked at before others may have the mutex, and
// how many holders are told before the next are looked for.
const someAtOnce = 256

func (d *deadlines) tick() {
	woke := false
	for more := true; more; {
		var over []Holder
		d.mu.Lock()
		now := time.Now()
		d.wakeAt = time.Time{}
		// If the machine was suspended, or its wall clock stepped ahead, the timers
		// have not noticed, so every window must be looked at.
		if !d.seen.IsZero() && Elapsed(d.seen, now)-now.Sub(d.seen) > slept {
			woke = true
			d.leases.allAt(now)
		}
		d.seen = now
		for len(d.leases.entries) > 0 && !d.leases.entries[0].at.After(now) && len(over) < someAtOnce {
			l := d.leases.entries[0].lease
			if !l.over(now) {
				d.leases.set(l, l.ends(now))
				continue
			}
			d.leases.remove(l)
			over = append(over, l.Holder)
		}
		if more = len(over) == someAtOnce; !more {
			d.setAlarmLocked(now)
			if len(d.leases.entries) == 0 {
				d.timer, d.seen = nil, time.Time{}
			}
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
