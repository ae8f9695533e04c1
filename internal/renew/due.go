package renew

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Due returns how many leases are due for a renewal, or are tried again, and the
// highest lag of them.
func (c *Clock) Due() (n int, lag float64) {
	c.each(func(l *Lease, now time.Time) {
		if l.unconfirmed(now) {
			n++
			lag = max(lag, l.lag(now))
		}
	})
	return n, lag
}

// Late returns an error if leases should have been renewed long ago: half of their
// time has passed since the last confirmed request, and a renewal is sent after a
// third.
func (c *Clock) Late() error {
	var n int
	var oldest time.Duration
	c.each(func(l *Lease, now time.Time) {
		if l.unconfirmed(now) && l.lag(now) > 0.5 {
			n++
			oldest = max(oldest, Elapsed(l.Confirmed(), now))
		}
	})
	if n == 0 {
		return nil
	}
	return fmt.Errorf("redlatch: renewals are late: of %d holds and permits, one was confirmed %v ago", n, oldest.Round(time.Millisecond))
}

// each calls f for all leases, and keeps nobody waiting for longer than a few
// take.
func (c *Clock) each(f func(l *Lease, now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, looked := time.Now(), 0
	for _, b := range slices.Collect(maps.Values(c.bunches)) {
		for l := range b.leases {
			f(l, now)
			if looked++; looked%someAtOnce == 0 {
				c.breatheLocked()
			}
		}
	}
}

// lag returns how much of its time has passed since the last confirmed request, of
// a lease that is not over: at 1 it is. Its Length would not do as a measure: what
// the window rests on may be longer or shorter.
func (l *Lease) lag(now time.Time) float64 {
	passed := Elapsed(l.Confirmed(), now)
	return float64(passed) / float64(passed+l.Left(now))
}

// unconfirmed says whether a renewal of the lease is in flight or has failed, and
// it is trusted all the same.
func (l *Lease) unconfirmed(now time.Time) bool {
	return l.renewing && (l.due || l.retry > 0) && !l.over(now)
}
